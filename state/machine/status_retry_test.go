package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestStatusOfEndedTaskIsRetried: the status comment of a task that is over is tried again, long after the end only some
// times, and the count begins again after a successful write.
func TestStatusOfEndedTaskIsRetried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after  time.Duration
		failed int
		want   bool
	}{
		"just after the end, often": {time.Hour, 200, true},
		"long after, at first":      {100 * time.Hour, 0, true},
		"long after, often":         {100 * time.Hour, endRetries, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.IssueClosed{}})
			l.task.Status.Failed = c.failed
			l.now = l.now.Add(c.after)
			l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobStatus, Class: state.ClassGitHub, Reason: "No."}}})
			again := false
			for _, j := range l.jobs {
				again = again || j.Kind == state.JobStatus && j.NotBefore.After(l.now)
			}
			if again != c.want {
				t.Errorf("got jobs %v", kindsOf(l.jobs))
			}
			l.do(event.Event{Payload: event.StatusSent{Status: state.StatusComment{Comment: 3, Shown: l.task.Visible, At: l.now}}})
			if l.task.Status.Failed != 0 {
				t.Errorf("got %d failures after a successful write, want 0", l.task.Status.Failed)
			}
		})
	}
}
