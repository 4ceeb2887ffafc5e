// Package config is the configuration: everything that an operator can set, in one strict YAML file, and everything
// that a repository can set in its `.errand.yml`.
//
// Load reads the file, fills in defaults, resolves secrets and validates. Every error names the line, the key and the
// correction. The file refers to secrets as `env:NAME` or `file:/path`, so it contains none and can be shown to
// anybody. errand does not watch the file; it reads it again after a restart, which loses nothing.
//
// Start here: [Config]; config.example.yml documents every key.
package config

import (
	"time"

	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/bake"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
)

// Config is the operator's configuration file.
type Config struct {
	// Enabled starts new tasks. If it is false, webhooks are still stored and running tasks continue.
	Enabled bool `yaml:"enabled"`
	// Deployment distinguishes the VMs of this errand from those of another one. Letters, digits, hyphens.
	Deployment string `yaml:"deployment"`
	// Data is the folder in which errand stores its data: database, transcripts, keys, sandboxes.
	Data string `yaml:"data"`
	// Listen is the address that serves webhooks and pages: "HOST:PORT".
	Listen string `yaml:"listen"`
	// PublicURL is the address at which people open the pages; comments link to it, and contain no links if it is empty.
	// If it begins with https, browsers send the login cookie over HTTPS only.
	PublicURL string `yaml:"public_url"`
	// TrustedProxies are the addresses or CIDR ranges of reverse proxies in front of errand, such as 127.0.0.1 or
	// 10.0.0.0/8. X-Forwarded-For is trusted only in requests from these addresses.
	TrustedProxies []string `yaml:"trusted_proxies"`
	TLS            TLS      `yaml:"tls"`

	Log     Log     `yaml:"log"`
	GitHub  GitHub  `yaml:"github"`
	Trigger Trigger `yaml:"trigger"`
	Trust   Trust   `yaml:"trust"`
	Admin   Admin   `yaml:"admin"`

	Agent registry.Config `yaml:"agent"`
	// Models are the APIs of model providers that VMs reach through the tether. Their names are part of the path:
	// /llm/NAME.
	Models map[string]Model `yaml:"models"`
	// Prices are the prices of models by name, in dollars per million tokens. An entry also applies to variants of its
	// model, whose names continue after a hyphen, @ or colon; the longest matching name wins. Your entries are added to
	// the default ones or replace them. A model without an entry is charged at the highest price in the table.
	Prices modelapi.Prices `yaml:"prices"`
	// Provider is where VMs come from: local (sandboxes on this host) or hetzner.
	Provider string  `yaml:"provider"`
	Local    Local   `yaml:"local"`
	Hetzner  Hetzner `yaml:"hetzner"`
	// Bake defines base images by name, each for a group of repositories.
	Bake   bake.Groups `yaml:"bake"`
	Egress Egress      `yaml:"egress"`
	// Registries are private servers of packages (npm, Maven, PyPI, Go and others), by a name for messages. VMs of the listed repositories
	// read from them through the tether: errand adds the credential, answers only GET and HEAD, and logs each request. None by default.
	Registries Registries `yaml:"registries"`
	// Submodules lists the other repositories that a repository's agents may read, through the tether and with a token
	// for that one repository only: {OWNER/REPO: [OWNER/LIB]}, with * for any characters of a name. Everybody who can
	// write to the first repository can then see the contents of the second. None by default.
	Submodules Submodules `yaml:"submodules"`
	// TestEnv sets variables on the VMs of a repository, for its setup, agents and checks: {OWNER/REPO: {NAME: env:X}},
	// with file:/path or the value itself instead of env:X, and * for any characters of the repository's name. Agents
	// can read them, so use only credentials whose loss does no harm. errand redacts them in everything that it shows.
	// None by default.
	TestEnv TestEnv `yaml:"test_env"`
	// TestFiles puts files into the checkouts of a repository in the same way: {OWNER/REPO: {config/test.key:
	// file:/path}}. They are never committed, and not archived with a suspended task. None by default.
	TestFiles TestFiles `yaml:"test_files"`

	Limits     Limits     `yaml:"limits"`
	Gate       Gate       `yaml:"gate"`
	Repository Repository `yaml:"repository"`
	Timing     Timing     `yaml:"timing"`
	Keep       Keep       `yaml:"keep"`
	Backup     Backup     `yaml:"backup"`
}

