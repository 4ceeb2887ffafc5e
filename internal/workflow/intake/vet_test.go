package intake_test

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

func TestVetStoresGitHubsAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		login string
		want  state.Permission
	}{
		"admin":  {"ada", state.PermissionAdmin},
		"writer": {"bob", state.PermissionWrite},
		"reader": {"eve", state.PermissionRead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			e := w.Do(state.JobVet, workflowtest.Vets(event.Event{Task: w.Task.Key, By: w.Person(c.login), Payload: event.Triggered{}}))
			v := e.Vetted
			if e.Permission != c.want || v == nil || v.By.ID != w.Person(c.login).ID || v.Permission != c.want || time.Since(v.At) > time.Minute || v.Hash != "" {
				t.Errorf("got permission %s, stored: %+v", e.Permission, v)
			}
		})
	}
}

// TestVetReadsMentionInIssueTextAgain: a mention in an issue's text that was removed before its webhook arrived starts nothing.
func TestVetReadsMentionInIssueTextAgain(t *testing.T) {
	t.Parallel()
	text := func(body string) func(w *workflowtest.World) error {
		return func(w *workflowtest.World) error {
			return w.Ada.EditIssue(workflowtest.RepoName, 1, simgithub.IssueEdit{Body: &body})
		}
	}
	for name, c := range map[string]struct {
		login     string
		change    func(w *workflowtest.World) error
		withdrawn bool
	}{
		"as it was":             {"ada", text("It breaks.\n\n@errand mend it"), false},
		"other words":           {"bob", text("@errand mend it, please"), false},
		"taken out":             {"ada", text("It breaks."), true},
		"now in a quote":        {"bob", text("> @errand mend it"), true},
		"deleted":               {"ada", func(w *workflowtest.World) error { return w.Ada.DeleteIssue(workflowtest.RepoName, 1) }, true},
		"by an outsider anyway": {"eve", text("It breaks."), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			workflowtest.Check(t, c.change(w))
			p := event.Commented{
				Comment: &state.Comment{InIssue: true, Mention: true, Body: "@errand mend it"}, Orders: []state.Order{{Verb: state.VerbMessage, Text: "mend it"}},
				Issue: &state.Issue{Title: "It breaks", Body: "@errand mend it"},
			}
			e := w.Do(state.JobVet, workflowtest.Vets(event.Event{Task: w.Task.Key, By: w.Person(c.login), Payload: p}))
			if got := e.Comment(); (got.Withdrawn != "") != c.withdrawn || !got.InIssue || e.Permission == "" {
				t.Errorf("got comment %+v with permission %s, want it withdrawn: %t", got, e.Permission, c.withdrawn)
			}
		})
	}
}

// TestStartUsesTheAnswerOfItsEvent: a permission is read once for an event and a person, and again when the answer is
// old or about another person.
func TestStartUsesTheAnswerOfItsEvent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vetted  func(w *workflowtest.World) *state.Vetted
		reads   int
		visible bool
	}{
		"just read": {func(w *workflowtest.World) *state.Vetted {
			return w.Vetted("ada", state.PermissionAdmin, time.Second, "")
		}, 0, true},
		"just read, denied": {func(w *workflowtest.World) *state.Vetted {
			return w.Vetted("ada", state.PermissionRead, time.Second, "")
		}, 0, false},
		"old": {func(w *workflowtest.World) *state.Vetted {
			return w.Vetted("ada", state.PermissionRead, 61*time.Second, "")
		}, 1, true},
		"from the future": {func(w *workflowtest.World) *state.Vetted {
			return w.Vetted("ada", state.PermissionRead, -time.Hour, "")
		}, 1, true},
		"for another person": {func(w *workflowtest.World) *state.Vetted {
			return w.Vetted("bob", state.PermissionRead, time.Second, "")
		}, 1, true},
		"for the login's former owner": {func(w *workflowtest.World) *state.Vetted {
			v := w.Vetted("ada", state.PermissionRead, 0, "")
			v.By.ID++
			return v
		}, 1, true},
		"none": {func(*workflowtest.World) *state.Vetted { return nil }, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			var e event.Event
			n := w.PermissionReads(func() { e = w.Do(state.JobStart, func(j *state.Job) { j.Vetted = c.vetted(w) }) })
			started, ok := e.Payload.(event.Started)
			if n != c.reads || !ok || started.Visible != c.visible {
				t.Errorf("got %d reads; event %s, visible %v", n, e.Kind(), started.Visible)
			}
		})
	}
}

// TestGatherUsesTheAnswerOfItsReview: the permission of the round's reviewer is cached; those of the other people in
// the threads are read.
func TestGatherUsesTheAnswerOfItsReview(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ago   time.Duration
		perm  state.Permission
		reads int
		heard int
	}{
		"just read":         {50 * time.Second, state.PermissionWrite, 1, 2}, // ada's
		"just read, denied": {time.Second, state.PermissionRead, 1, 1},
		"old":               {2 * time.Minute, state.PermissionRead, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			pull := w.OpenPull()
			for _, who := range []string{"bob", "ada"} {
				workflowtest.Check(t, workflowtest.Err(w.As(who).Review(workflowtest.RepoName, pull.Number, simgithub.NewReview{
					Event: "COMMENT", Comments: []simgithub.NewReviewComment{{Path: "slug.go", Line: 3, Body: "Why?"}},
				})))
			}
			var e event.Event
			n := w.PermissionReads(func() {
				e = w.Do(state.JobGather, func(j *state.Job) { j.Vetted = w.Vetted("bob", c.perm, c.ago, "") })
			})
			if n != c.reads || len(event.Of[event.Gathered](e).Feedback) != c.heard {
				t.Errorf("got %d reads, %d comments", n, len(event.Of[event.Gathered](e).Feedback))
			}
		})
	}
}

