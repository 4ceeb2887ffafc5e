// Package settings has the settings of a repository, as they are stored with a task. Start at [Settings].
//
// Package config reads them from `.errand.yml`.
package settings

import "time"

// Settings are the settings of a repository: the `.errand.yml` of its default branch (or of the organization's
// `.github` repository), on top of the operator's defaults. They are read when a task starts and when it is replanned,
// and stored with the task.
type Settings struct {
	Enabled bool     `json:"enabled" yaml:"enabled"`
	Plan    PlanMode `json:"plan" yaml:"plan"`
	Base    string   `json:"base,omitempty" yaml:"base"`
	// Branch, Commit and Title are templates over {key} {number} {slug} {task}.
	Branch string  `json:"branch" yaml:"branch"`
	Commit string  `json:"commit" yaml:"commit"`
	Title  string  `json:"title" yaml:"title"`
	Key    KeyRule `json:"key,omitzero" yaml:"key"`
	// Draft and Merge decide what errand does to get a pull request merged.
	Draft DraftMode `json:"draft,omitzero" yaml:"draft"`
	Merge MergeMode `json:"merge,omitempty" yaml:"merge"`
	// Resolve resolves the review threads that a round has addressed.
	Resolve bool `json:"resolve,omitempty" yaml:"resolve"`
	// MergeCommits allows merges of the base branch in the agent's commits.
	MergeCommits bool `json:"merge_commits,omitempty" yaml:"merge_commits"`
	// Trailers adds a Co-authored-by line, and SignOff a Signed-off-by line, of the person who approved the plan to commit
	// messages.
	Trailers bool `json:"trailers,omitempty" yaml:"trailers"`
	SignOff  bool `json:"signoff,omitempty" yaml:"signoff"`
	// Comments decides what comments show.
	Comments Comments `json:"comments,omitzero" yaml:"comments"`
	// Publish decides whether people see a changeset before it is on GitHub.
	Publish PublishMode `json:"publish,omitempty" yaml:"publish"`
	Setup   []Command   `json:"setup,omitempty" yaml:"setup"`
	Check   []Command   `json:"check,omitempty" yaml:"check"`
	// Gates judge changed code by the reports of the checks.
	Gates Gates `json:"gates,omitzero" yaml:"gates"`
	// Env is set on VMs for set-up, agents and checks. It must not contain secrets.
	Env        map[string]string `json:"env,omitempty" yaml:"env"`
	Protected  []string          `json:"protected,omitempty" yaml:"-"`             // only of tasks started by an older version: the patterns of the operator and the repository
	Deny       []string          `json:"deny,omitempty" yaml:"deny"`               // command prefixes that agents may not run
	Guidance   []string          `json:"guidance,omitempty" yaml:"guidance"`       // files with instructions for agents
	AllowUsers []string          `json:"allow_users,omitempty" yaml:"allow_users"` // text by these users is visible to agents
	AllowBots  []string          `json:"allow_bots,omitempty" yaml:"allow_bots"`
	Limits     Limits            `json:"limits" yaml:"limits"`
	VM         VM                `json:"vm,omitzero" yaml:"vm"`
	// Shell has the command prefixes that agents may run, except those in Deny.
	Shell Shell `json:"shell,omitzero" yaml:"shell"`
	// Subscription reports whether agents use models on subscriptions only, where calls cost nothing.
	Subscription bool `json:"subscription,omitempty" yaml:"-"`
	// Gate has the repository's settings of the push gate. The operator's are not stored with the task, so that a
	// refused task can continue after they are changed.
	Gate Gate `json:"gate,omitzero" yaml:"gate"`
	// Keep lists directories, relative to the checkout or below ~/, that are saved with it, such as caches.
	Keep []string `json:"keep,omitempty" yaml:"keep"`
}

// Gate has the settings of the push gate by one side, the operator or a repository. In a repository's, nil and zero
// mean the operator's value.
type Gate struct {
	// SecretsAllowedIn lists patterns of paths in which possible secrets are ignored.
	SecretsAllowedIn []string `json:"secrets_allowed_in,omitzero" yaml:"secrets_allowed_in"`
	MaxPaths         int      `json:"max_paths,omitempty" yaml:"max_paths"`
	MaxBytes         int64    `json:"max_bytes,omitempty" yaml:"max_bytes"`
	Protected        []string `json:"protected,omitempty" yaml:"protected"`
	// Unprotected lists patterns of paths that may be changed although the operator protects them.
	Unprotected []string `json:"unprotected,omitzero" yaml:"unprotected"`
}

// Gates are gates on changed code: the lowest accepted percentages of changed lines that tests cover, and of mutants on them
// that tests detect. Zero means none. Reports are patterns of the paths of reports, empty for the usual ones.
type Gates struct {
	Coverage int      `json:"coverage,omitempty" yaml:"coverage"`
	Mutation int      `json:"mutation,omitempty" yaml:"mutation"`
	Reports  []string `json:"reports,omitempty" yaml:"reports"`
}

// Shell has the command prefixes that agents may run. The zero value means auto-detection.
type Shell struct {
	// All allows every command that is not denied.
	All bool `json:"all,omitempty" yaml:"all"`
	// Set reports whether people wrote the list, which may be empty; otherwise it was auto-detected.
	Set      bool     `json:"set,omitempty" yaml:"set"`
	Commands []string `json:"commands,omitempty" yaml:"commands"`
}

