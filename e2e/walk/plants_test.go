package walk

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/errand-bot/errand/internal/queue"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// plant is a deliberate fault that walks must detect. The zero plant is none.
type plant struct {
	anybody    bool // everybody has write access
	ghosts     bool // a waiting plan is approved in the name of an admin
	revive     bool // the remaining jobs of an ended task restart it
	silent     bool // neither 👀 nor a status comment
	twice      bool // no search for a comment that may exist
	keepVMs    bool // no VM is ever deleted
	freeMoney  bool // the cost of runs is not booked
	loseLaunch bool // the job that launches a run does nothing
	unseen     bool // changes that wait for approval are treated as approved
	stale      bool // a plan counts as posted, even if its comment was edited
	keepOld    bool // replaced pull requests are not closed
	secondPull bool // no search for a pull request that may exist
}

// handle plants faults into the steps.
func (p plant) handle(w *world, do queue.Handler) queue.Handler {
	return func(ctx context.Context, j *state.Job) (event.Event, error) {
		w.inStep = w.now
		before := w.job
		w.job = j
		defer func() { w.job = before }()
		w.activateChains(j)
		r := w.jobs.of(j.ID)
		r.begun, r.err = w.now, nil
		nothing := event.Event{}
		switch {
		case p.silent && (j.Kind == state.JobStatus || j.Kind == state.JobReact), p.loseLaunch && j.Kind == state.JobLaunch:
			return nothing, nil
		case p.twice:
			j.Attempted = false
		}
		e, err := w.failOnPanic(ctx, j, do)
		r = w.jobs.of(j.ID)
		r.err = err
		switch {
		case err != nil:
		case (p.ghosts || p.unseen) && j.Kind == state.JobStatus:
			return p.approveAsAdmin(ctx, w, j, e)
		case p.revive && j.Kind == state.JobRelease:
			ada := w.hub.people[0]
			i := w.hub.issues[j.Task.Issue].view().Issue
			e = event.Event{By: ada.Person, Permission: state.PermissionAdmin, Via: "sweep", Installation: installation, Repo: &state.Repo{ID: w.hub.repo, Owner: owner, Name: repoName, DefaultBranch: mainBranch}, Payload: event.Triggered{Issue: &i}}
		}
		return e, err
	}
}

// failOnPanic makes the walk fail if a step panics, for example by a call that no walk plays; the queue would convert
// it to an error of the step.
func (w *world) failOnPanic(ctx context.Context, j *state.Job, do queue.Handler) (event.Event, error) {
	defer func() {
		why := recover()
		if err, is := why.(runtime.Error); is && w.broke == "" {
			w.broke = fmt.Sprintf("%s panicked: %v\n%s", j.Kind, err, debug.Stack())
		}
		if why != nil {
			panic(why)
		}
	}()
	return do(ctx, j)
}

// approveAsAdmin approves the newest plan in an admin's name.
func (p plant) approveAsAdmin(ctx context.Context, w *world, j *state.Job, e event.Event) (event.Event, error) {
	t, err := w.store.Task(ctx, j.Task)
	waits := err == nil && t != nil && (p.ghosts && t.Phase.AwaitsPlan() || p.unseen && t.Phase == state.PhaseAwaitingPublishApproval)
	if !waits || !t.NewestPlan().Open() {
		return e, err
	}
	yes := state.Approval{Kind: t.NewestPlan().Kind, Hash: t.NewestPlan().Hash, By: w.hub.people[0].Person, Permission: state.PermissionAdmin, Via: state.ViaCommand, Given: w.now}
	return event.Event{Payload: event.Approved{Candidate: state.Candidate{Approval: yes}}}, nil
}

func (p plant) permission(may state.Permission) state.Permission {
	if p.anybody {
		return state.PermissionWrite
	}
	return may
}

// interpreter plants a fault into the interpretation of runs.
func (p plant) interpreter(in watch.Interpreter) watch.Interpreter {
	if p.freeMoney {
		return free{in}
	}
	return in
}

type free struct{ watch.Interpreter }

// Exit omits the cost.
func (f free) Exit(x runlog.Exit) state.RunResult {
	res := f.Interpreter.Exit(x)
	res.Money = state.Money{}
	return res
}
