// Package config is everything that an operator can set, in one strict YAML file, and what a
// repository can set in its `.errand.yml`.
//
// Load reads, fills in defaults, resolves secrets and validates; every error names line, key and what
// to write. Secrets stand in the file as `env:NAME` or `file:/path`, so that the file itself can be
// shown to anybody. Start reading at Config; config.example.yml documents every key.
package config

import (
	"time"

	"github.com/errand-bot/errand/internal/agent"
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
	// PublicURL is how people reach Listen, for links in comments; empty leaves links out.
	PublicURL string `yaml:"public_url"`

	Log        Log              `yaml:"log"`
	GitHub     GitHub           `yaml:"github"`
	Trigger    Trigger          `yaml:"trigger"`
	Trust      Trust            `yaml:"trust"`
	Admin      Admin            `yaml:"admin"`
	Agent      agent.Config     `yaml:"agent"`
	Models     map[string]Model `yaml:"models"`
	Provider   string           `yaml:"provider"`
	Local      Local            `yaml:"local"`
	Limits     Limits           `yaml:"limits"`
	Repository Repository       `yaml:"repository"`
	Timing     Timing           `yaml:"timing"`
	Keep       Keep             `yaml:"keep"`
}

// Log is how errand logs.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `yaml:"level"`
	// Format is json or console.
	Format string `yaml:"format"`
}

// GitHub is the App and where its GitHub is.
type GitHub struct {
	// AppID is the App's number, from its settings page.
	AppID int64 `yaml:"app_id"`
	// PrivateKey is the App's key in PEM form: `file:/etc/errand/app.pem` or `env:NAME`.
	PrivateKey Secret `yaml:"private_key"`
	// WebhookSecret is what the App's webhooks are signed with; it is mandatory.
	WebhookSecret Secret `yaml:"webhook_secret"`
	// URL is https://github.com, or that of a GitHub Enterprise Server.
	URL string `yaml:"url"`
	// APIURL and GraphQLURL follow from URL unless set.
	APIURL     string `yaml:"api_url"`
	GraphQLURL string `yaml:"graphql_url"`
}

// Trigger is what starts a task, besides a mention.
type Trigger struct {
	// Assignee is the login of a machine user whose assignment starts a task. The App's own account
	// counts too, should GitHub let it be assigned.
	Assignee string `yaml:"assignee"`
	// Label starts a task when it is put on an issue; taking it away cancels.
	Label string `yaml:"label"`
}

// Trust is whose text the agent may see besides that of people with write permission.
type Trust struct {
	AllowUsers []string `yaml:"allow_users"`
	AllowBots  []string `yaml:"allow_bots"`
}

// Admin guards the status pages and metrics.
type Admin struct {
	// Token is asked for on every page but webhook and health.
	Token Secret `yaml:"token"`
	// Listen serves the pages on an address of their own, for instance "127.0.0.1:9090", and then
	// without a token if none is set.
	Listen string `yaml:"listen"`
}

// Model is a model provider's API, reached by VMs through the tether only.
type Model struct {
	// URL is the API's address, without a slash at the end.
	URL string `yaml:"url"`
	// Key is put into every request here; it never reaches a VM.
	Key Secret `yaml:"key"`
	// Header carries the key: X-Api-Key, or Authorization for a bearer token.
	Header string `yaml:"header"`
}

// Local configures the provider of boxes on this host.
type Local struct {
	// Kind is auto, bwrap, userns or plain. Auto takes the best that works here.
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
	Path     string `yaml:"path"`
	Writable bool   `yaml:"writable"` // such as a cache that boxes share
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
	// Cost is the cap of a task in US dollars.
	Cost float64 `yaml:"cost"`
	// VMs is how many there may be at once.
	VMs int `yaml:"vms"`
	// Remind and Expire are when an unapproved plan is brought to mind and given up.
	Remind time.Duration `yaml:"remind"`
	Expire time.Duration `yaml:"expire"`
	// Checks is how often failing checks go back to the agent before the pull request says so.
	Checks int `yaml:"checks"`
}

// Repository is what applies to repositories whose `.errand.yml` says nothing else.
type Repository struct {
	// Plan is two-step, one-step or none.
	Plan state.PlanMode `yaml:"plan"`
	// Branch, Commit and Title are templates over {key} {number} {slug} {task}.
	Branch string `yaml:"branch"`
	Commit string `yaml:"commit"`
	Title  string `yaml:"title"`
	// Draft opens pull requests as drafts.
	Draft bool `yaml:"draft"`
	// Protected are path patterns that no changeset may touch, besides the built-in ones.
	Protected []string `yaml:"protected"`
}

