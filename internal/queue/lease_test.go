package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-bot/errand/internal/queue"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

const lease = 30 * time.Second

// claimElsewhere claims the task's work job as another process would, and never finishes it.
func (w *world) claimElsewhere() *state.Job {
	w.t.Helper()
	job, err := w.store.Store.Claim(w.t.Context(), store.ClaimReq{
		Lanes: []state.Lane{state.LaneWork}, Lease: func(state.JobKind) time.Duration { return lease },
	})
	if err != nil || job == nil || job.Kind != state.JobStart {
		w.t.Fatalf("claimed %+v: %v", job, err)
	}
	return job
}

// fullDisk is a store that fails to rescue jobs at first.
type fullDisk struct {
	queue.Store
	left int
}

func (r *fullDisk) Rescue(ctx context.Context, now time.Time) (int, error) {
	if r.left--; r.left >= 0 {
		return 0, errors.New("no space left on device")
	}
	return r.Store.Rescue(ctx, now)
}

// TestJobsOfADeadProcessRunAgain: the job of a dead process runs again when its lease has expired, or immediately if no other process can
// hold leases. A late result of the dead process has no effect.
func TestJobsOfADeadProcessRunAgain(t *testing.T) {
	for name, test := range map[string]struct {
		exclusive bool
		refusals  int // of the store, at first
		min, max  time.Duration
	}{
		"when the lease ends":                 {false, 0, lease, lease + 3*time.Second},
		"at once":                             {true, 0, 0, time.Second},
		"when the store allows it":            {true, 2, 2 * time.Second, 4 * time.Second},
		"when the lease ends, after refusals": {false, 2, lease, lease + 3*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.cfg.Exclusive, w.cfg.Store = test.exclusive, &fullDisk{Store: w.store, left: test.refusals}
				w.handle(state.JobStart, func(context.Context, *state.Job, int) (event.Event, error) { return started(), nil })
				w.trigger(1)
				dead := w.claimElsewhere()
				begun := time.Now()
				w.runFor(time.Minute)
				if w.attempts() != 1 || w.seen[0].Attempt != 2 {
					t.Fatalf("attempts %+v", w.seen)
				}
				if took := w.at[0].Sub(begun); took < test.min || took > test.max {
					t.Errorf("rescued after %v", took)
				}
				before := w.task(1).Version
				late := started()
				late.Task = dead.Task
				_, err := w.store.Apply(w.t.Context(), late, store.Ack{Job: dead.ID, Epoch: dead.Epoch})
				if err == nil || w.task(1).Version != before {
					t.Errorf("the late result of the dead process changed the task: %v", err)
				}
			})
		})
	}
}

// TestSlowStep: a step that ignores its context and returns after its lease changes nothing.
func TestSlowStep(t *testing.T) {
	inBubble(t, func(w *world) {
		w.cfg.Lease = func(state.JobKind) time.Duration { return lease }
		var left time.Duration
		w.handle(state.JobStart, func(ctx context.Context, _ *state.Job, n int) (event.Event, error) {
			if n == 1 {
				end, _ := ctx.Deadline()
				left = time.Until(end)
				<-time.After(3 * lease)
			}
			e := started()
			begun := event.Of[event.Started](e)
			begun.Branch.Name = []string{"", "slow", "quick"}[n]
			e.Payload = begun
			return e, nil
		})
		w.trigger(1)
		w.runFor(5 * lease)
		if name := w.task(1).Branch.Name; name != "quick" || w.attempts() != 2 {
			t.Errorf("branch %q after %d attempts", name, w.attempts())
		}
		if left >= lease || left < lease-10*time.Second {
			t.Errorf("the step's timeout was %v for a lease of %v", left, lease)
		}
	})
}

