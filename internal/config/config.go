// Package config is everything that an operator can set, in one strict YAML file, and what a
// repository can set in its `.errand.yml`.
//
// Load reads, fills in defaults, resolves secrets and validates; every error names line, key and what
// to write. Secrets stand in the file as `env:NAME` or `file:/path`, so that the file itself can be
// shown to anybody. It does not watch the file: a restart reads it again, and loses nothing. Start
// reading at Config; config.example.yml documents every key.
package config

import (
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/bake"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/state"
)

// Config is the operator's file.
type Config struct {
	// Enabled false starts nothing new: webhooks are still stored, and tasks that run go on.
	Enabled bool `yaml:"enabled"`
	// Deployment tells this errand's VMs from those of another one. Letters, digits, hyphens.
	Deployment string `yaml:"deployment"`
	// Data is the folder for everything that errand keeps: store, transcripts, keys, boxes.
	Data string `yaml:"data"`
	// Listen is where webhooks and pages are served: "HOST:PORT".
	Listen string `yaml:"listen"`
	// PublicURL is the address at which people reach the pages, for links in comments; empty leaves links out. If it
	// begins with https, the cookie of a login is sent by browsers over HTTPS alone.
	PublicURL string `yaml:"public_url"`
	// TrustedProxies are the addresses or CIDR ranges of reverse proxies in front of errand, such as 127.0.0.1 or
	// 10.0.0.0/8. X-Forwarded-For is trusted only in requests from these addresses.
	TrustedProxies []string `yaml:"trusted_proxies"`

	Log     Log     `yaml:"log"`
	GitHub  GitHub  `yaml:"github"`
	Trigger Trigger `yaml:"trigger"`
	Trust   Trust   `yaml:"trust"`
	Admin   Admin   `yaml:"admin"`

	Agent agent.Config `yaml:"agent"`
	// Models are the model providers that VMs reach through the tether, by the name in their path:
	// /llm/NAME.
	Models map[string]Model `yaml:"models"`
	// Prices say what models cost, in dollars per million tokens, by name; an entry also counts for editions of its model,
	// whose names go on after a hyphen, @ or colon, and the longest name wins. Entries are added to these, or take their
	// place. A model without an entry counts as the dearest of all.
	Prices gateway.Prices `yaml:"prices"`
	// Provider is where VMs come from: local, which means boxes on this host, or hetzner.
	Provider string  `yaml:"provider"`
	Local    Local   `yaml:"local"`
	Hetzner  Hetzner `yaml:"hetzner"`
	// Bake are base images, each for a group of repositories and by the group's name.
	Bake   bake.Groups `yaml:"bake"`
	Egress Egress      `yaml:"egress"`
	// Submodules says which other repositories a repository's agents may read, through the tether and with a
	// token for just that one: {OWNER/REPO: [OWNER/LIB]}, with * for any characters of a name. Whoever may write
	// to the first sees what is in the second. None unless set.
	Submodules Submodules `yaml:"submodules"`
	// TestEnv sets variables on the VMs of a repository, for its set-up, agents and checks: {OWNER/REPO: {NAME: env:X}},
	// with file:/path or the value itself instead of env:X, and * for any characters of the repository's name. Agents
	// can read them, so they have to be expendable; they are blanked in everything that errand shows. None unless set.
	TestEnv TestEnv `yaml:"test_env"`
	// TestFiles puts files into the checkouts of a repository, likewise: {OWNER/REPO: {config/test.key: file:/path}}.
	// They are never committed and not put away with a task that sleeps. None unless set.
	TestFiles TestFiles `yaml:"test_files"`

	Limits     Limits     `yaml:"limits"`
	Gate       Gate       `yaml:"gate"`
	Repository Repository `yaml:"repository"`
	Timing     Timing     `yaml:"timing"`
	Keep       Keep       `yaml:"keep"`
}

// Log is how errand logs.
type Log struct {
	// Level is one of debug, info, warn and error.
	Level string `yaml:"level"`
	// Format is one of json and console.
	Format string `yaml:"format"`
}

// Trigger is what starts a task, besides a mention.
type Trigger struct {
	// Assignee is the login of a machine user whose assignment starts a task. The App's own account
	// counts too, should GitHub let it be assigned.
	Assignee string `yaml:"assignee"`
	// Label is a label that starts a task when it is put on an issue; taking it away cancels.
	Label string `yaml:"label"`
}

