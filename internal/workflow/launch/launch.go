// Package launch starts the run that a task's phase calls for: an agent with its prompt, or the repository's checks.
//
// Start with Steps.Launch.
package launch

import (
	"context"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow/approval"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// Steps is the step that starts runs.
type Steps struct {
	GitHub     GitHub
	Runner     Runner
	Files      Files
	Workspaces *workspace.Opener
	Approvals  *approval.Checker
	Redact     *trust.Redactor
	// Attachments reads the files attached to texts; nil reads none.
	Attachments Attachments
	// Agents has the adapters of agents; Agent is the configuration that they share, with their environment.
	Agents Agents
	Agent  registry.Config
	// Providers names the provider of models of each adapter; Subscribed marks those that are paid by subscription:
	// caps on cost do not apply to them.
	Providers  map[string]string
	Subscribed map[string]bool
	// SubscriptionTurns is the maximum number of turns of a run whose calls cost nothing: it is paid by subscription, or IsFree
	// returns true for its model. IsFree may be nil.
	SubscriptionTurns int
	IsFree            func(model string) bool
	// CapReached returns a Waiting if an agent that calls this provider has to wait: all tasks together have spent
	// their money, or the provider has a limit or refuses the key. It may be nil.
	CapReached func(ctx context.Context, provider string) (*state.Waiting, error)
	// Gate has the operator's settings of the push gate.
	Gate settings.Gate
	// Memory is the memory of a VM in words, for prompts; it may be empty.
	Memory string
	Now    func() time.Time
}

// GitHub has the calls of GitHub's API that launches need.
type GitHub interface {
	step.Heads
	step.Installations
	step.PRs
	step.Answers
	ChangedSince(ctx context.Context, r forge.Repo, base, head string) (forge.Comparison, error)
	Rendered(ctx context.Context, r forge.Repo, text forge.TextRef) (string, error)
}

// Runner starts runs on a VM, and ends those that the store does not know. All methods may be called again.
type Runner interface {
	Start(ctx context.Context, vm string, spec runner.Spec) error
	Knows(ctx context.Context, vm, run string) (bool, error)
	Runs(ctx context.Context, vm string) (ids []string, err error)
	Stop(ctx context.Context, vm, run, why string) error
	Collect(ctx context.Context, vm string, spec work.CollectSpec) (*changeset.Changeset, error)
}

// Files keeps the transcripts of runs, changesets, and the attachments of tasks by the SHA-256 of their content.
type Files interface {
	SaveChangeset(run string, cs *changeset.Changeset) (ref string, err error)
	BeginTranscript(run string, h runlog.Header) error
	SaveAttachment(task string, content []byte) (digest string, err error)
	LoadAttachment(task, digest string, limit int64) ([]byte, error)
}

// Launch gets the VM, prepares the checkout, writes the prompt and starts the run. Each part first checks for the
// results of an earlier attempt; a run that was started is left alone.
func (s *Steps) Launch(ctx context.Context, w *step.Attempt) (event.Event, error) {
	t := w.Task
	if t.Run == nil || t.Run.ID != w.Job.Run || t.Run.State != state.RunLaunching {
		return step.Done(), nil // the task no longer needs this run
	}
	if at, err := s.underWay(ctx, w); err != nil {
		return event.Event{}, err
	} else if at != nil {
		return event.Event{Run: t.Run.ID, Payload: event.Launched{Launch: *at}}, nil
	}
	if t.Run.Kind == state.RunImplement && !w.Job.Restored.IsZero() {
		found, err := step.FindPR(ctx, s.GitHub, w)
		if err != nil {
			return event.Event{}, err
		}
		if found != nil {
			return event.Event{Run: t.Run.ID, Payload: *found}, nil
		}
	}
	if t.Run.Kind == state.RunReview {
		answered, err := step.FindAnswered(ctx, s.GitHub, w)
		if err != nil {
			return event.Event{}, err
		}
		if len(answered) > 0 {
			return event.Event{Run: t.Run.ID, Payload: event.AnswersFound{IDs: answered}}, nil
		}
	}
	if waiting, err := s.Workspaces.Hold(ctx, t); waiting != nil || err != nil { // checked again in Reach
		return step.Blocked(waiting), err
	}
	if starts(t) {
		why, err := s.Approvals.Recheck(ctx, w, t.Approval)
		if err != nil {
			return event.Event{}, fmt.Errorf("check the approval before the start: %w", err)
		}
		if why != "" {
			return event.Event{Run: t.Run.ID, Payload: event.ApprovalRejected{Rejection: why,
				Candidate: state.Candidate{Approval: *t.Approval}}}, nil
		}
	}
	if waiting, err := step.MissingPermissions(ctx, s.GitHub, w); waiting != nil || err != nil {
		return step.Blocked(waiting), err
	}
	if waiting, err := s.withinCaps(ctx, t); waiting != nil || err != nil {
		return step.Blocked(waiting), err
	}
	l := &state.Launch{Run: t.Run.ID}
	ws, waiting, err := s.Workspaces.Reach(ctx, t, l)
	if waiting != nil || err != nil {
		return step.Blocked(waiting), err
	}
	return s.launchOn(ctx, w, ws, l)
}

// underWay returns how an earlier attempt started the run, nil if none did. From then on the checkout is the agent's:
// it must not be moved to another commit, and the agent knows neither a newer base nor later comments.
func (s *Steps) underWay(ctx context.Context, w *step.Attempt) (*state.Launch, error) {
	at := w.Job.Launch
	if at == nil || at.Run != w.Task.Run.ID {
		return nil, nil
	}
	known, err := s.Runner.Knows(ctx, at.VM.Name, at.Run)
	if err != nil {
		return nil, fmt.Errorf("read run %s on VM %s: %w", at.Run, at.VM.Name, err)
	}
	if !known {
		return nil, nil
	}
	return at, nil
}

// starts reports whether this run is the first one that an approval allows: until then the approval
// can be withdrawn.
func starts(t *state.Task) bool {
	if t.Approval == nil || t.Run.Kind != state.RunPlan && t.Run.Kind != state.RunImplement {
		return false
	}
	for _, r := range t.Runs {
		if r.Kind == t.Run.Kind && !r.Started.IsZero() && !r.Uncertain && r.Plan == t.Approval.Hash {
			return false
		}
	}
	return true
}

// launchOn starts the run on a VM that is there and reachable.
func (s *Steps) launchOn(ctx context.Context, w *step.Attempt, ws *workspace.Workspace, l *state.Launch) (event.Event, error) {
	t, vm := w.Task, ws.VM.Name
	l.Started = s.Now() // getting the VM may have taken long
	if err := s.Workspaces.Quiet(ctx, t, vm); err != nil {
		return event.Event{}, err
	}
	if err := ws.TrustRegistries(ctx); err != nil {
		return event.Event{}, err
	}
	if err := s.saveUnknownWork(ctx, w, ws, l); err != nil {
		return event.Event{}, err
	}
	if err := ws.Restore(ctx, w, l); err != nil {
		return event.Event{}, err
	}
	var spec runner.Spec
	var err error
	if t.Run.Kind == state.RunCheck {
		spec, err = s.checkSpec(ctx, w, ws, l)
	} else {
		spec, err = s.agentSpec(ctx, w, ws, l)
	}
	if err != nil {
		return event.Event{}, err
	}
	if err := w.MarkLaunch(ctx, *l); err != nil {
		return event.Event{}, err
	}
	if err := s.Runner.Start(ctx, vm, spec); err != nil {
		return event.Event{}, fmt.Errorf("start run %s: %w", t.Run.ID, err)
	}
	return event.Event{Run: t.Run.ID, Payload: event.Launched{Launch: *l}}, nil
}

// withinCaps returns a Problem if the task has no money left for an agent, and a Waiting if all tasks together have
// none or the provider of models refuses calls.
func (s *Steps) withinCaps(ctx context.Context, t *state.Task) (*state.Waiting, error) {
	if t.Run.Kind == state.RunCheck {
		return nil, nil
	}
	m := t.Money
	if s.Subscribed[s.provider(t)] {
		m.CapMicroUSD = 0
	}
	if m.AtCap() {
		return nil, &step.Problem{Reason: m.CapReached(), Hint: m.Hint(), Class: state.ClassBudget, Permanent: true}
	}
	if s.CapReached == nil {
		return nil, nil
	}
	w, err := s.CapReached(ctx, s.provider(t))
	if w != nil && w.Kind == state.WaitLimit && t.IgnoreLimits {
		return nil, nil // somebody may have bought more
	}
	return w, err
}