// VM are a repository's requirements for its VMs. Zero means none.
type VM struct {
	MinVCPU     int       `json:"min_vcpu,omitempty" yaml:"min_vcpu"`
	MinMemoryMB int       `json:"min_memory_mb,omitempty" yaml:"min_memory_mb"`
	MinDiskGB   int       `json:"min_disk_gb,omitempty" yaml:"min_disk_gb"`
	Sleep       SleepMode `json:"sleep,omitempty" yaml:"sleep"`
}

// Comments decides what comments show.
type Comments struct {
	Money MoneyMode `json:"money,omitempty" yaml:"money"`
}

// MoneyMode decides where comments name costs. The empty one is MoneyPrivate.
type MoneyMode string

// The money modes.
const (
	MoneyAlways  MoneyMode = "always"
	MoneyPrivate MoneyMode = "private" // in private repositories only
	MoneyNever   MoneyMode = "never"
)

// Shown reports whether comments name costs in a repository, which is private or not.
func (m MoneyMode) Shown(private bool) bool {
	return m == MoneyAlways || m != MoneyNever && private
}

// Or returns the mode of a repository over that of the operator, whose MoneyNever cannot be lifted.
func (m MoneyMode) Or(operator MoneyMode) MoneyMode {
	if m == "" || operator == MoneyNever {
		return operator
	}
	return m
}

// PlanMode decides which plans need a person's approval.
type PlanMode string

// The plan modes.
const (
	PlanTwoStep PlanMode = "two-step" // preliminary plan, 👍, detailed plan, 👍
	PlanOneStep PlanMode = "one-step" // detailed plan, 👍
	PlanNone    PlanMode = "none"     // implement without a plan
)

// PublishMode decides when a changeset is published. The empty one is PublishAtOnce.
type PublishMode string

// The publish modes. An App's push starts the repository's workflows with their secrets: use PublishAfterApproval if
// people must see changes before that.
const (
	PublishAtOnce        PublishMode = "at-once"        // as soon as the push gate and the checks allow it
	PublishAfterApproval PublishMode = "after-approval" // after a person has also approved the diff
)

// Stricter returns the stricter of two modes.
func (m PublishMode) Stricter(other PublishMode) PublishMode {
	if m == PublishAfterApproval {
		return m
	}
	return other
}

// KeyRule finds a ticket key, such as ABC-123, in the title, the text or trusted comments.
type KeyRule struct {
	Pattern  string `json:"pattern,omitempty" yaml:"pattern"` // RE2
	Required bool   `json:"required,omitempty" yaml:"required"`
}

// Command is one of the repository's own commands.
type Command struct {
	Name    string        `json:"name,omitempty" yaml:"name"`
	Run     string        `json:"run" yaml:"run"`
	Timeout time.Duration `json:"timeout,omitempty" yaml:"timeout"`
	// BeforePR marks a slow check, which runs only after all others succeeded.
	BeforePR bool `json:"before_pr,omitempty" yaml:"before_pr"`
}

// Limits limit a task. A repository's limits count only up to the operator's.
type Limits struct {
	Turns        int           `json:"turns" yaml:"turns"`                 // per run; 0 leaves it to the cap on cost
	Duration     time.Duration `json:"duration" yaml:"duration"`           // agent activity per task
	PlanDuration time.Duration `json:"plan_duration" yaml:"plan_duration"` // of one planning run
	Stall        time.Duration `json:"stall" yaml:"stall"`
	MicroUSD     int64         `json:"micro_usd" yaml:"-"` // from limits.cost
	RunMicroUSD  int64         `json:"run_micro_usd,omitempty" yaml:"-"`
	Tokens       int64         `json:"tokens,omitempty" yaml:"tokens"`
	RunTokens    int64         `json:"run_tokens,omitempty" yaml:"tokens_per_run"`
	Remind       time.Duration `json:"remind" yaml:"remind"`
	Expire       time.Duration `json:"expire" yaml:"expire"`
	Checks       int           `json:"checks" yaml:"checks"` // rounds of failed checks before publishing anyway
}

// Default returns the settings that apply without configuration.
func Default() Settings {
	return Settings{
		Guidance: []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md", ".errand/AGENT.md"},
		Enabled:  true,
		Plan:     PlanTwoStep,
		Branch:   "errand/{number}-{slug}",
		Commit:   "{task}",
		Title:    "{task}",
		Publish:  PublishAtOnce,
		Draft:    DraftNever,
		Merge:    MergeNever,
		Limits: Limits{
			Duration: 2 * time.Hour, PlanDuration: 30 * time.Minute, Stall: 10 * time.Minute,
			MicroUSD: 10_000_000, Remind: 3 * 24 * time.Hour, Expire: 14 * 24 * time.Hour, Checks: 3,
		},
	}
}

// SleepMode is the way in which a task's work is saved while its VM is not needed. The empty one is SleepArchive.
type SleepMode string

// The ways to suspend a task. Both save the agent's session.
const (
	SleepArchive  SleepMode = "archive"  // changes, session and named caches are archived by errand
	SleepSnapshot SleepMode = "snapshot" // the provider stores an image of the whole disk
)
