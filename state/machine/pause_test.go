package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestPauseIsNoFailure: a task that waits for the operator is not checked again by time, posts nothing, and is neither a failed nor
// another attempt, however often it finds the pause again. When it tries again, it no longer says that it is paused.
func TestPauseIsNoFailure(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	run, launches := l.task.Run.ID, l.task.UnattendedLaunches
	var since time.Time
	for range 30 {
		l.now = l.now.Add(24 * time.Hour)
		jobs := l.do(event.Event{Payload: event.StepBlocked{Waiting: state.Pause{Reason: "new disk"}.Waiting()}})
		if since.IsZero() {
			since = l.now
		}
		if w := l.task.Waiting; w == nil || w.Kind != state.WaitPaused || !w.Until.IsZero() || !w.Since.Equal(since) || !l.task.IsHeldUp() {
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

// TestPauseKeepsItsBeginning: a task that finds the pause again has waited since it first found it, also if the reason was replaced, or a
// person made it look. It waits anew if it went on in between.
func TestPauseKeepsItsBeginning(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		between func(*life)
		same    bool
	}{
		"the reason is replaced": {func(l *life) { l.do(event.Event{Payload: event.ConditionChanged{}}) }, true},
		"replaced twice": {func(l *life) {
			l.do(event.Event{Payload: event.ConditionChanged{}})
			l.do(event.Event{Payload: event.StepBlocked{Waiting: state.Pause{Reason: "two"}.Waiting()}})
			l.do(event.Event{Payload: event.ConditionChanged{}})
		}, true},
		"by retry": {func(l *life) { l.comment(state.VerbRetry) }, true},
		"something else meanwhile": {func(l *life) {
			l.do(event.Event{Payload: event.ConditionChanged{}})
			l.do(event.Event{Payload: event.Locked{}})
		}, true},
		"found without a recheck": {func(*life) {}, true},
		"it waited for money in between": {func(l *life) {
			l.do(event.Event{Payload: event.ConditionChanged{}})
			l.do(event.Event{Payload: event.StepBlocked{Waiting: &state.Waiting{Kind: state.WaitMoney}}})
		}, false},
		"the agent worked in between": {func(l *life) {
			l.do(event.Event{Payload: event.ConditionChanged{}})
			l.launch()
			l.end(state.RunResult{Class: state.RunRetryable, Status: "lost"})
			l.comment(state.VerbRetry)
		}, false},
		"it began again": {func(l *life) { l.comment(state.VerbCancel); l.trigger(); l.start() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.start()
			l.do(event.Event{Payload: event.StepBlocked{Waiting: state.Pause{}.Waiting()}})
			since := l.now
			l.now = l.now.Add(time.Hour)
			c.between(l)
			l.do(event.Event{Payload: event.StepBlocked{Waiting: state.Pause{Reason: "new disk"}.Waiting()}})
			w := l.task.Waiting
			if w == nil || w.Kind != state.WaitPaused || w.Since.Equal(since) != c.same || !l.task.PausedSince.IsZero() {
				t.Errorf("got waiting %+v, the first wait began at %v; a hidden one at %v", w, since, l.task.PausedSince)
			}
		})
	}
}