// TestStartOfApprovedWork: a start right after the check of an approval relies on it; any other start checks permission
// and 👍 again.
func TestStartOfApprovedWork(t *testing.T) {
	t.Parallel()
	lost := func(w *workflowtest.World) error {
		return w.Ada.SetPermission(workflowtest.RepoName, "bob", simgithub.RoleRead)
	}
	for name, c := range map[string]struct {
		change func(w *workflowtest.World, v *state.Vetted, j *state.Job)
		starts bool
	}{
		"at once":               {func(*workflowtest.World, *state.Vetted, *state.Job) {}, true},
		"11 seconds later":      {func(_ *workflowtest.World, v *state.Vetted, _ *state.Job) { v.At = v.At.Add(-11 * time.Second) }, false},
		"a second attempt":      {func(_ *workflowtest.World, _ *state.Vetted, j *state.Job) { j.Attempt = 2 }, false},
		"for another revision":  {func(_ *workflowtest.World, v *state.Vetted, _ *state.Job) { v.Hash = "00000000" }, false},
		"for a comment":         {func(_ *workflowtest.World, v *state.Vetted, _ *state.Job) { v.Hash = "" }, false},
		"for another person":    {func(w *workflowtest.World, v *state.Vetted, _ *state.Job) { v.By = w.Person("ada") }, false},
		"by a clock that jumps": {func(_ *workflowtest.World, v *state.Vetted, _ *state.Job) { v.At = v.At.Add(time.Hour) }, false},
		"without an answer":     {func(_ *workflowtest.World, _ *state.Vetted, j *state.Job) { j.Vetted = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			p := w.Planned(state.PlanPreliminary)
			workflowtest.Check(t, w.As("bob").React(workflowtest.RepoName, p.Comment, "+1"))
			approved, err := w.Approve(w.Candidate(p, "bob", state.ViaReaction))
			workflowtest.Check(t, err)
			v := approved.Vetted
			if approved.Kind() != event.KindApproved || v == nil || v.Hash != p.Hash || v.Base != w.Head("main") {
				t.Fatalf("%s: got %+v", approved.Kind(), v)
			}
			a := approved.Candidate().Approval
			w.Task.Approval, w.Task.Phase = &a, state.PhasePlanning
			w.Launching(state.RunPlan)
			workflowtest.Check(t, lost(w))
			before := w.Forge.Calls(forge.ForTask)
			e := w.Do(state.JobLaunch, func(j *state.Job) { j.Vetted = v; c.change(w, v, j) })
			if started := e.Kind() == event.KindLaunched; started != c.starts {
				t.Errorf("got event %s (%s)", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection)
			}
			if n := w.Forge.Calls(forge.ForTask) - before; c.starts && n != 0 {
				t.Errorf("got %d calls", n)
			}
		})
	}
}

// TestDeletedCommentGetsNoReaction: a reaction to a deleted comment is skipped without an error.
func TestDeletedCommentGetsNoReaction(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	c, err := w.As("bob").Comment(workflowtest.RepoName, 1, "@errand status")
	workflowtest.Check(t, err)
	workflowtest.Check(t, w.As("bob").DeleteComment(workflowtest.RepoName, c.ID))
	if e, err := w.Try(state.JobReact, workflowtest.Args(state.JobArgs{Reaction: "eyes", Comment: c.ID})); err != nil || e.Kind() != event.KindNothing {
		t.Errorf("got event %s, error %v", e.Kind(), err)
	}
}

// TestRunStartsAtTheBaseReadWithItsComment: the run started by a comment uses the head that was read with the comment,
// while it is fresh.
func TestRunStartsAtTheBaseReadWithItsComment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ago   time.Duration
		calls int
	}{
		"just read": {time.Second, 0},
		"old":       {31 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Launching(state.RunPlan)
			var e event.Event
			n := w.CallsTo("/git/ref/", func() {
				e = w.Do(state.JobLaunch, func(j *state.Job) { j.Vetted = w.Vetted("ada", state.PermissionAdmin, c.ago, "") })
			})
			if e.Kind() != event.KindLaunched || event.Of[event.Launched](e).Launch.BaseSHA != w.Head("main") || n != c.calls {
				t.Errorf("got event %s at %s, %d calls", e.Kind(), event.Of[event.Launched](e).Launch.BaseSHA, n)
			}
		})
	}
}

// TestVetReadsWhetherTheIssueIsOpen: nothing begins again on a closed issue, so a restart on the pull request must know.
func TestVetReadsWhetherTheIssueIsOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verb          state.Verb
		close, closed bool
	}{
		"restart":                     {state.VerbRestart, false, false},
		"restart on a closed issue":   {state.VerbRestart, true, true},
		"a command that continues it": {state.VerbRetry, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			said, err := w.Ada.Comment(workflowtest.RepoName, 1, "@errand "+string(c.verb))
			workflowtest.Check(t, err)
			if c.close {
				workflowtest.Check(t, w.Ada.Close(workflowtest.RepoName, 1, ""))
			}
			p := event.Commented{Comment: &state.Comment{ID: said.ID, Node: said.NodeID, Body: said.Body, OnPR: true, Mention: true}, Orders: []state.Order{{Verb: c.verb}}}
			e := w.Do(state.JobVet, workflowtest.Vets(event.Event{Task: w.Task.Key, By: w.Person("ada"), Payload: p}))
			if i := e.Issue(); e.Comment().Withdrawn != "" || (i != nil && i.Closed) != c.closed {
				t.Errorf("got %+v, issue %+v", e.Comment(), i)
			}
		})
	}
}
