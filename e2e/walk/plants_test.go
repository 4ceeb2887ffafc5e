package walk

import (
	"context"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/queue"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/state"
)

// plant is a fault that is put in on purpose, to show that the walks notice it. The zero plant is none.
type plant struct {
	anybody    bool // everybody may write, whatever GitHub says
	anyHash    bool // an approval of any revision counts for the newest, whatever speaks against it
	ghosts     bool // any plan comment has a 👍 by an admin, who gave none
	revive     bool // what is left to do for an ended task begins it anew
	silent     bool // neither 👀 nor a status comment
	twice      bool // what may have been posted is not looked for
	twinPulls  bool // nor is a pull request
	keepVMs    bool // no VM is ever deleted
	freeMoney  bool // what runs cost is not counted
	loseLaunch bool // the job that launches a run is spent without doing anything
}

// handle puts faults into the steps.
func (p plant) handle(w *world, do queue.Handler) queue.Handler {
	return func(ctx context.Context, j *state.Job) (state.Event, error) {
		w.inStep = w.now
		nothing := state.Event{Kind: workflow.EventNothing}
		switch {
		case p.silent && (j.Kind == state.JobStatus || j.Kind == state.JobReact), p.loseLaunch && j.Kind == state.JobLaunch:
			return nothing, nil
		case p.twice:
			j.Attempted = false
		}
		e, err := do(ctx, j)
		switch {
		case err != nil:
		case p.anyHash && j.Kind == state.JobApprove:
			t, err := w.store.Task(ctx, j.Task)
			if err != nil {
				return e, err
			}
			e.Kind, e.Detail = state.EventApproved, ""
			e.Candidate.Hash, e.Candidate.Kind, e.Candidate.Via = t.NewestPlan().Hash, t.NewestPlan().Kind, state.ViaCommand
		case p.revive && j.Kind == state.JobRelease:
			ada := w.hub.people[0]
			i := w.hub.issues[j.Task.Issue].view().Issue
			e = state.Event{Kind: state.EventTriggered, By: ada.Person, Permission: state.PermissionAdmin, Via: "sweep", Issue: &i, Installation: installation,
				Repo: &state.Repo{ID: repoID, Owner: owner, Name: repoName, DefaultBranch: mainBranch}}
		}
		return e, err
	}
}

// thumbs adds one that nobody gave.
func (p plant) thumbs(h *hub, c *comment) []forge.Thumb {
	list := views(c.thumbs)
	if p.ghosts && c.author == nil {
		list = append(list, forge.Thumb{Node: "ghost" + c.node, By: h.people[0].Person, At: h.clock()})
	}
	return list
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