// Log configures errand's own log.
type Log struct {
	// Level is the minimum level: debug, info, warn or error.
	Level string `yaml:"level"`
	// Format is json or console.
	Format string `yaml:"format"`
}

// Trigger selects what starts a task in addition to a mention.
type Trigger struct {
	// Assignee is the login of a machine user; assigning an issue to it starts a task. The App's own account works too
	// where GitHub allows assigning it.
	Assignee string `yaml:"assignee"`
	// Label is a label that starts a task when it is added to an issue; removing it cancels the task. Issues that carry
	// it already are listed on the board and not started.
	Label string `yaml:"label"`
}

// Trust lists whose text agents see in addition to that of people with write access.
type Trust struct {
	// AllowUsers are logins whose text agents see as if they had write access.
	AllowUsers []string `yaml:"allow_users"`
	// AllowBots are logins of bots whose text agents see; the text of all other bots is withheld.
	AllowBots []string `yaml:"allow_bots"`
}

// Admin protects the pages and metrics.
type Admin struct {
	// Token is required by every page except webhooks and health checks.
	Token Secret `yaml:"token"`
	// Listen serves the pages on a separate address, for example "127.0.0.1:9090". If no token is set, none is needed
	// there: whoever reaches the address, such as any program on this host, reads all pages and gives commands to tasks.
	Listen string `yaml:"listen"`
	// SignIn lets people sign in with GitHub, next to the token. They see the tasks of the repositories to which GitHub gives
	// both them and the App access. It needs github.client_secret, public_url, and the App's callback URL, which is public_url
	// followed by /login/github/callback.
	SignIn bool `yaml:"sign_in"`
	// Operators are the GitHub accounts that see and do everything after they signed in: [LOGIN] or [LOGIN:ID]. The account that
	// first signs in with a login is remembered by its ID; the ID, from https://api.github.com/users/LOGIN, says at once which one it is.
	// ORG/TEAM is every member of a team of an organization; the App needs the permission members: read there.
	Operators []string `yaml:"operators"`
}

// Model is the API of a model provider. VMs reach it only through the tether.
type Model struct {
	// URL is the API's address, without a slash at the end.
	URL string `yaml:"url"`
	// Key is added to every request when it leaves errand; it never reaches a VM.
	Key Secret `yaml:"key"`
	// Subscription replaces the key: agents' calls are then paid by a subscription.
	Subscription Subscription `yaml:"subscription"`
	// Header is the header that carries the key, as a bearer token if it is Authorization. The default is that of the
	// provider's own API: X-Api-Key, Authorization or X-Goog-Api-Key.
	Header string `yaml:"header"`
	// API is the provider's API: anthropic, openai or gemini. The default is the one with the provider's name, else
	// anthropic.
	API string `yaml:"api"`
	// WebTools lets agents use tools that the provider runs, such as web search, page fetches, MCP servers and code
	// execution, and refer to content by URL. This traffic bypasses the egress allow-list in both directions, and the
	// cost of the tools themselves is not counted.
	WebTools bool `yaml:"web_tools"`
}

// Dialect returns the API that the provider with this name supports.
func (m Model) Dialect(name string) modelapi.API {
	for _, api := range modelapi.APIs() {
		if m.API == string(api) || m.API == "" && name == string(api) {
			return api
		}
	}
	return modelapi.Anthropic
}

