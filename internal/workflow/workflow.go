// Package workflow does the outside work of a task: one step per kind of job. A step reads the task,
// calls GitHub or a VM, and returns the Event that reports the result. It never changes a task.
//
// Every step may be repeated: after a crash, a lost lease or a lost answer it runs again
// with Job.Attempted set, and then looks for the effect before it causes it again. A step that finds that
// the task has changed meanwhile returns the event all the same; the transition table ignores it.
//
// The steps are in the packages below this one, by subject; this package has the table of jobs and the steps that end
// something: a run, a VM, saved work. Start with the table in New.
package workflow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/secretscan"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow/approval"
	"github.com/errand-bot/errand/internal/workflow/finish"
	"github.com/errand-bot/errand/internal/workflow/intake"
	"github.com/errand-bot/errand/internal/workflow/launch"
	"github.com/errand-bot/errand/internal/workflow/publish"
	"github.com/errand-bot/errand/internal/workflow/result"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/talk"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// Config has the dependencies and settings of the steps. All fields are required unless said otherwise.
type Config struct {
	Store  Store
	GitHub GitHub
	VMs    VMs
	Runner Runner
	Tether Tether
	Files  Files
	// Attachments reads the files attached to texts on GitHub; nil reads none.
	Attachments launch.Attachments
	// Sleeper keeps whole disks, for repositories that sleep by snapshot; nil where the provider cannot, which
	// then sleep by archive.
	Sleeper Sleeper
	// Agents has the adapters of agents; Agent is the configuration that they share, with their environment.
	Agents Agents
	Agent  registry.Config
	// Providers names the provider of models of each adapter.
	Providers map[string]string
	// Subscribed marks providers that are paid by subscription: caps on cost do not apply to them.
	Subscribed map[string]bool
	// SubscriptionTurns is the maximum number of turns of a run whose calls cost nothing: it is paid by subscription, or IsFree
	// returns true for its model.
	SubscriptionTurns int
	IsFree            func(model string) bool
	// Submodules lists which other repositories the agents of a repository, named as OWNER/NAME, may read, as patterns
	// with stars; it may be nil.
	Submodules func(repo string) []string
	// Authority returns the certificate, in PEM, of the authority for the private registries of a repository, nil if it uses none.
	Authority func(repo string) []byte
	// ShellFor returns the commands that the operator lets the agents of a repository, named as OWNER/NAME, call in a
	// shell; nil detects them.
	ShellFor func(repo string) settings.Shell
	// TestsFor returns the operator's data for the tests of a repository, named as OWNER/NAME; it may be nil.
	TestsFor func(repo string) workspace.Tests
	Redact   *trust.Redactor
	Scanner  *secretscan.Scanner
	// RepoConfig reads a `.errand.yml` over the operator's defaults. Its error is for people: line,
	// key, suggestion.
	RepoConfig func(data []byte) (settings.Settings, error)
	Defaults   settings.Settings
	// Gate has the operator's settings of the push gate: the limits of the repositories' settings.
	Gate settings.Gate
	// Memory is the memory of a VM in words, for prompts; it may be empty.
	Memory string
	// RealAgent is set for an agent other than the simulated one: it is refused where nothing isolates it,
	// unless AllowUnsandboxed.
	RealAgent, AllowUnsandboxed bool
	Now                         func() time.Time
	// CapReached returns a Waiting if an agent that calls this provider of models has to wait: all tasks together have spent
	// their money, or the provider has a limit or refuses the key. It may be nil.
	CapReached func(ctx context.Context, provider string) (*state.Waiting, error)
	// Paused returns a Waiting while the operator keeps a repository's tasks from starting runs and VMs; it may be nil.
	Paused func(ctx context.Context, repo int64) (*state.Waiting, error)
	// SpanAllowed returns a *vm.LimitError if another paid span of a VM may not begin; it may
	// be nil.
	SpanAllowed func(ctx context.Context, vm string) error
	// Outlives reports whether an idle VM stays beyond the span that is paid; it may be nil.
	Outlives func(ctx context.Context, vm string) (bool, error)
	// StatusURL returns the address of a task's page; it may be nil.
	StatusURL func(*state.Task) string
	// ChecksQuiet is how long no check may have appeared before a head is green that needs none.
	ChecksQuiet time.Duration
	// Provenance signs statements about published changes; nil makes none.
	Provenance talk.Provenance
	// AllowUsers and AllowBots are logins whose text the agent may see in addition to writers'.
	AllowUsers, AllowBots []string
	// Assignee is the login of the account to which people assign issues for errand, empty if there is none.
	Assignee string
}

