package finish

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/green"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

var (
	now     = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	ada     = state.Person{ID: 1, Login: "ada"}
	bob     = state.Person{ID: 2, Login: "bob"}
	eve     = state.Person{ID: 3, Login: "eve"} // may read only
	machine = state.Person{ID: 4, Login: "Errand-Bot"}
	app     = state.Person{ID: 5, Login: "helper[bot]", Bot: true}
)

// gitHub is a GitHub with one pull request, of which every call can fail.
type gitHub struct {
	m       forge.Merging
	report  green.Report
	reviews []forge.Review
	threads []forge.Thread
	fail    map[string]error
	did     []string
	read    bool                 // it was read once
	again   func(*forge.Merging) // changes what further reads return
}

func (g *gitHub) do(name string) error {
	g.did = append(g.did, name)
	return g.fail[name]
}

func (g *gitHub) Merging(context.Context, forge.Repo, int) (forge.Merging, error) {
	m := g.m
	if g.again != nil && g.read {
		g.again(&m)
	}
	g.read = true
	return m, g.fail["read"]
}

func (g *gitHub) Checks(context.Context, forge.Repo, int, string) (green.Report, error) {
	return g.report, g.fail["checks"]
}

func (g *gitHub) Reviews(context.Context, forge.Repo, int) ([]forge.Review, error) {
	return g.reviews, g.fail["reviews"]
}

func (g *gitHub) Threads(context.Context, forge.Repo, int) ([]forge.Thread, error) {
	return g.threads, g.fail["threads"]
}

func (g *gitHub) MarkReady(context.Context, forge.Repo, int, forge.Merging) error {
	return g.do("ready")
}

func (g *gitHub) MergePR(_ context.Context, _ forge.Repo, pull, head, method string) error {
	return g.do("merge " + pull + " " + head + " " + method)
}

func (g *gitHub) DequeuePR(_ context.Context, _ forge.Repo, pull string) error {
	return g.do("dequeue " + pull)
}

func (g *gitHub) EnqueuePR(_ context.Context, _ forge.Repo, pull, head string) error {
	return g.do("enqueue " + pull + " " + head)
}

func (g *gitHub) RequestReview(_ context.Context, _ forge.Repo, _ int, login string) (string, error) {
	return "", g.do("request " + login)
}

func (g *gitHub) Permission(_ context.Context, _ forge.Repo, login string, id int64) (state.Permission, error) {
	if err := g.fail["permission"]; err != nil {
		return "", err
	}
	for _, p := range []state.Person{ada, bob, machine} {
		if p.Login == login && p.ID == id {
			return state.PermissionWrite, nil
		}
	}
	return state.PermissionRead, nil
}

// marks stores no attempts.
type marks struct{}

func (marks) MarkAttempted(context.Context, string, int64) error            { return nil }
func (marks) MarkLaunch(context.Context, string, int64, state.Launch) error { return nil }

const head, older = "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1", "b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2"

func review(by state.Person, is state.ReviewState, of string) forge.Review {
	return forge.Review{Review: state.Review{State: is, Head: of}, By: by}
}

func check(is green.State) green.Report {
	return green.Report{Head: head, Total: 1, Required: []green.Requirement{{Name: "test"}}, Checks: []green.Check{{Name: "test", State: is, Changed: now}}}
}

// world is a pull request that lacks nothing to be merged.
type world struct {
	*gitHub
	steps *Steps
	task  *state.Task
	job   state.Job
}

func newWorld() *world {
	yes := true
	g := &gitHub{
		m:      forge.Merging{Node: "PR_1", Open: true, Title: "It breaks", Head: head, Base: "main", Mergeable: &yes, Methods: []string{"SQUASH", "REBASE"}},
		report: check(green.Success), reviews: []forge.Review{review(ada, state.ReviewApproved, head)}, fail: map[string]error{},
	}
	t := new(state.Task)
	t.Phase, t.PR = state.PhasePROpen, &state.PR{Number: 5, State: state.PROpen, Ready: true, Checks: "success"}
	t.Branch.Head, t.Branch.Base, t.Trigger.By = head, "main", bob
	t.Settings.Merge = settings.MergeWhenApproved
	return &world{g, &Steps{
		GitHub: g, Now: func() time.Time { return now }, ChecksQuiet: time.Minute, Operators: settings.MergeAllowed,
		IsMachine: func(p state.Person) bool { return strings.EqualFold(p.Login, machine.Login) },
	}, t, state.Job{Kind: state.JobFinish}}
}

// finish does the job, and returns its event.
func (w *world) finish(t *testing.T) event.PRFinished {
	t.Helper()
	e, err := w.steps.Finish(t.Context(), w.attempt())
	if err != nil {
		t.Fatal(err)
	}
	return event.Of[event.PRFinished](e)
}

func (w *world) attempt() *step.Attempt {
	log := zerolog.New(io.Discard)
	return step.NewAttempt(&w.job, w.task, marks{}, &log)
}