// Local configures the sandboxes on this host.
type Local struct {
	// Kind is auto, bwrap, userns or plain; auto selects the strongest isolation that works on this host.
	Kind string `yaml:"kind"`
	// AllowUnsandboxed lets a real agent run in a plain sandbox, which isolates nothing.
	AllowUnsandboxed bool `yaml:"allow_unsandboxed"`
	// Binds are host paths that are visible in sandboxes, such as a toolchain outside /usr.
	Binds []Bind `yaml:"binds"`
	// Path is prepended to the PATH in sandboxes.
	Path []string `yaml:"path"`
	// IdleExit stops a sandbox after this time without contact to errand. Runs in it are lost if errand is down for
	// longer.
	IdleExit time.Duration `yaml:"idle_exit"`
}

// Bind is a host path that is visible in sandboxes.
type Bind struct {
	// Path is the path, both on the host and in the sandbox.
	Path string `yaml:"path"`
	// Writable lets sandboxes write there, for example to a shared cache.
	Writable bool `yaml:"writable"`
}

// Limits apply to every task. A repository can only lower them.
type Limits struct {
	// Turns is the maximum number of model calls in one run; 0 means no limit where calls have a price, because the caps
	// on cost end such a run, and 200 on a subscription and for models whose prices are 0.
	Turns int `yaml:"turns"`
	// Duration is the total time that agents may work on a task; `retry` resets it.
	Duration time.Duration `yaml:"duration"`
	// PlanDuration is the maximum duration of one planning run.
	PlanDuration time.Duration `yaml:"plan_duration"`
	// Stall ends a run that shows no activity for this long: no output, no open model request, no CPU use.
	Stall time.Duration `yaml:"stall"`
	// Cost is the maximum cost of a task in US dollars. No run starts once it is reached; `budget` raises it.
	Cost float64 `yaml:"cost"`
	// CostPerRun is the maximum cost of one run in US dollars; 0 means no limit.
	CostPerRun float64 `yaml:"cost_per_run"`
	// CostPerDay is the maximum cost of all tasks together per UTC day, in US dollars; agents then wait until the next
	// day. 0 means no limit.
	CostPerDay float64 `yaml:"cost_per_day"`
	// CostPerMonth is the maximum cost of all tasks together per UTC month, in US dollars; 0 means no limit.
	CostPerMonth float64 `yaml:"cost_per_month"`
	// Tokens is the maximum number of tokens of a task, including those read from a cache; 0 means no limit.
	Tokens int64 `yaml:"tokens"`
	// TokensPerRun is the maximum number of tokens of one run; 0 means no limit.
	TokensPerRun int64 `yaml:"tokens_per_run"`
	// TokensPerDay is the maximum number of tokens of all tasks together per UTC day; 0 means no limit.
	TokensPerDay int64 `yaml:"tokens_per_day"`
	// TokensPerMonth is the maximum number of tokens of all tasks together per UTC month; 0 means no limit.
	TokensPerMonth int64 `yaml:"tokens_per_month"`
	// VMs is the maximum number of VMs at the same time, including those that wait with their task in a paid hour and
	// those in which a base image is baked. Further tasks wait in a queue, and a task that waits for people gives its VM up
	// to them: its work is saved.
	VMs int `yaml:"vms"`
	// VMHours is the maximum number of started VM hours of a task (Hetzner only). At the limit the task fails and its
	// work is kept; `budget +12h` adds hours and continues it.
	VMHours int `yaml:"vm_hours"`
	// VMCreates is the maximum number of VMs created per hour (Hetzner only).
	VMCreates int `yaml:"vm_creates"`
	// VMCostPerDay is the maximum cost of VMs and images per UTC day, in Hetzner's currency; 0 means no limit.
	VMCostPerDay float64 `yaml:"vm_cost_per_day"`
	// VMCostPerMonth is the maximum cost of VMs and images per UTC month, in Hetzner's currency; 0 means no limit.
	VMCostPerMonth float64 `yaml:"vm_cost_per_month"`
	// Remind is when people are reminded of a plan that waits for approval.
	Remind time.Duration `yaml:"remind"`
	// Expire is when a plan that waits for approval expires and its task is canceled.
	Expire time.Duration `yaml:"expire"`
	// Checks is the maximum number of times that an agent is asked to repair failing checks before the pull request is opened or updated, which then
	// reports those that still fail. It also limits how many times in a row an agent repairs failing checks on GitHub, where the maximum is 3.
	// 0 leaves failing checks to people.
	Checks int `yaml:"checks"`
}