// Steps executes jobs. It is stateless and may be used by many workers.
type Steps struct {
	Config
	intake     *intake.Steps
	talk       *talk.Steps
	publish    *publish.Steps
	workspaces *workspace.Opener
	launch     *launch.Steps
	finish     *finish.Steps
	table      map[state.JobKind]do
}

// do does one job of one task.
type do func(ctx context.Context, w *step.Attempt) (event.Event, error)

// New returns the steps.
func New(cfg Config) *Steps {
	repoSettings := &step.RepoSettings{Defaults: cfg.Defaults, Parse: cfg.RepoConfig, ShellFor: cfg.ShellFor}
	view := &step.View{GitHub: cfg.GitHub, Now: cfg.Now, StatusURL: cfg.StatusURL}
	approvals := &approval.Checker{GitHub: cfg.GitHub, Now: cfg.Now}
	s := &Steps{Config: cfg}
	s.workspaces = &workspace.Opener{
		VMs: cfg.VMs, Runner: cfg.Runner, Tether: cfg.Tether, Archives: cfg.Files, GitHub: cfg.GitHub,
		RealAgent: cfg.RealAgent, AllowUnsandboxed: cfg.AllowUnsandboxed,
		Submodules: cfg.Submodules, Authority: cfg.Authority, TestsFor: cfg.TestsFor, SpanAllowed: cfg.SpanAllowed, Paused: cfg.Paused, Now: cfg.Now,
	}
	s.intake = &intake.Steps{
		GitHub: cfg.GitHub, Settings: repoSettings, Redact: cfg.Redact, Now: cfg.Now, ChecksQuiet: cfg.ChecksQuiet,
		AllowUsers: cfg.AllowUsers, AllowBots: cfg.AllowBots,
	}
	s.talk = &talk.Steps{GitHub: cfg.GitHub, View: view, Redact: cfg.Redact, Now: cfg.Now, Provenance: cfg.Provenance}
	s.publish = &publish.Steps{
		GitHub: cfg.GitHub, Runner: cfg.Runner, Files: cfg.Files, Workspaces: s.workspaces, Approvals: approvals,
		Settings: repoSettings, View: view, Redact: cfg.Redact, Scanner: cfg.Scanner, Gate: cfg.Gate,
	}
	s.finish = &finish.Steps{
		GitHub: cfg.GitHub, Now: cfg.Now, ChecksQuiet: cfg.ChecksQuiet, Operators: cfg.Defaults.Merge, Paused: cfg.Paused,
		IsMachine: func(p state.Person) bool { return cfg.Assignee != "" && strings.EqualFold(p.Login, cfg.Assignee) },
	}
	s.launch = &launch.Steps{
		GitHub: cfg.GitHub, Runner: cfg.Runner, Files: cfg.Files, Workspaces: s.workspaces, Approvals: approvals, Redact: cfg.Redact,
		Attachments: cfg.Attachments, Agents: cfg.Agents, Agent: cfg.Agent, Providers: cfg.Providers, Subscribed: cfg.Subscribed,
		SubscriptionTurns: cfg.SubscriptionTurns, IsFree: cfg.IsFree, CapReached: cfg.CapReached,
		Gate: cfg.Gate, Memory: cfg.Memory, Now: cfg.Now,
	}
	s.table = map[state.JobKind]do{
		state.JobVet:     s.intake.Vet,
		state.JobStart:   s.intake.Start,
		state.JobApprove: approvals.Approve,
		state.JobGather:  s.intake.Gather,
		state.JobChecks:  s.intake.Checks,
		state.JobExamine: s.intake.Examine,

		state.JobLaunch: s.launch.Launch,
		state.JobStop:   s.stop,

		state.JobCollect: s.publish.Collect,
		state.JobRebase:  s.publish.Rebase,
		state.JobShow:    s.publish.Show,
		state.JobCommit:  s.publish.Commit,
		state.JobMove:    s.publish.Move,
		state.JobUpdate:  s.publish.Update,
		state.JobFinish:  s.finish.Finish,
		state.JobOpenPR:  s.publish.OpenPR,
		state.JobReopen:  s.publish.Reopen,
		state.JobClosePR: s.publish.ClosePR,
		state.JobAnswer:  s.publish.Answer,

		state.JobReact:    s.talk.React,
		state.JobPost:     s.talk.Post,
		state.JobStatus:   s.talk.Status,
		state.JobMinimize: s.talk.Minimize,
		state.JobUntick:   s.talk.Untick,
		state.JobIssue:    s.talk.CreateIssue,

		state.JobSuspend: s.sleep,
		state.JobForget:  s.forget,
		state.JobRelease: s.release,
		state.JobDue:     s.due,
	}
	return s
}

