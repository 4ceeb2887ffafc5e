package publish_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestUpdatesAreStated: the event of an update says which head GitHub updated, how, onto which commit of the base, and with which result; also if
// GitHub did it later than it answered, or if its answer was lost. A head that somebody else made is not the result.
func TestUpdatesAreStated(t *testing.T) {
	t.Parallel()
	const merge, rebase, late, lost = state.UpdateMerge, state.UpdateRebase, "late", "lost"
	for name, c := range map[string]struct {
		method state.UpdateMethod
		answer string // how GitHub answers: at once, late, or not at all
		pushed bool   // somebody pushes a moment later
		hooked bool   // the webhook about the new head comes first
		older  bool   // a version without statements published the commits
		want   string // "all", "asked" without the result, or ""
	}{
		"a merge":                           {method: merge, want: "all"},
		"a rebase":                          {method: rebase, want: "all"},
		"a merge, later":                    {method: merge, answer: late, want: "all"},
		"a rebase, later":                   {method: rebase, answer: late, want: "all"},
		"a merge, later, and a push":        {method: merge, answer: late, pushed: true, want: ""},
		"a rebase, later, and a push":       {method: rebase, answer: late, pushed: true, want: ""},
		"a merge, lost":                     {method: merge, answer: lost, want: "all"},
		"a merge, lost, after its webhook":  {method: merge, answer: lost, hooked: true, want: "all"},
		"a rebase, lost":                    {method: rebase, answer: lost, want: "asked"},
		"a rebase, lost, after its webhook": {method: rebase, answer: lost, hooked: true, want: "asked"},
		"a merge, lost, and a push":         {method: merge, answer: lost, pushed: true, want: ""},
		"of an older version":               {method: merge, older: true, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.OpenPull()
			w.Task.PR.Update = asked
			w.Task.PR.Update.Rebase = c.method == rebase
			before := w.Task.Branch.Head
			if !c.older {
				w.Task.Publications = []state.Publication{{Head: before}}
			}
			base := pushBase(w, "free.go")
			_ = w.Do(state.JobUpdate) // GitHub computes whether it can be merged
			fault := simgithub.Fault{Path: "^/graphql updatePullRequestBranch", After: true, Count: 1}
			var got event.BaseRead
			switch c.answer {
			case late:
				fault.Status, fault.Body = http.StatusOK, fmt.Sprintf(`{"data":{"updatePullRequestBranch":{"pullRequest":{"headRefOid":"%s"}}}}`, before)
				w.MustFault(fault)
				got = compared(w)
				if p := got.Published; !got.Begun || p == nil || p.Head != "" || p.Update.Before != before || p.Update.Method != c.method || !w.Task.AddUpdate(*p, time.Time{}) {
					t.Fatalf("got %+v before GitHub did it", got)
				}
			case lost:
				fault.Status = http.StatusBadGateway
				w.MustFault(fault)
				if _, err := w.Try(state.JobUpdate); err == nil {
					t.Fatal("got no error for a lost answer")
				}
			}
			if c.pushed {
				w.Push("bob", w.Task.Branch.Name, map[string]string{"NEWS": "news\n"})
			}
			if c.hooked {
				w.Task.Branch.Head = w.Head(w.Task.Branch.Name)
			}
			if c.answer == lost {
				got = compared(w, workflowtest.Again)
			} else {
				got = compared(w)
			}
			p := got.Published
			if (p != nil) != (c.want != "") {
				t.Fatalf("got %+v, want %q", p, c.want)
			}
			if p == nil {
				return
			}
			if *p.Update != (state.BranchUpdate{Method: c.method, By: asked.By, Before: before}) {
				t.Errorf("got %+v", p.Update)
			}
			head := w.Head(w.Task.Branch.Name)
			want := state.Publication{Base: base, Head: head, Tree: w.Repo.Git.Commit(head).Tree}
			if c.want == "asked" {
				want = state.Publication{}
			}
			if p.Base != want.Base || p.Head != want.Head || p.Tree != want.Tree {
				t.Errorf("got %+v, want %+v", p, want)
			}
		})
	}
}

