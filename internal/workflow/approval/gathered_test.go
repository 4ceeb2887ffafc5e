package approval_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestGatheredCommentsAreReadAgain: an edit by the author counts, any other edit, a deletion and hiding withdraw a comment.
func TestGatheredCommentsAreReadAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(w *workflowtest.World, c *simgithub.Comment) error
		want []state.Comment
	}{
		"unchanged":            {nil, nil},
		"edited by its author": {edits("bob", "use tabs"), []state.Comment{{Body: "use tabs"}}},
		"edited to thanks":     {edits("bob", "Thanks!"), []state.Comment{{Body: "Thanks!", Remark: state.RemarkThanks}}},
		"edited to a message":  {edits("bob", "@errand use tabs"), []state.Comment{{Body: "use tabs", Mention: true}}},
		"edited by an admin":   {edits("ada", "delete it all"), []state.Comment{{Withdrawn: state.RejectedCommentEdited}}},
		"deleted":              {deletes("bob"), []state.Comment{{Withdrawn: state.RejectedCommentDeleted}}},
		"hidden": {func(w *workflowtest.World, c *simgithub.Comment) error {
			return w.Forge.Minimize(w.T.Context(), w.Task.Installation, c.NodeID)
		}, []state.Comment{{Withdrawn: state.RejectedCommentDeleted}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			said, err := w.As("bob").Comment(workflowtest.RepoName, 1, "use tbas")
			workflowtest.Check(t, err)
			if c.act != nil {
				workflowtest.Check(t, c.act(w, said))
			}
			id := fmt.Sprintf("comment:%d", said.ID)
			w.Task.Feedback = []state.Feedback{
				{ID: id, Kind: "comment", By: w.Person("bob"), Body: "use tbas", Node: said.NodeID},
				{ID: id + "0", Kind: "comment", By: w.Person("bob"), Body: "taken", Node: said.NodeID, TakenBy: "run"},
				{ID: "edit:1", Kind: "edit", By: w.Person("bob")},
			}
			got := event.Of[event.Due](w.Do(state.JobDue, workflowtest.Args(state.JobArgs{Due: state.DueComments}))).Reread
			for i := range c.want {
				c.want[i].ID = said.ID
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