// Handle does one job. It is the queue's Handler.
func (s *Steps) Handle(ctx context.Context, job *state.Job) (event.Event, error) {
	do, ok := s.table[job.Kind]
	if !ok {
		return event.Event{}, fmt.Errorf("no step for jobs of kind %q", job.Kind)
	}
	t, err := s.Store.Task(ctx, job.Task)
	if err != nil {
		return event.Event{}, err
	}
	if t == nil && job.Kind != state.JobVet && job.Kind != state.JobReact && !talk.NeedsNoTask(job) {
		return step.Done(), nil
	}
	return do(ctx, step.NewAttempt(job, t, s.Store, zerolog.Ctx(ctx)))
}

// Interpret returns the interpreter of a run's output.
func (s *Steps) Interpret(t *state.Task, r *state.Run) *result.Interpreter {
	return result.New(result.Config{Agents: s.Agents, Redact: s.Redact, Providers: s.Providers, Subscribed: s.Subscribed}, t, r)
}

// Seen returns the text of an issue or pull request of a task's repository and its discussion, as far as the task's
// agent may see them. The errors are those of package callback.
func (s *Steps) Seen(ctx context.Context, t *state.Task, number int) (string, error) {
	return s.intake.Seen(ctx, t, number)
}

// AttachedToIssue returns the addresses of the files attached to a task's frozen text, which the agent gets with it.
func (s *Steps) AttachedToIssue(t *state.Task) []string { return s.launch.AttachedToIssue(t) }

// Preview completes a task that does not exist yet, whose frozen text the operator vouches for, with the texts and the settings with
// which it would begin, and returns the conditions that it would wait for.
func (s *Steps) Preview(ctx context.Context, t *state.Task, i forge.Issue) (waits []*state.Waiting, err error) {
	add := func(w *state.Waiting, failed error) {
		if err = errors.Join(err, failed); w != nil {
			waits = append(waits, w)
		}
	}
	list, failed := s.intake.Preview(ctx, t, i)
	for _, w := range list {
		add(w, nil)
	}
	add(nil, failed)
	if s.Paused != nil {
		add(s.Paused(ctx, t.Key.Repo))
	}
	if s.CapReached != nil {
		_, route := s.Agents.Choose(string(firstRun(t.Settings.Plan)), "")
		add(s.CapReached(ctx, s.Providers[route.Adapter]))
	}
	return waits, err
}

// firstRun returns the kind of a new task's first run.
func firstRun(plan settings.PlanMode) state.RunKind {
	switch plan {
	case settings.PlanNone:
		return state.RunImplement
	case settings.PlanOneStep:
		return state.RunPlan
	}
	return state.RunPreliminary
}
