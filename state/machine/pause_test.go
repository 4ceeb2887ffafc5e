package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestPauseIsNoFailure: a task that waits for the operator is not checked again by time, posts nothing, and is neither a failed nor
// another attempt, however often the pause begins again. When it tries again, it no longer says that it is paused.
func TestPauseIsNoFailure(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	run, launches := l.task.Run.ID, l.task.UnattendedLaunches
	for range 30 {
		l.now = l.now.Add(24 * time.Hour)
		jobs := l.do(event.Event{Payload: event.StepBlocked{Waiting: state.Pause{Reason: "new disk"}.Waiting()}})
		if w := l.task.Waiting; w == nil || w.Kind != state.WaitPaused || !w.Until.IsZero() || !w.Since.Equal(l.now) || !l.task.IsHeldUp() {
			t.Fatalf("got waiting %+v", w)
		}
		if jobOf(jobs, state.JobDue).Kind != "" || jobOf(jobs, state.JobPost).Kind != "" || jobOf(jobs, state.JobStatus).Kind == "" {
			t.Fatalf("got jobs %v, want only the status comment", kindsOf(jobs))
		}
		jobs = l.do(event.Event{Payload: event.ConditionChanged{}})
		if l.task.Waiting != nil || jobOf(jobs, state.JobLaunch).Kind == "" || l.task.Run.ID != run || l.task.Run.Attempt != 1 || l.task.UnattendedLaunches != launches {
			t.Fatalf("got waiting %+v, jobs %v, run %+v, %d launches", l.task.Waiting, kindsOf(jobs), l.task.Run, l.task.UnattendedLaunches)
		}
	}
	l.launch()
	if l.task.Run.State != state.RunActive {
		t.Errorf("got run %+v", l.task.Run)
	}
}

// TestPauseKeepsTheOrder: tasks that waited for a VM continue after a pause in the order in which they began to wait for it.
func TestPauseKeepsTheOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before state.Waiting
		same   bool
	}{
		"in the queue for a VM": {state.Waiting{Kind: state.WaitVM, Place: 3}, true},
		"no VM at all":          {state.Waiting{Kind: state.WaitVM}, false},
		"no money":              {state.Waiting{Kind: state.WaitMoney}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.start()
			l.do(event.Event{Payload: event.StepBlocked{Waiting: &c.before}})
			since := l.now
			l.now = l.now.Add(time.Hour)
			l.do(event.Event{Payload: event.StepBlocked{Waiting: state.Pause{Repo: 1}.Waiting()}})
			if got := l.task.Waiting.Since.Equal(since); got != c.same {
				t.Errorf("waits since %v; the first wait began at %v", l.task.Waiting.Since, since)
			}
		})
	}
}
