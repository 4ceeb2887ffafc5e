package machine

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// states reports whether the last event made the job that posts the statement about the published changes.
func (l *life) states() bool {
	return slices.ContainsFunc(l.jobs, func(j state.Job) bool { return j.Kind == state.JobPost && j.Post.Kind == state.PostProvenance })
}

// commit brings a round up to the move of the branch to a head.
func (l *life) commit(head string) {
	run := l.task.Work.Run
	l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: run, Paths: 1, LocalHead: "l" + head, LocalTree: "t" + head, Base: l.task.Branch.Head}}})
	l.do(event.Event{Payload: event.Committed{Work: &state.Work{Run: run, Head: head, Tree: "t", Published: []state.PublishedCommit{{ID: head, Tree: "t"}}}}})
	l.want(state.PhaseAddressingReview, state.JobMove)
}

// publications returns the heads of the task's publications, with - before a gap, and ? behind one that may not have happened.
func publications(t *state.Task) string {
	var list []string
	for _, p := range t.Publications {
		text := p.Head
		if p.Gap {
			text = "-" + text
		}
		if p.Update != nil {
			text += "(" + string(p.Update.Method) + " " + p.Update.Before + ")"
		}
		if p.Unconfirmed {
			text += "?"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

// TestPublicationsSurviveAccidents: errand stores which changesets it published, and marks what it cannot know: after an upgrade, a lost
// answer, or the end of a life while the branch was moved.
func TestPublicationsSurviveAccidents(t *testing.T) {
	t.Parallel()
	moved := event.Event{Payload: event.BranchMoved{}}
	for name, c := range map[string]struct {
		known  bool // whether the first changes were published by a version that stores publications
		play   func(l *life)
		want   string
		states bool
	}{
		"a round":                    {true, func(l *life) { l.commit("B"); l.do(moved) }, "H B", true},
		"a round after an upgrade":   {false, func(l *life) { l.commit("B"); l.do(moved) }, "-B", true},
		"about to be moved":          {true, func(l *life) { l.commit("B") }, "H B?", false},
		"it ends meanwhile":          {true, func(l *life) { l.commit("B"); l.unassign() }, "H B?", true},
		"it ends after an upgrade":   {false, func(l *life) { l.commit("B"); l.unassign() }, "-B?", false},
		"it ends, and is moved late": {true, func(l *life) { l.commit("B"); l.unassign(); l.do(moved) }, "H B?", false},
		"the next life": {true, func(l *life) {
			l.commit("B")
			l.unassign()
			l.trigger()
			l.do(event.Event{Payload: event.PRReopened{Number: 5, Head: "B"}})
		}, "H B?", false},
		"it is closed meanwhile": {true, func(l *life) { l.commit("B"); l.do(event.Event{By: writer, Payload: event.PRClosed{}}); l.do(moved) }, "H B", true},
		"a push meanwhile":       {true, func(l *life) { l.commit("B"); l.do(event.Event{Payload: event.BranchAhead{Head: "P"}}) }, "H B?", true},
		"and then": {true, func(l *life) {
			l.commit("B")
			l.do(event.Event{Payload: event.BranchAhead{Head: "P"}})
			l.commit("C")
			l.do(moved)
		}, "H B? C", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPR()
			if c.known {
				l.task.Publications = []state.Publication{{Head: "H", At: l.now}}
			}
			l.beginRound()
			l.end(state.RunResult{Outcome: "done"})
			c.play(l)
			if got := publications(l.task); got != c.want || l.states() != c.states {
				t.Errorf("got publications %q and a statement: %t, want %q, %t", got, l.states(), c.want, c.states)
			}
		})
	}
}

// TestUpdatesByGitHubAreStated: an update of the branch by GitHub is stored once, with its result as soon as it is known, and stated each time.
func TestUpdatesByGitHubAreStated(t *testing.T) {
	t.Parallel()
	read := func(result event.BaseResult, head, before string) event.Event {
		return event.Event{Payload: event.BaseRead{Known: before, Head: cmp.Or(head, before), Result: result, Begun: head == "",
			Published: &state.Publication{Head: head, Update: &state.BranchUpdate{Method: state.UpdateMerge, Before: before}}}}
	}
	done, begun := read(event.BaseUpdated, "U", "H"), read(event.BaseUnknown, "", "H")
	for name, c := range map[string]struct {
		known  []state.Publication
		events []event.Event
		want   string
		states bool // after the last event
	}{
		"an update":                     {[]state.Publication{{Head: "H"}}, []event.Event{done}, "H U(merge H)", true},
		"an update, begun":              {[]state.Publication{{Head: "H"}}, []event.Event{begun}, "H (merge H)?", true},
		"begun, and done":               {[]state.Publication{{Head: "H"}}, []event.Event{begun, done}, "H U(merge H)", true},
		"done, and done again":          {[]state.Publication{{Head: "H"}}, []event.Event{done, done}, "H U(merge H)", false},
		"done, and begun again":         {[]state.Publication{{Head: "H"}}, []event.Event{done, begun}, "H U(merge H)", false},
		"two updates":                   {[]state.Publication{{Head: "H"}}, []event.Event{done, read(event.BaseUpdated, "V", "U")}, "H U(merge H) V(merge U)", true},
		"before a conflict":             {[]state.Publication{{Head: "H"}}, []event.Event{begun, read(event.BaseConflict, "U", "H")}, "H U(merge H)", true},
		"of commits by an older errand": {nil, []event.Event{done}, "", false},
		"no update":                     {[]state.Publication{{Head: "H"}}, []event.Event{{Payload: event.BaseRead{Known: "H", Head: "H", Result: event.BaseCurrent}}}, "H", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := openPR(t)
			l.task.Publications, l.task.Branch.Head = c.known, "H"
			for _, e := range c.events {
				l.do(e)
			}
			if got := publications(l.task); got != c.want || l.states() != c.states {
				t.Errorf("got publications %q and a statement: %t, want %q, %t", got, l.states(), c.want, c.states)
			}
		})
	}
}

// TestFailedStatementIsPostedAgain: a statement that cannot be posted is tried again, later and later and a limited number of times, also after the end
// of the task. The status comment knows why it is missing until it is posted.
func TestFailedStatementIsPostedAgain(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]bool{"of an open pull request": false, "after the merge": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := openPR(t)
			l.task.Publications = []state.Publication{{Head: "H", At: l.now}}
			if end {
				l.do(event.Event{By: writer, Payload: event.PRClosed{Merged: true}})
			}
			phase := l.task.Phase
			post := &state.Post{Kind: state.PostProvenance, OnPR: true}
			failed := event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobPost, Class: state.ClassGitHub, Reason: "GitHub refuses it."}, Post: post}}
			var waits []time.Duration
			for range maxStatementFailures + 1 {
				l.do(failed)
				for _, j := range l.jobs {
					if j.Kind == state.JobPost && j.Post.Kind == state.PostProvenance && j.Args.Number == l.task.PR.Number {
						waits = append(waits, j.NotBefore.Sub(l.now))
					}
				}
				if l.task.PR.Unstated != "GitHub refuses it." || l.task.Phase != phase {
					t.Errorf("the status says %q in %s", l.task.PR.Unstated, l.task.Phase)
				}
			}
			const m = time.Minute
			if want := []time.Duration{5 * m, 10 * m, 20 * m, 40 * m, 60 * m}; !slices.Equal(waits, want) {
				t.Errorf("posted again after %v, want %v", waits, want)
			}
			l.do(event.Event{Payload: event.Posted{Post: post, Comment: state.Posted{ID: 70, Kind: string(post.Kind), OnPR: true, Number: l.task.PR.Number}}})
			if l.task.PR.Unstated != "" || l.task.PR.StatementFailures != 0 {
				t.Errorf("after it was posted: got %+v", l.task.PR)
			}
		})
	}
}

