package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/settings"
)

// However much people write while a task waits, starts or is planned, the store can store it, the newest comments are
// complete, and cuts of older ones are marked.
func TestFloodOfWordsFits(t *testing.T) {
	t.Parallel()
	const comments, listed, length = 50, 600, 60_000
	all := noise(comments * length)
	body := func(i, n int) string { return all[i*len(all)/n : (i+1)*len(all)/n] }
	last := "The last word."
	for name, started := range map[string]bool{"while it is queued": false, "while it is planned": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.next = machine.Next
			apply := func(e event.Event) *state.Task {
				t.Helper()
				s.advance(time.Second)
				e.Task, e.At = task1, s.time()
				return s.mustApply(t, e, Ack{}).Task
			}
			say := func(id int, text string) *state.Task {
				t.Helper()
				return apply(event.Event{By: ada, Permission: state.PermissionWrite, ID: fmt.Sprintf("comment:%d", id), Payload: event.Commented{Comment: &state.Comment{ID: int64(id), Body: text, At: s.time()}}})
			}
			start := &event.Start{Settings: settings.Default(), Visible: true, Branch: state.Branch{Name: "b", Base: "main", BaseSHA: "b0"}, ReadAt: s.time()}
			apply(event.Event{By: ada, Permission: state.PermissionWrite, Via: "assigned", Repo: &state.Repo{ID: 7, Owner: "o", Name: "r"}, Payload: event.Triggered{Issue: &state.Issue{Title: "Bug", Body: "It breaks."}}})
			if started {
				apply(event.Event{Payload: event.Started{Start: *start}})
			}
			for i := range comments {
				say(i+1, body(i, comments))
			}
			task := say(listed+1, last)
			if got := task.Feedback[len(task.Feedback)-1].Body; got != last {
				t.Errorf("got the last comment as %q", got)
			}
			if first := task.Feedback[0].Body; len(task.Feedback) != comments+1 || !strings.HasSuffix(first, "(the rest is on GitHub)") {
				t.Errorf("got %d comments, the first as %q", len(task.Feedback), first)
			}
			for i := range listed {
				start.Context.Comments = append(start.Context.Comments, state.DiscussionComment{ID: int64(i + 1), By: ada, At: s.time(), Body: body(i, listed)})
			}
			start.ReadAt = s.time()
			if !started {
				task = apply(event.Event{Payload: event.Started{Start: *start}})
				if n := len(task.Context.Comments); n != 500 || len(task.Feedback) != 1 {
					t.Errorf("got %d comments in the discussion and %d to answer", n, len(task.Feedback))
				}
			}
		})
	}
}
