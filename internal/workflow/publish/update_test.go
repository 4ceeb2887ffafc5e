package publish_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// pushBase pushes to the base: a file that the branch does not have, the lines that it changed, or a workflow.
func pushBase(w *workflowtest.World, path string) string {
	w.T.Helper()
	return w.Push("ada", "main", map[string]string{path: "package slug\n\nfunc Slug() { other() }\n"})
}

// compared runs the job update until GitHub knows whether the pull request can be merged.
func compared(w *workflowtest.World, change ...func(*state.Job)) event.BaseRead {
	w.T.Helper()
	for range 3 {
		if got := event.Of[event.BaseRead](w.Do(state.JobUpdate, change...)); got.Result != event.BaseUnknown || got.Begun {
			return got
		}
	}
	w.T.Fatal("GitHub does not know whether the pull request can be merged")
	return event.BaseRead{}
}

var asked = state.UpdateRequest{By: state.Person{ID: 7, Login: "bob"}, Comment: 60}

// TestUpdate: GitHub updates the branch if a person asked for it, or if only that is missing; in the way that the repository merges.
func TestUpdate(t *testing.T) {
	t.Parallel()
	const free, lines, ci = "free.go", "slug.go", ".github/workflows/ci.yml"
	rebase := asked
	rebase.Rebase = true
	for name, c := range map[string]struct {
		base    string   // what the base changed
		methods []string // by which pull requests are merged
		request state.UpdateRequest
		ready   bool // approved and green
		strict  bool // the base requires its newest commits
		updates int
		want    event.BaseResult
		parents int // of the new head; 0 if it stays
	}{
		"nobody asked":                 {base: free, strict: true, want: event.BaseBehind},
		"approved, but it is optional": {base: free, ready: true, want: event.BaseBehind},
		"approved, and only it misses": {base: free, ready: true, strict: true, want: event.BaseUpdated, parents: 2},
		"approved, and up to date":     {ready: true, strict: true, want: event.BaseCurrent},
		"too often":                    {base: free, ready: true, strict: true, updates: state.MaxUpdates, want: event.BaseLimit},
		"asked":                        {base: free, request: asked, want: event.BaseUpdated, parents: 2},
		"asked, up to date":            {request: asked, want: event.BaseCurrent},
		"asked too often":              {base: free, request: asked, updates: state.MaxUpdates + 1, want: event.BaseUpdated, parents: 2},
		"asked for a rebase":           {base: free, request: rebase, want: event.BaseUpdated, parents: 1},
		"only rebases":                 {base: free, methods: []string{"rebase"}, request: asked, want: event.BaseUpdated, parents: 1},
		"squashes or rebases":          {base: free, methods: []string{"squash", "rebase"}, request: asked, want: event.BaseUpdated, parents: 2},
		"conflict":                     {base: lines, want: event.BaseConflict},
		"asked, conflict":              {base: lines, request: rebase, want: event.BaseConflict},
		"asked, a workflow":            {base: ci, request: asked, want: event.BaseRefused},
		"a workflow, by a rebase":      {base: ci, methods: []string{"rebase"}, request: asked, want: event.BaseUpdated, parents: 1},
		"approved, a workflow":         {base: ci, ready: true, strict: true, want: event.BaseRefused},
		"a workflow, but nobody asked": {base: ci, want: event.BaseBehind},
		"approved, a conflict counts":  {base: lines, ready: true, strict: true, want: event.BaseConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.OpenPull()
			before := w.Task.Branch.Head
			workflowtest.Check(t, w.RequireUpToDate(workflowtest.RepoName, "main", c.strict))
			if c.methods != nil {
				workflowtest.Check(t, w.AllowMerges(workflowtest.RepoName, c.methods...))
			}
			if c.base != "" {
				pushBase(w, c.base)
			}
			w.Task.PR.Update, w.Task.PR.Updates = c.request, c.updates
			if c.ready {
				w.Task.PR.Ready, w.Task.PR.Checks = true, "success"
			}
			got := compared(w)
			head := w.Head(w.Task.Branch.Name)
			if got.Result != c.want || got.Head != head || got.Known != before || got.Request != c.request {
				t.Errorf("got %+v, head %s, want %s", got, head, c.want)
			}
			if (head != before) != (c.parents > 0) {
				t.Errorf("the head was %s and is %s", before, head)
			}
			if c.parents > 0 {
				wantUpdate(w, before, c.base, c.parents)
			}
			if (got.Workflow != "") != (c.base == ci && c.want == event.BaseRefused) {
				t.Errorf("workflow %q", got.Workflow)
			}
			if wants := c.want == event.BaseConflict; (got.Newest == w.Head("main")) != wants {
				t.Errorf("the base is at %s, the conflict at %q", w.Head("main"), got.Newest)
			}
		})
	}
}

