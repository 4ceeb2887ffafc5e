package state

import "time"

// Settings are a repository's own: the `.errand.yml` of its default branch (or of the organisation's
// `.github` repository), over the operator's defaults. They are read when a task starts and when it
// is asked to plan anew, and kept with the task.
type Settings struct {
	Enabled bool     `json:"enabled" yaml:"enabled"`
	Plan    PlanMode `json:"plan" yaml:"plan"`
	Base    string   `json:"base,omitempty" yaml:"base"`
	// Branch, Commit and Title are templates over {key} {number} {slug} {task}.
	Branch string  `json:"branch" yaml:"branch"`
	Commit string  `json:"commit" yaml:"commit"`
	Title  string  `json:"title" yaml:"title"`
	Key    KeyRule `json:"key,omitzero" yaml:"key"`
	Draft  bool    `json:"draft,omitempty" yaml:"draft"`
	// MergeCommits allows merges of the base branch in what the agent commits.
	MergeCommits bool `json:"merge_commits,omitempty" yaml:"merge_commits"`
	// Publish says whether people see a changeset before it is on GitHub.
	Publish PublishMode `json:"publish,omitempty" yaml:"publish"`
	Setup   []Command   `json:"setup,omitempty" yaml:"setup"`
	Check   []Command   `json:"check,omitempty" yaml:"check"`
	// Env is set on VMs for set-up, agents and checks. It holds no secret.
	Env        map[string]string `json:"env,omitempty" yaml:"env"`
	Protected  []string          `json:"protected,omitempty" yaml:"-"`             // of tasks that an older version started: the operator's patterns and the repository's
	Deny       []string          `json:"deny,omitempty" yaml:"deny"`               // beginnings of commands that agents' own rules refuse
	Guidance   []string          `json:"guidance,omitempty" yaml:"guidance"`       // files with what the repository says to agents
	AllowUsers []string          `json:"allow_users,omitempty" yaml:"allow_users"` // text by these is visible
	AllowBots  []string          `json:"allow_bots,omitempty" yaml:"allow_bots"`
	Limits     Limits            `json:"limits" yaml:"limits"`
	VM         VMSettings        `json:"vm,omitzero" yaml:"vm"`
	// Shell is what agents may call in a shell, but for what Deny takes away.
	Shell Shell `json:"shell,omitzero" yaml:"shell"`
	// Subscription says that agents ask for models on subscriptions only: nothing is spent by the call.
	Subscription bool `json:"subscription,omitempty" yaml:"-"`
	// Gate is what the repository itself sets of the push gate. The operator's is not kept with a task, so that a
	// refused one can go on once it was changed.
	Gate Gate `json:"gate,omitzero" yaml:"gate"`
	// Keep are folders, relative to the checkout or below ~/, that are put away with it, such as caches.
	Keep []string `json:"keep,omitempty" yaml:"keep"`
}

// Gate is one side's settings of the push gate, the operator's or a repository's. Of a repository, nil and zero
// stand for what the operator has set.
type Gate struct {
	// SecretsAllowedIn are patterns of paths in which what looks like a secret does not count.
	SecretsAllowedIn []string `json:"secrets_allowed_in,omitzero" yaml:"secrets_allowed_in"`
	MaxPaths         int      `json:"max_paths,omitempty" yaml:"max_paths"`
	MaxBytes         int64    `json:"max_bytes,omitempty" yaml:"max_bytes"`
	Protected        []string `json:"protected,omitempty" yaml:"protected"`
	// Unprotected are patterns of paths that may be changed although the operator protects them.
	Unprotected []string `json:"unprotected,omitzero" yaml:"unprotected"`
}

// Shell is what agents may call in a shell, by how commands begin. The zero value is what is found.
type Shell struct {
	// All is any command but those that are denied.
	All bool `json:"all,omitempty" yaml:"all"`
	// Set says that people wrote the list, which may be empty; else it is what the repository was found to need.
	Set      bool     `json:"set,omitempty" yaml:"set"`
	Commands []string `json:"commands,omitempty" yaml:"commands"`
}

