package talk_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestReplyWithoutTaskAfterItsBegin: a reply that the issue has no task is not posted once somebody has begun one, whoever got it and whatever has
// become of the task. Other replies are.
func TestReplyWithoutTaskAfterItsBegin(t *testing.T) {
	t.Parallel()
	ended := func(t *state.Task) { t.Phase = state.PhaseDone }
	for name, c := range map[string]struct {
		reason string
		by     string
		task   func(*state.Task)
		posted int
	}{
		"no task":            {reason: state.ReplyNoTask, by: "ada"},
		"no task, another":   {reason: state.ReplyNoTask, by: "bob"},
		"closed, reopened":   {reason: state.ReplyNoTaskClosed, by: "ada"},
		"the task has ended": {reason: state.ReplyNoTask, by: "ada", task: ended},
		"another reply":      {reason: state.ReplyNoOpenPR, by: "ada", posted: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			if c.task != nil {
				c.task(w.Task)
			}
			e := w.Do(state.JobPost, func(j *state.Job) {
				j.Key, j.Post = "1.reply-"+c.reason, &state.Post{Kind: state.PostReply, Reason: c.reason, By: w.Person(c.by)}
			})
			if got := w.Ours(1); len(got) != c.posted || (e.Kind() == event.KindPosted) != (c.posted > 0) {
				t.Errorf("got %s, comments %q", e.Kind(), got)
			}
		})
	}
}