// TestRestoredErrandKeepsTheBetterStatement: what errand states after a restoration would lack what it published since the backup, until it
// publishes something, which is then marked.
func TestRestoredErrandKeepsTheBetterStatement(t *testing.T) {
	t.Parallel()
	p := DefaultPolicy()
	p.Restored = t0.Add(time.Hour)
	next := func() *change {
		task := &state.Task{Key: state.TaskKey{Repo: 7, Issue: 1}}
		task.PR, task.Publications = &state.PR{Number: 5}, []state.Publication{{Head: "H", At: t0}}
		task.Work = &state.Work{Head: "B", Published: []state.PublishedCommit{{ID: "B"}}}
		return &change{t: task, p: p, e: event.Event{Now: t0.Add(2 * time.Hour)}}
	}
	c := next()
	if c.postProvenance(); len(c.jobs) != 0 {
		t.Errorf("got jobs %v before anything is published", kindsOf(c.jobs))
	}
	c = next()
	if storeHead(c); len(c.jobs) != 1 || publications(c.t) != "H -B" {
		t.Errorf("got jobs %v and publications %q", kindsOf(c.jobs), publications(c.t))
	}
	c = next()
	c.e.Payload = event.BaseRead{Published: &state.Publication{Head: "U", Update: &state.BranchUpdate{Method: state.UpdateRebase, Before: "H"}}}
	if storeUpdate(c); len(c.jobs) != 1 || publications(c.t) != "H -U(rebase H)" {
		t.Errorf("got jobs %v and publications %q", kindsOf(c.jobs), publications(c.t))
	}
}
