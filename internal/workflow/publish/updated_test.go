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