// Timing is how quick errand is. The defaults are for production; tests and the demo set less.
type Timing struct {
	Gather         time.Duration `yaml:"gather"`          // reviews are gathered into one round
	StatusGap      time.Duration `yaml:"status_gap"`      // between two edits of the status comment
	Settle         time.Duration `yaml:"settle"`          // a bare approve counts for revisions so old
	Backoff        time.Duration `yaml:"backoff"`         // first wait of an interrupted task
	BackoffMax     time.Duration `yaml:"backoff_max"`     // its limit
	Recheck        time.Duration `yaml:"recheck"`         // a waiting task looks again
	PollFast       time.Duration `yaml:"poll_fast"`       // reactions, while a plan is young
	PollSlow       time.Duration `yaml:"poll_slow"`       // reactions, otherwise
	PollGap        time.Duration `yaml:"poll_gap"`        // reactions, at the least
	Deliveries     time.Duration `yaml:"deliveries"`      // sweep for webhooks that got lost
	Sweep          time.Duration `yaml:"sweep"`           // comparison with GitHub's present state
	Progress       time.Duration `yaml:"progress"`        // a run's signs of life in the store
	Retry          time.Duration `yaml:"retry"`           // first wait of a job that went wrong
	Shutdown       time.Duration `yaml:"shutdown"`        // graceful end
	ReapGrace      time.Duration `yaml:"reap_grace"`      // a VM without an owner
	WritesBurst    int           `yaml:"writes_burst"`    // GitHub writes at once per installation
	WritesEvery    time.Duration `yaml:"writes_every"`    // and one in so long after that
	ObjectsEvery   time.Duration `yaml:"objects_every"`   // git objects, which nobody sees
	MaxAttempts    int           `yaml:"max_attempts"`    // launches of the same work in a row
	UnreachableFor time.Duration `yaml:"unreachable_for"` // after so long a VM is lost
}

// Keep is how long things stay.
type Keep struct {
	// AfterEnd is how long the work of an ended task is kept.
	AfterEnd time.Duration `yaml:"after_end"`
	// Transcripts is how long transcripts of runs are kept.
	Transcripts time.Duration `yaml:"transcripts"`
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
		Provider: "local",
		Local:    Local{Kind: "auto", IdleExit: 15 * time.Minute},
		Limits: Limits{
			Turns: s.Limits.Turns, Duration: s.Limits.Duration, PlanDuration: s.Limits.PlanDuration, Stall: s.Limits.Stall,
			Cost: 10, VMs: 3, Remind: s.Limits.Remind, Expire: s.Limits.Expire, Checks: s.Limits.Checks,
		},
		Repository: Repository{Plan: s.Plan, Branch: s.Branch, Commit: s.Commit, Title: s.Title},
		Timing: Timing{
			Gather: p.Gather, StatusGap: p.StatusGap, Settle: p.SettleFor, Backoff: p.Backoff, BackoffMax: p.BackoffMax, Recheck: p.Recheck,
			PollFast: 15 * time.Second, PollSlow: time.Minute, PollGap: 2 * time.Second, Deliveries: 5 * time.Minute, Sweep: 15 * time.Minute,
			Progress: 5 * time.Second, Retry: 2 * time.Second, Shutdown: 30 * time.Second, ReapGrace: 15 * time.Minute,
			WritesBurst: 20, WritesEvery: time.Second, ObjectsEvery: 330 * time.Millisecond, MaxAttempts: p.MaxAttempts, UnreachableFor: 10 * time.Minute,
		},
		Keep: Keep{AfterEnd: 24 * time.Hour, Transcripts: 90 * 24 * time.Hour},
	}
}

// Policy is what the state machine needs of the configuration.
func (c Config) Policy() state.Policy {
	return state.Policy{
		Gather: c.Timing.Gather, StatusGap: c.Timing.StatusGap, SettleFor: c.Timing.Settle, Backoff: c.Timing.Backoff,
		BackoffMax: c.Timing.BackoffMax, Recheck: c.Timing.Recheck, MaxAttempts: c.Timing.MaxAttempts, KeepAfterEnd: c.Keep.AfterEnd,
	}
}

// Settings are the defaults under every repository's own.
func (c Config) Settings() state.Settings {
	s := state.DefaultSettings()
	r := c.Repository
	s.Enabled, s.Plan, s.Branch, s.Commit, s.Title, s.Draft, s.Protected = c.Enabled, r.Plan, r.Branch, r.Commit, r.Title, r.Draft, r.Protected
	s.Limits = state.Limits{
		Turns: c.Limits.Turns, Duration: c.Limits.Duration, PlanDuration: c.Limits.PlanDuration, Stall: c.Limits.Stall,
		MicroUSD: int64(c.Limits.Cost * 1e6), Remind: c.Limits.Remind, Expire: c.Limits.Expire, Checks: c.Limits.Checks,
	}
	return s
}
