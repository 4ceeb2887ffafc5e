package talk_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestPostOfAPlanEditedBeforeItWasFound: the answer to the first attempt was lost, and the comment was edited before
// the second attempt found it. Because people approve the plan in the comment, its text is restored. A tick does not
// count as an edit.
func TestPostOfAPlanEditedBeforeItWasFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit     func(string) string
		restored bool
		ticked   bool // a comment explains it, unless the account that ticked is known
	}{
		"other words":  {func(body string) string { return "Delete everything.\n\n" + body }, true, false},
		"text removed": {func(body string) string { return strings.Replace(body, "Do it.", "Do it twice.", 1) }, true, false},
		"both":         {func(body string) string { return strings.Replace(body, "- [ ] ", "- [x] ", 1) + "\nAnd more." }, true, false},
		"a tick":       {func(body string) string { return strings.Replace(body, "- [ ] ", "- [x] ", 1) }, false, true},
		"nothing":      {func(body string) string { return body }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			p := w.Planned(state.PlanThorough) // unknown to the store
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
				t.Errorf("got comments %q, want %q", list, want)
			}
			if event.Of[event.Posted](e).Ticked != c.ticked {
				t.Errorf("got a ticked box: %v, want %v", event.Of[event.Posted](e).Ticked, c.ticked)
			}
			if event.Of[event.Posted](e).BodyHash != comment.BodyHash(before) || event.Of[event.Posted](e).Comment.ID != p.Comment {
				t.Errorf("got hash %s of the posted plan, want that of the plan's text %s", event.Of[event.Posted](e).BodyHash, comment.BodyHash(before))
			}
			if later := event.Of[event.Posted](e).Comment.At.After(p.PostedAt); later != c.restored {
				t.Errorf("got time %s of the post, first at %s: a 👍 counts only for the restored text", event.Of[event.Posted](e).Comment.At, p.PostedAt)
			}
		})
	}
}

// TestPostOfOutdatedPlans: a revision that was replaced before it was posted is no longer posted, and there is no
// reminder of a plan that does not wait for approval. A comment by an earlier attempt is found, so that it can be
// folded.
func TestPostOfOutdatedPlans(t *testing.T) {
	t.Parallel()
	superseded := func(w *workflowtest.World, p *state.Plan) { p.Superseded, p.Comment = true, 0 }
	for name, c := range map[string]struct {
		kind     state.PostKind
		set      func(*workflowtest.World, *state.Plan)
		there    bool // an earlier attempt had its effect
		again    bool // without errand's knowledge
		comments int
		posted   bool
	}{
		"a plan":                                {kind: state.PostPlan, set: func(_ *workflowtest.World, p *state.Plan) { p.Comment = 0 }, comments: 1, posted: true},
		"a replaced plan":                       {kind: state.PostPlan, set: superseded},
		"a replaced plan that may be posted":    {kind: state.PostPlan, set: superseded, again: true},
		"a replaced plan that is posted":        {kind: state.PostPlan, set: superseded, there: true, again: true, comments: 1, posted: true},
		"a replaced diff that is posted":        {kind: state.PostPlan, set: func(w *workflowtest.World, p *state.Plan) { superseded(w, p); p.Publish = &state.Changes{} }, there: true, again: true, comments: 1, posted: true},
		"a reminder":                            {kind: state.PostReminder, set: func(*workflowtest.World, *state.Plan) {}, comments: 1, posted: true},
		"a reminder of a replaced plan":         {kind: state.PostReminder, set: func(_ *workflowtest.World, p *state.Plan) { p.Superseded = true }},
		"a reminder of an approved plan":        {kind: state.PostReminder, set: func(w *workflowtest.World, _ *state.Plan) { w.Task.Phase = state.PhaseImplementing }},
		"a posted reminder of an approved plan": {kind: state.PostReminder, set: func(w *workflowtest.World, _ *state.Plan) { w.Task.Phase = state.PhaseImplementing }, again: true},
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
				t.Errorf("got event %s, want one about a comment: %v", e.Kind(), c.posted)
			}
			if got := len(w.Issue().Comments); got != c.comments {
				t.Errorf("got %d comments (%d before), want %d", got, before, c.comments)
			}
		})
	}
}
