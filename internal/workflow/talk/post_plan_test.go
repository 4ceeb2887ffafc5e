package talk_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestPostOfAPlanThatWasEditedBeforeItWasKnown: the answer to the first attempt was lost, and the comment was edited before
// the second one found it. Who approves it later approves the plan, so the comment has to say it. A tick is no edit.
func TestPostOfAPlanThatWasEditedBeforeItWasKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit     func(string) string
		restored bool
		ticked   bool // people are told, unless it is known who ticked
	}{
		"other words":      {func(body string) string { return "Delete everything.\n\n" + body }, true, false},
		"words taken away": {func(body string) string { return strings.Replace(body, "Do it.", "Do it twice.", 1) }, true, false},
		"both":             {func(body string) string { return strings.Replace(body, "- [ ] ", "- [x] ", 1) + "\nAnd more." }, true, false},
		"a tick":           {func(body string) string { return strings.Replace(body, "- [ ] ", "- [x] ", 1) }, false, true},
		"nothing":          {func(body string) string { return body }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			p := w.Planned(state.PlanThorough) // of which the store never heard
			before := w.Ours(1)[0]
			workflowtest.Check(t, w.Edit(p, "ada", c.edit))
			edited := w.Ours(1)[0]
			w.HoursPass()
			e := w.Do(state.JobPost, workflowtest.Again, func(j *state.Job) {
				j.Key, j.Post = "1.plan-"+p.Hash, &state.Post{Kind: state.PostPlan, Hash: p.Hash}
			})
			want := edited
			if c.restored {
				want = before
			}
			if list := w.Ours(1); len(list) != 1 || list[0] != want {
				t.Errorf("comments %q, want %q", list, want)
			}
			if event.Of[event.Posted](e).Ticked != c.ticked {
				t.Errorf("a box is ticked: %v, want %v", event.Of[event.Posted](e).Ticked, c.ticked)
			}
			if event.Of[event.Posted](e).BodyHash != comment.BodyHash(before) || event.Of[event.Posted](e).Comment.ID != p.Comment {
				t.Errorf("the plan counts as posted with the hash %s, want that of the plan's text %s", event.Of[event.Posted](e).BodyHash, comment.BodyHash(before))
			}
			if later := event.Of[event.Posted](e).Comment.At.After(p.PostedAt); later != c.restored {
				t.Errorf("posted at %s, first at %s: a 👍 on other words must not count, and one on these must", event.Of[event.Posted](e).Comment.At, p.PostedAt)
			}
		})
	}
}

// TestPostOfWhatHoldsNoMore: a revision that a newer one has replaced before it was shown is not shown after it, nor is anybody reminded
// of a plan that nobody waits for. What an earlier attempt has left of it is found, so that it can be folded.
func TestPostOfWhatHoldsNoMore(t *testing.T) {
	t.Parallel()
	superseded := func(w *workflowtest.World, p *state.Plan) { p.Superseded, p.Comment = true, 0 }
	for name, c := range map[string]struct {
		kind     state.PostKind
		set      func(*workflowtest.World, *state.Plan)
		there    bool // an earlier attempt had its effect
		again    bool // and nobody knows
		comments int
		posted   bool
	}{
		"a plan":                                   {kind: state.PostPlan, set: func(_ *workflowtest.World, p *state.Plan) { p.Comment = 0 }, comments: 1, posted: true},
		"a replaced plan":                          {kind: state.PostPlan, set: superseded},
		"a replaced plan that may be there":        {kind: state.PostPlan, set: superseded, again: true},
		"a replaced plan that is there":            {kind: state.PostPlan, set: superseded, there: true, again: true, comments: 1, posted: true},
		"a replaced diff that is there":            {kind: state.PostPlan, set: func(w *workflowtest.World, p *state.Plan) { superseded(w, p); p.Publish = &state.Changes{} }, there: true, again: true, comments: 1, posted: true},
		"a reminder":                               {kind: state.PostReminder, set: func(*workflowtest.World, *state.Plan) {}, comments: 1, posted: true},
		"a reminder of a replaced plan":            {kind: state.PostReminder, set: func(_ *workflowtest.World, p *state.Plan) { p.Superseded = true }},
		"a reminder of an approved plan":           {kind: state.PostReminder, set: func(w *workflowtest.World, _ *state.Plan) { w.Task.Phase = state.PhaseImplementing }},
		"a reminder that is there, of such a plan": {kind: state.PostReminder, set: func(w *workflowtest.World, _ *state.Plan) { w.Task.Phase = state.PhaseImplementing }, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			p := w.Planned(state.PlanThorough)
			if !c.there {
				workflowtest.Check(t, w.Ada.DeleteComment(workflowtest.RepoName, p.Comment))
			}
			before := len(w.Issue().Comments)
			w.HoursPass()
			c.set(w, p)
			e := w.Do(state.JobPost, func(j *state.Job) {
				j.Key, j.Post = "1.plan-"+p.Hash, &state.Post{Kind: c.kind, Hash: p.Hash}
				if c.again {
					workflowtest.Again(j)
				}
			})
			if posted := e.Kind() == event.KindPosted; posted != c.posted {
				t.Errorf("event %s, want one of a comment: %v", e.Kind(), c.posted)
			}
			if got := len(w.Issue().Comments); got != c.comments {
				t.Errorf("%d comments (%d before), want %d", got, before, c.comments)
			}
		})
	}
}
