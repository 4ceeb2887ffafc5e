// Package workflow does the outside work of a task: one step per kind of job. A step reads the task,
// calls GitHub or a VM, and returns the Event that says what came of it. It never changes a task.
//
// Every step may be repeated: after a crash, a lost lease or an answer that never came it runs again
// with Job.Attempted set, and then looks for the effect before it makes it. A step that finds that
// the task has moved on returns the event of what it found; the transition table drops it.
//
// Start reading at the table in Steps.Handle, then at one step, such as approve.go.
package workflow

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/secretscan"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/state"
)

// Config is what the steps need. All fields are required unless said otherwise.
type Config struct {
	Store  Store
	GitHub GitHub
	VMs    VMs
	Runner Runner
	Tether Tether
	Files  Files
	// Sleeper keeps whole disks, for repositories that sleep by snapshot; nil where the provider cannot, which
	// then sleep by archive.
	Sleeper Sleeper
	// Agents are what runs are made by; Agent is what all of them are set, their environment among it.
	Agents Agents
	Agent  agent.Config
	// Providers names, by the name of an adapter, the provider of models that its calls go to.
	Providers map[string]string
	// Subscribed says of providers that they are asked on a subscription: caps on cost do not count for them.
	Subscribed map[string]bool
	// Submodules lists what besides a repository, named as OWNER/NAME, its agents may read, as patterns with
	// stars; nil is nothing.
	Submodules func(repo string) []string
	// ShellFor says what the operator lets the agents of a repository, named as OWNER/NAME, call in a shell; nil is what
	// they are found to need.
	ShellFor func(repo string) state.Shell
	// TestsFor says what the operator gives to the tests of a repository, named as OWNER/NAME; nil is nothing.
	TestsFor func(repo string) Tests
	Redact   *trust.Redactor
	Scanner  *secretscan.Scanner
	// RepoConfig reads a `.errand.yml` over the operator's defaults. Its error is for people: line,
	// key, what to write.
	RepoConfig func(data []byte) (state.Settings, error)
	Defaults   state.Settings
	// Gate is what the operator sets of the push gate: the ceiling of what repositories set.
	Gate state.Gate
	// Memory is the memory of a VM in words, for prompts; it may be empty.
	Memory string
	// RealAgent is set for an agent that is not ours: it is refused where nothing isolates it,
	// unless AllowUnsandboxed.
	RealAgent, AllowUnsandboxed bool
	Now                         func() time.Time
	// Held says what an agent that asks this provider of models has to wait for: all tasks together have spent
	// what they may, or the provider has a limit or refuses the key. Nil is nothing; it may be nil.
	Held func(ctx context.Context, provider string) (*state.Waiting, error)
	// SpanAllowed returns a *vm.LimitError if another span of a VM that costs money may not begin; it may
	// be nil.
	SpanAllowed func(ctx context.Context, vm string) error
	// Outlives reports whether an idle VM shall stay beyond the span that is paid; it may be nil.
	Outlives func(ctx context.Context, vm string) (bool, error)
	// StatusURL is where people find a task's page; it may be nil.
	StatusURL func(*state.Task) string
	// AllowUsers and AllowBots are logins whose text the agent may see besides writers'.
	AllowUsers, AllowBots []string
}

// Steps does jobs. It has no state of its own and may be used by many workers.
type Steps struct {
	Config
	table map[state.JobKind]step
}

// step does one job of one task. The task is nil when there is none (yet).
type step func(s *Steps, ctx context.Context, w *unit) (state.Event, error)

// New returns the steps.
func New(cfg Config) *Steps {
	return &Steps{Config: cfg, table: map[state.JobKind]step{
		state.JobVet:      (*Steps).vet,
		state.JobReact:    (*Steps).react,
		state.JobStart:    (*Steps).start,
		state.JobLaunch:   (*Steps).launch,
		state.JobStop:     (*Steps).stop,
		state.JobCollect:  (*Steps).collect,
		state.JobShow:     (*Steps).showChanges,
		state.JobCommit:   (*Steps).commit,
		state.JobMove:     (*Steps).move,
		state.JobRebase:   (*Steps).rebase,
		state.JobOpenPR:   (*Steps).openPR,
		state.JobAnswer:   (*Steps).answer,
		state.JobGather:   (*Steps).gather,
		state.JobIssue:    (*Steps).createIssue,
		state.JobApprove:  (*Steps).approve,
		state.JobPost:     (*Steps).post,
		state.JobStatus:   (*Steps).status,
		state.JobMinimise: (*Steps).minimise,
		state.JobUntick:   (*Steps).untick,
		state.JobRelease:  (*Steps).release,
		state.JobSleep:    (*Steps).sleep,
		state.JobForget:   (*Steps).forget,
		state.JobChecks:   (*Steps).checks,
		state.JobDue:      (*Steps).due,
	}}
}

// unit is one job with its task and what steps share.
type unit struct {
	job  *state.Job
	task *state.Task
	repo forge.Repo
	log  *zerolog.Logger
	// base is where the task's base was at baseAt, if this attempt has read it.
	base   string
	baseAt time.Time
	// merges is the commit of the base branch that this attempt let the agent's commits merge in, empty for none.
	merges string
}

// Handle does one job. It is the queue's Handler.
func (s *Steps) Handle(ctx context.Context, job *state.Job) (state.Event, error) {
	do, ok := s.table[job.Kind]
	if !ok {
		return state.Event{}, fmt.Errorf("no step for jobs of kind %q", job.Kind)
	}
	t, err := s.Store.Task(ctx, job.Task)
	if err != nil {
		return state.Event{}, err
	}
	w := &unit{job: job, task: t, log: zerolog.Ctx(ctx)}
	if t != nil {
		w.repo = forge.RepoOf(t)
	}
	if t == nil && job.Kind != state.JobVet && job.Kind != state.JobReact {
		return done(), nil
	}
	return do(s, ctx, w)
}

// EventNothing is applied when a step has nothing to say. No row of the table knows it.
const EventNothing state.EventKind = "nothing"

// done is the event of a step after which nothing follows.
func done() state.Event { return state.Event{Kind: EventNothing} }

// attempted marks, durably, that the job's outside effect may have happened from now on. It reports
// whether that was so before, in which case the step has to look for it first.
func (s *Steps) attempted(ctx context.Context, w *unit) (before bool, err error) {
	if w.job.Attempted {
		return true, nil
	}
	return false, s.Store.MarkAttempted(ctx, w.job.ID, w.job.Epoch)
}

// view is how comments of this deployment are rendered now.
func (s *Steps) view(ctx context.Context) (comment.View, error) {
	self, err := s.GitHub.Self(ctx)
	if err != nil {
		return comment.View{}, err
	}
	return comment.View{Slug: self.Slug, Now: s.Now(), LogURL: s.StatusURL}, nil
}
