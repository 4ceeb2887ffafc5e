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

// plant is a fault that is put in on purpose, to show that the walks notice it. The zero plant is none.
type plant struct {
	anybody    bool // everybody may write, whatever GitHub says
	ghosts     bool // a plan that waits is taken for approved by an admin, who said nothing
	revive     bool // what is left to do for an ended task begins it anew
	silent     bool // neither 👀 nor a status comment
	twice      bool // what may have been posted is not looked for
	keepVMs    bool // no VM is ever deleted
	freeMoney  bool // what runs cost is not counted
	loseLaunch bool // the job that launches a run is spent without doing anything
	unseen     bool // changes that wait to be let through are taken for approved
	stale      bool // a plan counts as it was posted, whatever somebody made of its comment
	secondPull bool // a pull request that may be open is not looked for
}

// handle puts faults into the steps.
func (p plant) handle(w *world, do queue.Handler) queue.Handler {
	return func(ctx context.Context, j *state.Job) (event.Event, error) {
		w.inStep = w.now
		before := w.job
		w.job = j
		defer func() { w.job = before }()
		w.meets(j)
		r := w.jobs.of(j.ID)
		r.begun, r.err = w.now, nil
		nothing := event.Event{}
		switch {
		case p.silent && (j.Kind == state.JobStatus || j.Kind == state.JobReact), p.loseLaunch && j.Kind == state.JobLaunch:
			return nothing, nil
		case p.twice:
			j.Attempted = false
		}
		e, err := w.loud(ctx, j, do)
		r = w.jobs.of(j.ID)
		r.err = err
		switch {
		case err != nil:
		case (p.ghosts || p.unseen) && j.Kind == state.JobStatus:
			return p.ghost(ctx, w, j, e)
		case p.revive && j.Kind == state.JobRelease:
			ada := w.hub.people[0]
			i := w.hub.issues[j.Task.Issue].view().Issue
			e = event.Event{By: ada.Person, Permission: state.PermissionAdmin, Via: "sweep", Installation: installation, Repo: &state.Repo{ID: w.hub.repo, Owner: owner, Name: repoName, DefaultBranch: mainBranch}, Payload: event.Triggered{Issue: &i}}
		}
		return e, err
	}
}

// loud has the walk fail where a step calls what no walk plays: the queue would take it for an error of the step.
func (w *world) loud(ctx context.Context, j *state.Job, do queue.Handler) (event.Event, error) {
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

// ghost approves the newest plan in an admin's name.
func (p plant) ghost(ctx context.Context, w *world, j *state.Job, e event.Event) (event.Event, error) {
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

// interpreter puts a fault into the judgement of runs.
func (p plant) interpreter(in watch.Interpreter) watch.Interpreter {
	if p.freeMoney {
		return free{in}
	}
	return in
}

type free struct{ watch.Interpreter }

// Exit forgets the money.
func (f free) Exit(x runlog.Exit) state.RunResult {
	res := f.Interpreter.Exit(x)
	res.Money = state.Money{}
	return res
}