// Repository sets the defaults for repositories, which their `.errand.yml` can override.
type Repository struct {
	// Plan is two-step (a short plan, 👍, a detailed plan, 👍), one-step (a detailed plan, 👍) or none.
	Plan settings.PlanMode `yaml:"plan"`
	// Branch is the template of the branch name, with {key} {number} {slug} {task}.
	Branch string `yaml:"branch"`
	// Commit is the template of the first line of commit messages, with the same placeholders.
	Commit string `yaml:"commit"`
	// Title is the template of the pull request's title, with the same placeholders.
	Title string `yaml:"title"`
	// Draft is never, until-green or always: whether pull requests are opened as drafts. With until-green errand marks them ready for
	// review when their checks succeed, or after 10 minutes in which no required check has started; with always people do.
	Draft settings.DraftMode `yaml:"draft"`
	// Merge is never, allowed or when-approved. With when-approved errand merges a pull request when a person with write access
	// has approved its newest commit, its checks succeed, and no thread is unresolved. With allowed it does so in repositories whose
	// `.errand.yml` says `merge: when-approved`. With never, people merge everywhere.
	Merge settings.MergeMode `yaml:"merge"`
	// Publish is at-once or after-approval. An App's pushes start workflows that can read the repository's secrets:
	// with after-approval errand shows the diff in a comment and pushes nothing before a person has approved it.
	Publish settings.PublishMode `yaml:"publish"`
	// Comments decides what errand's comments show.
	Comments Comments `yaml:"comments"`
	// Guidance lists files with a repository's instructions for agents. They are read from the base branch when a task
	// starts and given to every agent in addition to errand's own rules. Missing files are ignored.
	Guidance []string `yaml:"guidance"`
	// Tools restricts which commands agents may run.
	Tools OperatorTools `yaml:"tools"`
	// Sleep is how a task is suspended while people think: archive (its changes and the agent's session are archived) or
	// snapshot (the provider keeps the whole disk as an image, which is slower and costs money; Hetzner only).
	Sleep settings.SleepMode `yaml:"sleep"`
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

// Keep sets how long data is kept.
type Keep struct {
	// AfterEnd is how long the work of an ended task is kept, and how long `retry` continues a canceled one.
	AfterEnd time.Duration `yaml:"after_end"`
	// Asleep is how long the saved work of a suspended task is kept if nobody continues it. After that the task restarts
	// from its branch, plan and transcript. A task whose pull request was closed without a merge is canceled after that time.
	Asleep time.Duration `yaml:"asleep"`
	// Transcripts is how long transcripts of runs are kept.
	Transcripts time.Duration `yaml:"transcripts"`
	// TranscriptMB is the maximum size of one run's transcript in millions of bytes. Beyond it the oldest records are
	// dropped, and a line says so.
	TranscriptMB int `yaml:"transcript_mb"`
}

// Backup makes backups regularly, as `errand backup` does.
type Backup struct {
	// Folder gets the backups. It has to exist outside of the data folder, and to belong to errand's user alone (mode 0700). Without it no
	// backups are made.
	Folder string `yaml:"folder"`
	// Every is the time between two backups.
	Every time.Duration `yaml:"every"`
	// Keep is how many backups stay in the folder: when a new one is complete, older ones of this deployment are deleted.
	Keep int `yaml:"keep"`
}

// Default returns the defaults for production.
func Default() Config {
	s, p := settings.Default(), machine.DefaultPolicy()
	return Config{
		Enabled: true, Deployment: "errand", Data: "errand-data", Listen: "127.0.0.1:8080", TLS: TLS{Directory: defaultDirectory},
		Log:      Log{Level: "info", Format: "json"},
		GitHub:   GitHub{URL: "https://github.com", Webhooks: WebhooksPush},
		Agent:    registry.DefaultConfig(),
		Models:   map[string]Model{},
		Prices:   modelapi.DefaultPrices(),
		Provider: ProviderLocal,
		Local:    Local{Kind: "auto", IdleExit: 15 * time.Minute},
		Hetzner:  DefaultHetzner(),
		Egress:   Egress{Allow: egress.Registries()},
		Limits: Limits{
			Turns: s.Limits.Turns, Duration: s.Limits.Duration, PlanDuration: s.Limits.PlanDuration, Stall: s.Limits.Stall,
			Cost: 10, CostPerDay: 50, CostPerMonth: 500, VMs: 3, VMHours: 24, VMCreates: 10, VMCostPerDay: 5, VMCostPerMonth: 50,
			Remind: s.Limits.Remind, Expire: s.Limits.Expire, Checks: s.Limits.Checks,
		},
		Gate: Gate{MaxPaths: pushgate.DefaultMaxPaths, MaxBytes: pushgate.DefaultMaxBytes},
		Repository: Repository{
			Plan:     s.Plan,
			Branch:   s.Branch,
			Commit:   s.Commit,
			Title:    s.Title,
			Publish:  s.Publish,
			Draft:    s.Draft,
			Merge:    s.Merge,
			Comments: Comments{Money: settings.MoneyPrivate},
			Sleep:    settings.SleepArchive,
			Guidance: s.Guidance,
		},
		Timing: Timing{
			Gather: p.Gather, PollFast: 15 * time.Second, PollSlow: time.Minute, Deliveries: 5 * time.Minute, Sweep: 15 * time.Minute,
			IdleVM: p.IdleVM, Shutdown: 30 * time.Second,
		},
		Keep:   Keep{AfterEnd: 24 * time.Hour, Asleep: p.KeepAsleep, Transcripts: 90 * 24 * time.Hour, TranscriptMB: 256},
		Backup: Backup{Every: 24 * time.Hour, Keep: 14},
	}
}

// Policy returns the settings of the state machine that operators choose; the others have their defaults.
func (c Config) Policy() machine.Policy {
	p := machine.DefaultPolicy()
	p.Gather, p.IdleVM = c.Timing.Gather, c.Timing.IdleVM
	p.KeepAfterEnd, p.KeepAsleep = c.Keep.AfterEnd, c.Keep.Asleep
	p.Models = &machine.Models{Offers: c.Agent.Offers, Names: c.Agent.Offered()}
	p.VMHours = time.Duration(c.Limits.VMHours) * time.Hour
	return p
}

// Caps returns the limits on the cost of all tasks together.
func (c Config) Caps() store.Caps {
	return store.Caps{
		DayMicroUSD: int64(c.Limits.CostPerDay * 1e6), MonthMicroUSD: int64(c.Limits.CostPerMonth * 1e6),
		DayTokens: c.Limits.TokensPerDay, MonthTokens: c.Limits.TokensPerMonth,
	}
}

// Settings returns the settings of a repository without its own file.
func (c Config) Settings() settings.Settings {
	s := settings.Default()
	r := c.Repository
	s.Enabled, s.Plan, s.Branch, s.Commit, s.Title, s.Draft = c.Enabled, r.Plan, r.Branch, r.Commit, r.Title, r.Draft
	s.Deny, s.Guidance = r.Tools.Deny, r.Guidance
	s.Comments = settings.Comments(r.Comments)
	s.Merge = r.Merge
	s.Publish, s.VM.Sleep, s.Subscription = r.Publish, r.Sleep, c.allSubscribed()
	s.Limits = settings.Limits{
		Turns:        c.Limits.Turns,
		Duration:     c.Limits.Duration,
		PlanDuration: c.Limits.PlanDuration,
		Stall:        c.Limits.Stall,
		MicroUSD:     int64(c.Limits.Cost * 1e6),
		RunMicroUSD:  int64(c.Limits.CostPerRun * 1e6),
		Tokens:       c.Limits.Tokens,
		RunTokens:    c.Limits.TokensPerRun,
		Remind:       c.Limits.Remind,
		Expire:       c.Limits.Expire,
		Checks:       c.Limits.Checks,
	}
	return s
}
