package config

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/state/settings"
)

// RepoFile is a repository's `.errand.yml`. The operator's settings apply to everything that it does not set.
type RepoFile struct {
	// Enabled starts new tasks in this repository.
	Enabled *bool `yaml:"enabled"`
	// Plan is two-step (a short plan, 👍, a detailed plan, 👍), one-step (a detailed plan, 👍) or none.
	Plan *settings.PlanMode `yaml:"plan"`
	// Base is the branch that errand's branches start from and are merged into; by default the default branch.
	Base string `yaml:"base"`
	// Branch is the template of the branch name, with {key} {number} {slug} {task}. If it contains {number} or {key},
	// branches with a different {slug} count as existing work on the issue too.
	Branch *string `yaml:"branch"`
	// Commit is the template of the first line of commit messages, with the same placeholders. A line that does not
	// match is rewritten; see above.
	Commit *string `yaml:"commit"`
	// Title is the template of the pull request's title, with the same placeholders.
	Title *string `yaml:"title"`
	// Trailers adds a Co-authored-by line to every commit message, with the person who approved the plan.
	Trailers bool `yaml:"trailers"`
	// Signoff adds a Signed-off-by line of the person who approved the plan to every commit message, also in later review
	// rounds. The plan comment says so, because a sign-off is that person's own act; so it needs a plan that people approve.
	SignOff bool `yaml:"signoff"`
	// Key finds the ticket key that {key} stands for.
	Key KeyRule `yaml:"key"`
	// Draft is never, until-green or always: whether pull requests are opened as drafts. With until-green errand marks them ready for
	// review when their checks succeed, or after 10 minutes in which no required check has started; with always people do.
	Draft *settings.DraftMode `yaml:"draft"`
	// Merge is never or when-approved, if errand's operator allows it: errand merges a pull request when a person with write access has
	// approved its newest commit, its checks succeed, and no thread is unresolved.
	Merge settings.MergeMode `yaml:"merge"`
	// Publish is at-once or after-approval, which pushes nothing before a person has approved the diff. If the operator
	// requires after-approval, at-once does not turn it off.
	Publish settings.PublishMode `yaml:"publish"`
	// Resolve makes errand resolve the review threads that it has addressed, with a commit or an explanation. By default
	// people resolve them. A thread stays open if errand asks a question there, or if somebody has written there since.
	Resolve bool `yaml:"resolve"`
	// Comments decides what errand's comments show.
	Comments Comments `yaml:"comments"`
	// MergeCommits lets the agent merge the newest commit of the base branch into its own branch. Changes that a merge
	// drops or makes on either side are checked and shown like any other change. A round that resolves a conflict with the base
	// may always do it.
	MergeCommits bool `yaml:"merge_commits"`
	// Setup lists commands that prepare a fresh checkout.
	Setup []RepoCommand `yaml:"setup"`
	// Check lists commands that must succeed before a pull request is opened. In them {changed_files} stands for the
	// files that differ from the base, and {affected_modules} for the modules that contain those files.
	Check []RepoCommand `yaml:"check"`
	// Gates sets how well tests have to cover the lines that a pull request changes.
	Gates RepoGates `yaml:"gates"`
	// Env sets variables for setup, agents and check: {NAME: value}. Do not put secrets there. Variables that errand and
	// the agents' programs use themselves cannot be changed.
	Env map[string]string `yaml:"env"`
	// Gate limits the changes that errand publishes for this repository, within the operator's limits.
	Gate RepoGate `yaml:"gate"`
	// Tools restricts which commands agents may run, in addition to the operator's restrictions.
	Tools Tools `yaml:"tools"`
	// Trust lists whose text agents see in this repository.
	Trust Trust `yaml:"trust"`
	// Limits can lower the operator's limits.
	Limits RepoLimits `yaml:"limits"`
	// VM sets requirements for the repository's VMs.
	VM RepoVM `yaml:"vm"`
	// Guidance lists files of the base branch with the repository's instructions for agents, and replaces the operator's
	// list; an empty list means none.
	Guidance *[]string `yaml:"guidance"`
	// Keep lists folders that are archived with the work of a suspended task, such as caches: relative to the checkout,
	// or to the home directory if they begin with ~/; 2 GB in total.
	Keep []string `yaml:"keep"`
}

// Comments decides what errand's comments show.
type Comments struct {
	// Money decides where comments name costs, caps and tokens: private (in private repositories only; the default), always
	// or never. The operator's never cannot be changed. When a repository becomes public, the status comments of open tasks
	// change; other comments that were posted before stay as they are. The pages show costs in any case.
	Money settings.MoneyMode `yaml:"money"`
}

