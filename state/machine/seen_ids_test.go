package machine

import (
	"fmt"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestAnsweredFeedbackStaysSeen: feedback that a round has answered is not gathered again, even after many comments by
// others.
func TestAnsweredFeedbackStaysSeen(t *testing.T) {
	t.Parallel()
	task := &state.Task{TaskComments: state.TaskComments{SeenIDs: []string{"thread:1:2"}}}
	for i := range 2 * maxSeenIDs {
		MarkSeen(task, event.Event{ID: fmt.Sprintf("review-event:%d", i), Permission: state.PermissionRead})
	}
	if !task.HasSeen("thread:1:2") || len(task.SeenUntrustedIDs) != maxSeenIDs || len(task.SeenIDs) != 1 {
		t.Errorf("got %d IDs of writers and %d of others", len(task.SeenIDs), len(task.SeenUntrustedIDs))
	}
}