// wantUpdate checks the head that GitHub created, and that it has both sides.
func wantUpdate(w *workflowtest.World, before, path string, parents int) {
	w.T.Helper()
	commit := w.Repo.Git.Commit(w.Head(w.Task.Branch.Name))
	bot := w.App().BotLogin
	want := "GitHub"
	if parents == 1 {
		want = bot
	}
	if len(commit.Parents) != parents || commit.Committer.Name != want || parents == 2 && (commit.Author.Name != bot || commit.Parents[0] != before) {
		w.T.Errorf("got %+v, want %d parents, committed by %s", commit, parents, want)
	}
	if !slices.Contains(commit.Parents, w.Head("main")) {
		w.T.Errorf("got parents %v, want %s among them", commit.Parents, w.Head("main"))
	}
	tree, err := w.Forge.Tree(w.T.Context(), w.RepoRef(), commit.SHA)
	workflowtest.Check(w.T, err)
	if _, ok := tree[path]; !ok {
		w.T.Error("the base's file is missing")
	}
}

// TestUpdateWithLostAnswer: if the answer to an update is lost, or errand dies before it stores it, the branch is not updated again, and the
// head is found. A person's push in between is kept.
func TestUpdateWithLostAnswer(t *testing.T) {
	t.Parallel()
	for _, pushed := range []bool{false, true} {
		w := workflowtest.New(t)
		w.OpenPull()
		w.Task.PR.Update = asked
		pushBase(w, "free.go")
		_ = w.Do(state.JobUpdate) // GitHub computes whether it can be merged
		w.MustFault(simgithub.Fault{Path: "^/graphql updatePullRequestBranch", Status: http.StatusBadGateway, After: true, Count: 1})
		if _, err := w.Try(state.JobUpdate); err == nil {
			t.Fatal("got no error for a lost answer")
		}
		updated := w.Head(w.Task.Branch.Name)
		if updated == w.Task.Branch.Head {
			t.Fatal("the branch was not updated")
		}
		if pushed {
			updated = w.Push("bob", w.Task.Branch.Name, map[string]string{"NEWS": "news\n"})
		}
		got := event.Of[event.BaseRead](w.Do(state.JobUpdate, workflowtest.Again)) // also while GitHub does not know whether it can be merged
		if got.Result != event.BaseUpdated || got.Head != updated || w.Head(w.Task.Branch.Name) != updated {
			t.Errorf("pushed %v: got %+v, want the head %s", pushed, got, updated)
		}
	}
}

// TestUpdateAfterPush: an update never follows a head that errand has not seen, and a push of which no webhook has come yet is found.
func TestUpdateAfterPush(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.OpenPull()
	w.Task.PR.Ready, w.Task.PR.Checks = true, "success"
	workflowtest.Check(t, w.RequireUpToDate(workflowtest.RepoName, "main", true))
	pushBase(w, "free.go")
	pushed := w.Push("bob", w.Task.Branch.Name, map[string]string{"NEWS": "news\n"})
	if got := compared(w); got.Result != event.BaseBehind || got.Head != pushed || w.Head(w.Task.Branch.Name) != pushed {
		t.Errorf("got %+v: the approval and the checks were of another head", got)
	}
}

// TestUpdateRefused: GitHub's refusals are reported with its reason, and a closed pull request is left alone.
func TestUpdateRefused(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.OpenPull()
	w.Task.PR.Update = asked
	pushBase(w, "free.go")
	_ = w.Do(state.JobUpdate)
	w.MustFault(simgithub.Fault{Path: "^/graphql updatePullRequestBranch",
		Body: `{"data":null,"errors":[{"type":"FORBIDDEN","message":"Resource not accessible by integration"}]}`, Status: http.StatusOK})
	if _, err := w.Try(state.JobUpdate); err == nil { // the permission may be new
		t.Error("got no error, want another attempt with a new token")
	}
	if got := compared(w); got.Result != event.BaseRefused || !strings.Contains(got.Refusal, "not accessible by integration") || got.Workflow != "" {
		t.Errorf("got %+v, want GitHub's reason", got)
	}
	workflowtest.Check(t, w.As("ada").Close(workflowtest.RepoName, w.Task.PR.Number, ""))
	if e := w.Do(state.JobUpdate); e.Kind() != event.KindNothing {
		t.Errorf("got %s for a closed pull request", e.Kind())
	}
}

// TestUpdateWaitsForTheWork: while the task does something else, its branch is left alone.
func TestUpdateWaitsForTheWork(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.OpenPull()
	w.Task.PR.Update, w.Task.Phase = asked, state.PhaseAddressingReview
	pushBase(w, "free.go")
	for range 2 {
		if e := w.Do(state.JobUpdate); e.Kind() != event.KindNothing || w.Head(w.Task.Branch.Name) != w.Task.Branch.Head {
			t.Errorf("got %s, want nothing", e.Kind())
		}
	}
}