func (c Comments) problems(r *report, key string) {
	r.unless(slices.Contains([]settings.MoneyMode{"", settings.MoneyAlways, settings.MoneyPrivate, settings.MoneyNever}, c.Money), key+".money",
		"%q: write private, always or never", cut(string(c.Money)))
}

// KeyRule finds a ticket key, such as ABC-123, in the title, body or trusted comments.
type KeyRule struct {
	// Pattern is a regular expression (RE2 syntax).
	Pattern string `yaml:"pattern"`
	// Required asks for a key once if none is found.
	Required bool `yaml:"required"`
}

// RepoCommand is one of the repository's commands, written as plain text or as a mapping.
type RepoCommand struct {
	// Name is shown instead of the command.
	Name string `yaml:"name"`
	// Run is the command; a shell runs it in the checkout.
	Run string `yaml:"run"`
	// Timeout ends the command; 10 minutes by default, at most 2 hours.
	Timeout time.Duration `yaml:"timeout"`
	// BeforePR is for slow commands of check and not allowed in setup: they run only after all others have succeeded, right before errand publishes, and
	// agents are not asked to run them before each commit.
	BeforePR bool `yaml:"before_pr"`
}

// RepoLimits are a repository's own limits, which cannot exceed the operator's.
type RepoLimits struct {
	// Turns is the maximum number of model calls in one run.
	Turns int `yaml:"turns"`
	// Duration is the total time that agents may work on a task; `retry` resets it.
	Duration time.Duration `yaml:"duration"`
	// PlanDuration is the maximum duration of one planning run.
	PlanDuration time.Duration `yaml:"plan_duration"`
	// Cost is the maximum cost of a task in US dollars.
	Cost float64 `yaml:"cost"`
	// CostPerRun is the maximum cost of one run in US dollars.
	CostPerRun float64 `yaml:"cost_per_run"`
	// Tokens is the maximum number of tokens of a task, of every kind.
	Tokens int64 `yaml:"tokens"`
	// TokensPerRun is the maximum number of tokens of one run.
	TokensPerRun int64 `yaml:"tokens_per_run"`
	// Checks is the maximum number of times that an agent is asked to repair failing checks, on GitHub at most 3 times in a row. 0 leaves failing
	// checks to people.
	Checks *int `yaml:"checks"`
}

// Limits of a repository's settings.
const (
	maxRepoFile        = 64 << 10 // bytes
	maxCommands        = 20
	defaultRepoTimeout = 10 * time.Minute
	maxRepoTimeout     = 2 * time.Hour
)

// ParseRepo reads a `.errand.yml` over the operator's defaults. The error is an *Invalid whose text is for people: line,
// key and correction. If holdsSecret is not nil, it reports whether a text contains a secret; such texts are refused.
func ParseRepo(data []byte, defaults settings.Settings, holdsSecret func(text string) bool) (settings.Settings, error) {
	var f RepoFile
	doc, err := decode(data, maxRepoFile, &f)
	if err != nil {
		return defaults, err
	}
	s := defaults
	if f.Enabled != nil {
		s.Enabled = s.Enabled && *f.Enabled
	}
	set(&s.Plan, f.Plan)
	set(&s.Branch, f.Branch)
	set(&s.Commit, f.Commit)
	set(&s.Title, f.Title)
	set(&s.Draft, f.Draft)
	s.Merge = f.Merge.Of(defaults.Merge)
	s.Publish = defaults.Publish.Stricter(cmp.Or(f.Publish, defaults.Publish))
	s.Base, s.Key, s.MergeCommits, s.Resolve = f.Base, settings.KeyRule(f.Key), f.MergeCommits, f.Resolve
	s.Comments.Money = f.Comments.Money.Or(defaults.Comments.Money)
	s.Trailers, s.SignOff = f.Trailers, f.SignOff
	s.Gate = f.Gate.settings()
	s.Deny = slices.Concat(defaults.Deny, f.Tools.Deny)
	if f.Tools.Shell != nil {
		s.Shell = f.Tools.Shell.shell()
	}
	set(&s.Guidance, f.Guidance)
	s.AllowUsers, s.AllowBots = slices.Clone(f.Trust.AllowUsers), slices.Clone(f.Trust.AllowBots)
	s.Setup, s.Check, s.Gates = commands(f.Setup), commands(f.Check), settings.Gates(f.Gates)
	s.Env = maps.Clone(f.Env)
	f.Limits.apply(&s.Limits)
	s.VM, s.Keep = f.VM.settings(defaults.VM), slices.Clone(f.Keep)
	r := f.problems(s)
	envProblems(&r, f.Env, holdsSecret)
	if err := invalid(r, doc.line); err != nil {
		return defaults, err
	}
	return s, nil
}