// Trust is whose text the agent may see besides that of people with write permission.
type Trust struct {
	// AllowUsers are logins whose text the agent sees as if they could write.
	AllowUsers []string `yaml:"allow_users"`
	// AllowBots are logins of bots whose text the agent sees; all others are withheld.
	AllowBots []string `yaml:"allow_bots"`
}

// Admin guards the status pages and metrics.
type Admin struct {
	// Token is what every page but webhook and health asks for.
	Token Secret `yaml:"token"`
	// Listen serves the pages on an address of their own, for instance "127.0.0.1:9090", and then
	// without a token if none is set.
	Listen string `yaml:"listen"`
}

// Model is a model provider's API, reached by VMs through the tether only.
type Model struct {
	// URL is the API's address, without a slash at the end.
	URL string `yaml:"url"`
	// Key is put into every request on its way out; it never reaches a VM.
	Key Secret `yaml:"key"`
	// Subscription takes the place of the key: what agents ask for is paid by a subscription then.
	Subscription Subscription `yaml:"subscription"`
	// Header is the header that carries the key, as a bearer token if it is Authorization; by default that of the
	// provider's own API: X-Api-Key, Authorization or X-Goog-Api-Key.
	Header string `yaml:"header"`
	// API is the provider's dialect: anthropic, openai or gemini; by default the one of its name, else
	// anthropic.
	API string `yaml:"api"`
	// WebTools lets agents use tools that the provider runs, such as search, fetching pages, MCP servers and
	// running code, and hand it content by address. What passes there passes no list of hosts, neither what comes
	// nor what is told; what the tools cost by themselves is not counted.
	WebTools bool `yaml:"web_tools"`
}

// Dialect is the dialect of the provider of this name.
func (m Model) Dialect(name string) gateway.API {
	for _, api := range gateway.APIs() {
		if m.API == string(api) || m.API == "" && name == string(api) {
			return api
		}
	}
	return gateway.Anthropic
}

// Local configures the provider of boxes on this host.
type Local struct {
	// Kind is one of auto, bwrap, userns and plain; auto takes the best that works here.
	Kind string `yaml:"kind"`
	// AllowUnsandboxed lets a real agent run in a plain box, which nothing isolates.
	AllowUnsandboxed bool `yaml:"allow_unsandboxed"`
	// Binds are host paths that a box sees, such as a toolchain outside /usr.
	Binds []Bind `yaml:"binds"`
	// Path is put before the system's folders in a box's PATH.
	Path []string `yaml:"path"`
	// IdleExit ends a box after so long without contact.
	IdleExit time.Duration `yaml:"idle_exit"`
}

// Bind is a host path that a box sees.
type Bind struct {
	// Path is the same on the host and in the box.
	Path string `yaml:"path"`
	// Writable lets boxes write there, such as into a cache that they share.
	Writable bool `yaml:"writable"`
}

// Limits bound every task. A repository's own limits count only up to these.
type Limits struct {
	// Turns bounds the model calls of one run.
	Turns int `yaml:"turns"`
	// Duration bounds a task's continuous agent activity.
	Duration time.Duration `yaml:"duration"`
	// PlanDuration bounds one planning run.
	PlanDuration time.Duration `yaml:"plan_duration"`
	// Stall ends a run that gives no sign of life: no output, no open model request, no CPU use.
	Stall time.Duration `yaml:"stall"`
	// Cost is the cap of a task in US dollars: no run starts once it is reached, and `budget` raises it.
	Cost float64 `yaml:"cost"`
	// CostPerRun is the cap of one run of an agent in US dollars; 0 bounds nothing.
	CostPerRun float64 `yaml:"cost_per_run"`
	// CostPerDay is the cap of all tasks together on a day in UTC, in US dollars: at it, agents wait for the
	// next. 0 bounds nothing.
	CostPerDay float64 `yaml:"cost_per_day"`
	// CostPerMonth is the same for a month in UTC.
	CostPerMonth float64 `yaml:"cost_per_month"`
	// Tokens is the cap of a task in tokens of every kind, those read from a cache among them; 0 bounds nothing.
	Tokens int64 `yaml:"tokens"`
	// TokensPerRun is the cap of one run, likewise.
	TokensPerRun int64 `yaml:"tokens_per_run"`
	// TokensPerDay is the cap of all tasks together on a day in UTC, likewise.
	TokensPerDay int64 `yaml:"tokens_per_day"`
	// TokensPerMonth is the same for a month in UTC.
	TokensPerMonth int64 `yaml:"tokens_per_month"`
	// VMs is how many VMs there may be at once: at work, waiting with their task in a paid hour, or being baked in.
	VMs int `yaml:"vms"`
	// VMHours is how many started hours of VMs a task may use; at it the task fails, with its work kept, and retry goes
	// on once this is raised.
	VMHours int `yaml:"vm_hours"`
	// VMCreates is how many VMs may be made in an hour.
	VMCreates int `yaml:"vm_creates"`
	// VMCostPerDay bounds what VMs and their images cost on a day in UTC, in the provider's currency; 0 bounds nothing.
	VMCostPerDay float64 `yaml:"vm_cost_per_day"`
	// VMCostPerMonth is the same for a month in UTC.
	VMCostPerMonth float64 `yaml:"vm_cost_per_month"`
	// Remind is when an unapproved plan is brought to mind.
	Remind time.Duration `yaml:"remind"`
	// Expire is when an unapproved plan is given up, and the task cancelled.
	Expire time.Duration `yaml:"expire"`
	// Checks is how often failing checks go back to the agent before the pull request says so.
	Checks int `yaml:"checks"`
}

