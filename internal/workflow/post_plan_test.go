package workflow_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/state"
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
			w := newWorld(t)
			p := w.planned(state.PlanThorough) // of which the store never heard
			before := w.ours(1)[0]
			check(t, w.edit(p, "ada", c.edit))
			edited := w.ours(1)[0]
			w.hoursPass()
			e := w.do(state.JobPost, again, func(j *state.Job) {
				j.Key, j.Post = "1.plan-"+p.Hash, &state.Post{Kind: state.PostPlan, Hash: p.Hash}
			})
			want := edited
			if c.restored {
				want = before
			}
			if list := w.ours(1); len(list) != 1 || list[0] != want {
				t.Errorf("comments %q, want %q", list, want)
			}
			if e.Ticked != c.ticked {
				t.Errorf("a box is ticked: %v, want %v", e.Ticked, c.ticked)
			}
			if e.Hash != comment.BodyHash(before) || e.Posted.ID != p.Comment {
				t.Errorf("the plan counts as posted with the hash %s, want that of the plan's text %s", e.Hash, comment.BodyHash(before))
			}
			if later := e.Posted.At.After(p.PostedAt); later != c.restored {
				t.Errorf("posted at %s, first at %s: a 👍 on other words must not count, and one on these must", e.Posted.At, p.PostedAt)
			}
		})
	}
}