// TestShutdown: running steps end with the queue and run again after the next start without counting as failures.
func TestShutdown(t *testing.T) {
	inBubble(t, func(w *world) {
		w.cfg.Exclusive = true
		w.handle(state.JobStart, func(ctx context.Context, _ *state.Job, n int) (event.Event, error) {
			if n == 1 {
				<-ctx.Done()
				return event.Event{}, ctx.Err()
			}
			return started(), nil
		})
		w.trigger(1)
		stop := w.run()
		synctest.Wait()
		begun := time.Now()
		stop()
		if took := time.Since(begun); took > 0 || w.attempts() != 1 {
			t.Fatalf("ended after %v and %d attempts", took, w.attempts())
		}
		if task := w.task(1); task.Phase != state.PhaseQueued || task.End != nil {
			t.Fatalf("phase %s, end %+v", task.Phase, task.End)
		}
		w.runFor(time.Second)
		if w.attempts() != 2 || w.seen[1].LastError == context.Canceled.Error() || w.task(1).Phase != state.PhasePreliminaryPlanning {
			t.Errorf("attempts %+v", w.seen)
		}
	})
}

// TestShutdownsAreNoFailures: shutdowns in the middle of a step do not use up the step's tries.
func TestShutdownsAreNoFailures(t *testing.T) {
	inBubble(t, func(w *world) {
		w.cfg.Exclusive, w.cfg.Tries = true, 3
		w.handle(state.JobStart, func(ctx context.Context, _ *state.Job, n int) (event.Event, error) {
			switch {
			case n <= 4:
				<-ctx.Done()
				return event.Event{}, errTemporary // any error that a step returns because of the shutdown
			case n <= 6:
				return event.Event{}, errTemporary
			}
			return started(), nil
		})
		w.trigger(1)
		for range 4 {
			stop := w.run()
			synctest.Wait()
			stop()
		}
		w.runFor(time.Minute)
		if task := w.task(1); w.attempts() != 7 || task.Phase != state.PhasePreliminaryPlanning {
			t.Fatalf("phase %s after %d attempts, end %+v", task.Phase, w.attempts(), task.End)
		}
		if last := w.seen[6]; last.Attempt != 7 || last.Try() != 3 {
			t.Errorf("the last was attempt %d, try %d; want 7, 3", last.Attempt, last.Try())
		}
		if wait := w.at[5].Sub(w.at[4]); wait > 3*time.Second {
			t.Errorf("it waited %s after the first error", wait)
		}
	})
}

// TestLanesDoNotBlock: blocked work jobs do not delay jobs of other lanes (comments, status), and a lane without free
// workers does not poll continuously.
func TestLanesDoNotBlock(t *testing.T) {
	inBubble(t, func(w *world) {
		w.cfg.Rescue = time.Minute
		w.cfg.Workers = map[state.Lane]int{state.LaneWork: 1}
		w.cfg.Lease = func(state.JobKind) time.Duration { return time.Hour }
		release := make(chan struct{})
		w.handle(state.JobStart, func(ctx context.Context, _ *state.Job, _ int) (event.Event, error) {
			select {
			case <-release:
				return started(), nil
			case <-ctx.Done():
				return event.Event{}, ctx.Err()
			}
		})
		w.trigger(1)
		w.trigger(2)
		stop := w.run()
		<-time.After(20 * time.Second)
		before := w.store.count()
		<-time.After(5 * time.Minute)
		if n := w.store.count() - before; n > 500 {
			t.Errorf("%d polls in 5 minutes", n)
		}
		if w.attempts() != 1 {
			t.Errorf("%d at once with one worker", w.attempts())
		}
		for issue := 1; issue <= 2; issue++ {
			for _, kind := range w.kinds(issue) {
				if kind == state.JobReact || kind == state.JobStatus {
					t.Errorf("task %d: %s was delayed by a work job", issue, kind)
				}
			}
		}
		close(release)
		<-time.After(10 * time.Second)
		stop()
		for issue := 1; issue <= 2; issue++ {
			if phase := w.task(issue).Phase; phase != state.PhasePreliminaryPlanning {
				t.Errorf("task %d: phase %s", issue, phase)
			}
		}
	})
}