// Repository is what applies to repositories whose `.errand.yml` says nothing else.
type Repository struct {
	// Plan is one of two-step (a short plan, 👍, a thorough one, 👍), one-step (a thorough plan, 👍) and none.
	Plan state.PlanMode `yaml:"plan"`
	// Branch is the template of the branch's name, over {key} {number} {slug} {task}.
	Branch string `yaml:"branch"`
	// Commit is the template of a commit's first line, likewise.
	Commit string `yaml:"commit"`
	// Title is the template of the pull request's title, likewise.
	Title string `yaml:"title"`
	// Draft opens pull requests as drafts.
	Draft bool `yaml:"draft"`
	// Publish is one of at-once and after-approval. What an App pushes starts workflows with the repository's
	// secrets: after-approval shows the diff in a comment, and nothing is pushed before a person has approved it.
	Publish state.PublishMode `yaml:"publish"`
	// Guidance are files with what the repository says to agents: they are read from the base branch when a task
	// starts, and given to every agent beside errand's own rules. Those that are not there are passed over.
	Guidance []string `yaml:"guidance"`
	// Tools bounds what agents may call.
	Tools OperatorTools `yaml:"tools"`
	// Sleep is one of archive (a task's changes and the agent's session are put away while people think) and
	// snapshot (the whole disk as an image at the provider, slower and paid for, where it can).
	Sleep state.SleepMode `yaml:"sleep"`
}

// Timing is how often errand asks GitHub, and how long it waits.
type Timing struct {
	// Gather is how long the comments and reviews of a pull request are collected into one round of work.
	Gather time.Duration `yaml:"gather"`
	// PollFast is how often reactions are read while a plan is younger than 10 minutes. GitHub sends no webhooks for
	// reactions.
	PollFast time.Duration `yaml:"poll_fast"`
	// PollSlow is how often reactions are read on older plans.
	PollSlow time.Duration `yaml:"poll_slow"`
	// Deliveries is how often GitHub is asked for webhooks that it could not deliver.
	Deliveries time.Duration `yaml:"deliveries"`
	// Sweep is how often every open task is compared with its issue and pull request on GitHub.
	Sweep time.Duration `yaml:"sweep"`
	// IdleVM is how long a VM that costs nothing is kept while its task waits for people; after that its work
	// is archived and the VM deleted.
	IdleVM time.Duration `yaml:"idle_vm"`
	// Shutdown is how long requests may take to finish after SIGTERM. Your service manager must wait longer before it
	// kills the process.
	Shutdown time.Duration `yaml:"shutdown"`
}

// Keep is how long things stay.
type Keep struct {
	// AfterEnd is how long the work of an ended task is kept.
	AfterEnd time.Duration `yaml:"after_end"`
	// Asleep is how long work that was put away is kept if nobody wants it; after that a task goes on from branch, plan
	// and transcript.
	Asleep time.Duration `yaml:"asleep"`
	// Transcripts is how long transcripts of runs are kept.
	Transcripts time.Duration `yaml:"transcripts"`
	// TranscriptMB is how large the transcript of one run may be, in millions of bytes; beyond that its oldest records
	// are dropped, and a line says so.
	TranscriptMB int `yaml:"transcript_mb"`
}