// set overwrites settings with those of the repository.
func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func commands(list []RepoCommand) []settings.Command {
	var out []settings.Command
	for _, c := range list {
		if c.Timeout == 0 {
			c.Timeout = defaultRepoTimeout
		}
		out = append(out, settings.Command{Name: c.Name, Run: c.Run, Timeout: c.Timeout, BeforePR: c.BeforePR})
	}
	return out
}

// UnmarshalYAML accepts plain text as a command without a name.
func (c *RepoCommand) UnmarshalYAML(unmarshal func(any) error) error {
	var text string
	if err := unmarshal(&text); err == nil {
		c.Run = text
		return nil
	}
	type plain RepoCommand
	return unmarshal((*plain)(c))
}

// apply lowers limits; a repository cannot raise them.
func (l RepoLimits) apply(to *settings.Limits) {
	lower(&to.Turns, l.Turns)
	if l.Duration > 0 {
		to.Duration = min(to.Duration, l.Duration)
	}
	if l.PlanDuration > 0 {
		to.PlanDuration = min(to.PlanDuration, l.PlanDuration)
	}
	if l.Cost > 0 {
		to.MicroUSD = int64(min(float64(to.MicroUSD), l.Cost*1e6))
	}
	lower(&to.RunMicroUSD, int64(min(l.CostPerRun, 1e6)*1e6))
	lower(&to.Tokens, l.Tokens)
	lower(&to.RunTokens, l.TokensPerRun)
	if l.Checks != nil {
		to.Checks = min(to.Checks, max(0, *l.Checks))
	}
}

// lower reduces a limit to most, where 0 means no limit.
func lower[N int | int64](to *N, most N) {
	if most > 0 && (*to == 0 || most < *to) {
		*to = most
	}
}

// problems returns all problems of the file.
func (f RepoFile) problems(s settings.Settings) report {
	var r report
	planProblem(&r, "plan", s.Plan)
	publishProblem(&r, "publish", f.Publish)
	draftProblem(&r, "draft", s.Draft)
	r.unless(slices.Contains([]settings.MergeMode{"", settings.MergeNever, settings.MergeWhenApproved}, f.Merge), "merge",
		"%q: write never or when-approved", cut(string(f.Merge)))
	templateProblems(&r, "", s.Branch, s.Commit, s.Title)
	if _, err := regexp.Compile(f.Key.Pattern); err != nil {
		r.unless(false, "key.pattern", "%s; write a regular expression such as [A-Z]+-[0-9]+", cut(err.Error()))
	}
	r.unless(!f.Key.Required || f.Key.Pattern != "", "key.required", "a pattern is needed too, such as key.pattern: '[A-Z]+-[0-9]+'")
	r.unless(!f.SignOff || s.Plan != settings.PlanNone, "signoff", "needs a plan that people approve; write plan: one-step or two-step, or leave signoff out")
	f.Comments.problems(&r, "comments")
	f.Gate.problems(&r)
	f.Tools.problems(&r, "tools")
	commandProblems(&r, "setup", f.Setup)
	commandProblems(&r, "check", f.Check)
	placeholderProblems(&r, f.Setup, f.Check)
	f.Gates.problems(&r, f.Setup, f.Check)
	f.VM.problems(&r)
	keepProblems(&r, f.Keep)
	guidanceProblems(&r, "guidance", s.Guidance)
	l := f.Limits
	r.unless(l.Turns >= 0, "limits.turns", "must be greater than zero")
	r.unless(l.Cost >= 0, "limits.cost", "must be greater than zero")
	r.unless(l.CostPerRun >= 0, "limits.cost_per_run", "must be greater than zero")
	r.unless(l.Tokens >= 0, "limits.tokens", "must be greater than zero")
	r.unless(l.TokensPerRun >= 0, "limits.tokens_per_run", "must be greater than zero")
	r.unless(l.Checks == nil || *l.Checks >= 0, "limits.checks", "cannot be below zero")
	return r
}

func commandProblems(r *report, name string, list []RepoCommand) {
	r.unless(len(list) <= maxCommands, name, "%d commands are too many; write at most %d", len(list), maxCommands)
	for i, c := range list {
		key := fmt.Sprintf("%s[%d]", name, i)
		r.unless(strings.TrimSpace(c.Run) != "", key, "write the command, such as go test ./...")
		r.unless(c.Timeout <= maxRepoTimeout, key+".timeout", "at most %s", FormatDuration(maxRepoTimeout))
	}
}