// VMSettings is what a repository asks of its VMs. Zero means no wish.
type VMSettings struct {
	MinVCPU     int       `json:"min_vcpu,omitempty" yaml:"min_vcpu"`
	MinMemoryMB int       `json:"min_memory_mb,omitempty" yaml:"min_memory_mb"`
	MinDiskGB   int       `json:"min_disk_gb,omitempty" yaml:"min_disk_gb"`
	Sleep       SleepMode `json:"sleep,omitempty" yaml:"sleep"`
}

// PlanMode says which plans need a person's approval.
type PlanMode string

// The plan modes.
const (
	PlanTwoStep PlanMode = "two-step" // preliminary plan, 👍, thorough plan, 👍
	PlanOneStep PlanMode = "one-step" // thorough plan, 👍
	PlanNone    PlanMode = "none"     // implement at once
)

// PublishMode says when a changeset leaves errand. The empty one is PublishAtOnce.
type PublishMode string

// The publish modes. What an App pushes starts the repository's workflows with its secrets: who needs
// people's eyes before that takes PublishAfterApproval.
const (
	PublishAtOnce        PublishMode = "at-once"        // as soon as the push gate and the checks let it
	PublishAfterApproval PublishMode = "after-approval" // when a person has approved the diff, too
)

// Stricter returns the stricter of two modes.
func (m PublishMode) Stricter(other PublishMode) PublishMode {
	if m == PublishAfterApproval {
		return m
	}
	return other
}

// KeyRule finds a ticket key, such as ABC-123, in title, body or trusted comments.
type KeyRule struct {
	Pattern  string `json:"pattern,omitempty" yaml:"pattern"` // RE2
	Required bool   `json:"required,omitempty" yaml:"required"`
}

// Command is one of the repository's own commands.
type Command struct {
	Name    string        `json:"name,omitempty" yaml:"name"`
	Run     string        `json:"run" yaml:"run"`
	Timeout time.Duration `json:"timeout,omitempty" yaml:"timeout"`
}

// Limits bound a task. A repository's limits count only up to the operator's.
type Limits struct {
	Turns        int           `json:"turns" yaml:"turns"`                 // per run
	Duration     time.Duration `json:"duration" yaml:"duration"`           // agent activity per task
	PlanDuration time.Duration `json:"plan_duration" yaml:"plan_duration"` // of one planning run
	Stall        time.Duration `json:"stall" yaml:"stall"`
	MicroUSD     int64         `json:"micro_usd" yaml:"-"` // from limits.cost
	RunMicroUSD  int64         `json:"run_micro_usd,omitempty" yaml:"-"`
	Tokens       int64         `json:"tokens,omitempty" yaml:"tokens"`
	RunTokens    int64         `json:"run_tokens,omitempty" yaml:"tokens_per_run"`
	Remind       time.Duration `json:"remind" yaml:"remind"`
	Expire       time.Duration `json:"expire" yaml:"expire"`
	Checks       int           `json:"checks" yaml:"checks"` // rounds of failing checks before going on
}

// DefaultSettings returns what applies where nothing is configured.
func DefaultSettings() Settings {
	return Settings{
		Guidance: []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md", ".errand/AGENT.md"},
		Enabled:  true,
		Plan:     PlanTwoStep,
		Branch:   "errand/{number}-{slug}",
		Commit:   "{task}",
		Title:    "{task}",
		Publish:  PublishAtOnce,
		Limits: Limits{
			Turns: 30, Duration: 2 * time.Hour, PlanDuration: 30 * time.Minute, Stall: 10 * time.Minute,
			MicroUSD: 10_000_000, Remind: 3 * 24 * time.Hour, Expire: 14 * 24 * time.Hour, Checks: 3,
		},
	}
}