// Default returns the production defaults.
func Default() Config {
	s, p := state.DefaultSettings(), state.DefaultPolicy()
	return Config{
		Enabled: true, Deployment: "errand", Data: "errand-data", Listen: "127.0.0.1:8080",
		Log:      Log{Level: "info", Format: "json"},
		GitHub:   GitHub{URL: "https://github.com"},
		Agent:    agent.DefaultConfig(),
		Models:   map[string]Model{},
		Prices:   gateway.DefaultPrices(),
		Provider: "local",
		Local:    Local{Kind: "auto", IdleExit: 15 * time.Minute},
		Hetzner:  DefaultHetzner(),
		Egress:   Egress{Allow: egress.Registries()},
		Limits: Limits{
			Turns: s.Limits.Turns, Duration: s.Limits.Duration, PlanDuration: s.Limits.PlanDuration, Stall: s.Limits.Stall,
			Cost: 10, CostPerDay: 50, CostPerMonth: 500, VMs: 3, VMHours: 6, VMCreates: 10, VMCostPerDay: 5, VMCostPerMonth: 50,
			Remind: s.Limits.Remind, Expire: s.Limits.Expire, Checks: s.Limits.Checks,
		},
		Gate:       Gate{MaxPaths: pushgate.DefaultMaxPaths, MaxBytes: pushgate.DefaultMaxBytes},
		Repository: Repository{Plan: s.Plan, Branch: s.Branch, Commit: s.Commit, Title: s.Title, Publish: s.Publish, Sleep: state.SleepArchive, Guidance: s.Guidance},
		Timing: Timing{
			Gather: p.Gather, PollFast: 15 * time.Second, PollSlow: time.Minute, Deliveries: 5 * time.Minute, Sweep: 15 * time.Minute,
			IdleVM: p.IdleVM, Shutdown: 30 * time.Second,
		},
		Keep: Keep{AfterEnd: 24 * time.Hour, Asleep: p.KeepAsleep, Transcripts: 90 * 24 * time.Hour, TranscriptMB: 256},
	}
}

// Policy returns the settings of the state machine that operators choose; the others have their defaults.
func (c Config) Policy() state.Policy {
	p := state.DefaultPolicy()
	p.Gather, p.IdleVM = c.Timing.Gather, c.Timing.IdleVM
	p.KeepAfterEnd, p.KeepAsleep = c.Keep.AfterEnd, c.Keep.Asleep
	p.Models = &state.Models{Offers: c.Agent.Offers, Names: c.Agent.Offered()}
	p.VMHours = time.Duration(c.Limits.VMHours) * time.Hour
	return p
}

// Caps are what all tasks together may cost.
func (c Config) Caps() state.Caps {
	return state.Caps{
		DayMicroUSD: int64(c.Limits.CostPerDay * 1e6), MonthMicroUSD: int64(c.Limits.CostPerMonth * 1e6),
		DayTokens: c.Limits.TokensPerDay, MonthTokens: c.Limits.TokensPerMonth,
	}
}

// Settings are the defaults under every repository's own.
func (c Config) Settings() state.Settings {
	s := state.DefaultSettings()
	r := c.Repository
	s.Enabled, s.Plan, s.Branch, s.Commit, s.Title, s.Draft = c.Enabled, r.Plan, r.Branch, r.Commit, r.Title, r.Draft
	s.Deny, s.Guidance = r.Tools.Deny, r.Guidance
	s.Publish, s.VM.Sleep, s.Subscription = r.Publish, r.Sleep, c.allSubscribed()
	s.Limits = state.Limits{
		Turns: c.Limits.Turns, Duration: c.Limits.Duration, PlanDuration: c.Limits.PlanDuration, Stall: c.Limits.Stall,
		MicroUSD: int64(c.Limits.Cost * 1e6), RunMicroUSD: int64(c.Limits.CostPerRun * 1e6), Tokens: c.Limits.Tokens, RunTokens: c.Limits.TokensPerRun,
		Remind: c.Limits.Remind, Expire: c.Limits.Expire, Checks: c.Limits.Checks,
	}
	return s
}