// TestUnreadUpdate: an update that GitHub carried out counts as one, also if errand cannot read the new head. Its result is open until errand can,
// whoever asked for it.
func TestUnreadUpdate(t *testing.T) {
	t.Parallel()
	byRebase := asked
	byRebase.Rebase = true
	const commit, compare = "/commits/[0-9a-f]{40}", "/compare/"
	for name, c := range map[string]struct {
		request state.UpdateRequest // none: errand updates it by itself
		fault   simgithub.Fault
	}{
		"a person, gone":         {asked, simgithub.Fault{Path: commit, Status: http.StatusNotFound}},
		"a person, refused":      {asked, simgithub.Fault{Path: commit, Status: http.StatusUnprocessableEntity}},
		"a person, GitHub fails": {asked, simgithub.Fault{Path: commit, Status: http.StatusBadGateway}},
		"a rebase, gone":         {byRebase, simgithub.Fault{Path: commit, Status: http.StatusNotFound}},
		"a rebase, not compared": {byRebase, simgithub.Fault{Path: compare, Nth: 2, Status: http.StatusBadGateway}},
		"errand, gone":           {state.UpdateRequest{}, simgithub.Fault{Path: commit, Status: http.StatusNotFound}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.OpenPull()
			workflowtest.Check(t, w.RequireUpToDate(workflowtest.RepoName, "main", true))
			before := w.Task.Branch.Head
			w.Task.PR.Update, w.Task.PR.Ready, w.Task.PR.Checks = c.request, true, "success"
			w.Task.Publications = []state.Publication{{Head: before}}
			pushBase(w, "free.go")
			_, err := w.Forge.Merging(t.Context(), w.RepoRef(), w.Task.PR.Number) // GitHub computes whether it can be merged
			workflowtest.Check(t, err)
			w.MustFault(c.fault)
			e, err := w.Try(state.JobUpdate)
			if err != nil {
				t.Fatalf("got the error %v although GitHub updated the branch", err)
			}
			head := w.Head(w.Task.Branch.Name)
			got, p := event.Of[event.BaseRead](e), event.Of[event.BaseRead](e).Published
			if got.Result != event.BaseUpdated || got.Head != head || head == before || p == nil || p.Head != "" || p.Update.By != c.request.By || p.Update.Before != before {
				t.Fatalf("got %+v, published %+v, want an open result of the head %s", got, p, head)
			}
			w.ClearFaults()
			w.Task.Branch.Head, w.Task.PR.Update = head, state.UpdateRequest{}
			if !w.Task.AddUpdate(*p, time.Time{}) {
				t.Fatal("the update is not stored")
			}
			if p := compared(w).Published; p == nil || p.Head != head || p.Update.By != c.request.By {
				t.Errorf("later got %+v, want the head %s", p, head)
			}
		})
	}
}

// TestLostUpdateAndAnotherPush: an update whose answer was lost is found also if somebody has pushed to the base since. It answers the command, and is
// not made again.
func TestLostUpdateAndAnotherPush(t *testing.T) {
	t.Parallel()
	byRebase := asked
	byRebase.Rebase = true
	for name, c := range map[string]struct {
		request state.UpdateRequest // none: errand updates it by itself
		hooked  bool                // the webhook about the new head comes first
		without bool                // the first attempt had no effect
		open    bool                // the result stays open
	}{
		"a person":                    {request: asked},
		"a person, after its webhook": {request: asked, hooked: true},
		"errand":                      {},
		"errand, after its webhook":   {hooked: true},
		"a rebase":                    {request: byRebase, open: true},
		"a rebase, after its webhook": {request: byRebase, hooked: true, open: true},
		"a person, without effect":    {request: asked, without: true},
		"errand, without effect":      {without: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.OpenPull()
			workflowtest.Check(t, w.RequireUpToDate(workflowtest.RepoName, "main", true))
			before := w.Task.Branch.Head
			w.Task.PR.Update, w.Task.PR.Ready, w.Task.PR.Checks = c.request, true, "success"
			w.Task.Publications = []state.Publication{{Head: before}}
			base := pushBase(w, "free.go")
			_, err := w.Forge.Merging(t.Context(), w.RepoRef(), w.Task.PR.Number) // GitHub computes whether it can be merged
			workflowtest.Check(t, err)
			w.MustFault(simgithub.Fault{Path: "^/graphql updatePullRequestBranch", After: !c.without, Count: 1, Status: http.StatusBadGateway})
			if _, err := w.Try(state.JobUpdate); err == nil {
				t.Fatal("got no error for a lost answer")
			}
			updated := w.Head(w.Task.Branch.Name)
			newest := w.Push("ada", "main", map[string]string{"more.go": "package slug\n"})
			if c.hooked {
				w.Task.Branch.Head, w.Task.PR.Checks = updated, ""
			}
			got := compared(w, workflowtest.Again)
			head, p := w.Head(w.Task.Branch.Name), got.Published
			if c.without {
				base = newest
			} else if head != updated {
				t.Errorf("the head is %s, want %s: it was updated twice", head, updated)
			}
			if got.Result != event.BaseUpdated || got.Head != head || p == nil || p.Update.Before != before || p.Update.By != c.request.By || got.Rebased != c.open {
				t.Fatalf("got %+v, published %+v", got, p)
			}
			if c.open {
				head, base = "", ""
			}
			if p.Head != head || p.Base != base {
				t.Errorf("got the head %s and base %s, want %s and %s", p.Head, p.Base, head, base)
			}
		})
	}
}
