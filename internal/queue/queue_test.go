package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/queue"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
)

// refusing is a store that rejects one kind of event.
type refusing struct {
	*store.Store
	kind    event.Kind
	refused int
	class   state.FailureClass // class of every error
	failed  chan state.Failure
}

func (r *refusing) Apply(ctx context.Context, e event.Event, ack store.Ack) (store.Applied, error) {
	switch {
	case e.Kind() == r.kind:
		r.refused++
		return store.Applied{}, errors.New("too large")
	case e.Kind() == event.KindStepFailed:
		r.failed <- event.Of[event.StepFailed](e).Failure
	}
	return r.Store.Apply(ctx, e, ack)
}

// play triggers a task, which creates jobs, and runs jobs until one fails permanently.
func play(t *testing.T, r *refusing, handle queue.Handler, patient func(state.JobKind) bool) state.Failure {
	t.Helper()
	db, err := boltkv.Open(filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if r.Store, err = store.Open(ctx, db, store.Options{}); err != nil {
		t.Fatal(err)
	}
	r.failed = make(chan state.Failure, 10)
	trigger := event.Event{Task: state.TaskKey{Repo: 7, Issue: 1}, By: state.Person{ID: 2, Login: "ada"}, Via: "assigned", Repo: &state.Repo{ID: 7, Owner: "o", Name: "r"}, Payload: event.Triggered{Issue: &state.Issue{Title: "Bug"}}}
	if _, err := r.Apply(ctx, trigger, store.Ack{}); err != nil {
		t.Fatal(err)
	}
	q := queue.New(queue.Config{
		Store: r, Handle: handle, Now: time.Now, Log: zerolog.Nop(), Tries: 3, Patient: patient,
		Judge: func(err error) queue.Verdict {
			return queue.Verdict{Temporary: true, Reason: err.Error(), Class: r.class}
		},
	})
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	f := <-r.failed
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return f
}

// TestRejectedEventFailsTheJob: a job whose event the store always rejects fails permanently.
func TestRejectedEventFailsTheJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &refusing{kind: event.KindBranchMoved}
		f := play(t, r, func(_ context.Context, job *state.Job) (event.Event, error) {
			return event.Event{Payload: event.BranchMoved{}}, nil
		}, nil)
		if f.Job != state.JobVet || f.Reason != "too large" || r.refused != 3 {
			t.Errorf("after %d tries: %+v", r.refused, f)
		}
	})
}

// TestPatience: a user's comment is not lost because GitHub was down for an hour.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		f := play(t, &refusing{}, func(_ context.Context, job *state.Job) (event.Event, error) {
			if job.Kind == state.JobVet && time.Since(begun) > 2*time.Hour {
				var e event.Event
				if err := json.Unmarshal(job.Event, &e); err != nil {
					return event.Event{}, err
				}
				e.Permission = state.PermissionWrite
				return e, nil
			}
			return event.Event{}, errors.New("GitHub is down")
		}, func(k state.JobKind) bool { return k == state.JobVet })
		// The vet job succeeded; the job that failed is one of those that followed.
		if f.Job == state.JobVet || time.Since(begun) < 2*time.Hour {
			t.Errorf("after %s: %+v", time.Since(begun), f)
		}
	})
}

// TestInternalErrorsAreReportedSoon: an internal error is reported soon, not after a day of retries.
func TestInternalErrorsAreReportedSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, tries := &refusing{class: state.ClassInternal}, 0
		f := play(t, r, func(_ context.Context, job *state.Job) (event.Event, error) {
			tries++
			panic("a defect")
		}, func(state.JobKind) bool { return true })
		if f.Job != state.JobVet || tries != 3 {
			t.Errorf("after %d tries: %+v", tries, f)
		}
	})
}

// TestInternalErrorDuringOutage: one internal error does not end a patient job that an outage has delayed for long, and
// an event that the store rejects once is retried.
func TestInternalErrorDuringOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, tries := &refusing{class: "github"}, 0
		f := play(t, r, func(_ context.Context, job *state.Job) (event.Event, error) {
			tries++
			if r.class = "github"; tries > 9 {
				r.class = state.ClassInternal
			}
			return event.Event{}, errors.New("no")
		}, func(state.JobKind) bool { return true })
		if f.Job != state.JobVet || tries != 9+3 {
			t.Errorf("after %d tries: %+v", tries, f)
		}
	})
}

// TestUnknownOutcome: a job that fails permanently reports whether and since when its effect may exist.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, begun := &refusing{}, time.Now()
		f := play(t, r, func(ctx context.Context, job *state.Job) (event.Event, error) {
			if err := r.MarkAttempted(ctx, job.ID, job.Epoch); err != nil {
				return event.Event{}, err
			}
			return event.Event{}, errors.New("no response")
		}, nil)
		if f.Key == "" || !f.UnknownSince.Equal(begun) {
			t.Errorf("%+v", f)
		}
	})
}

// TestFirstUnknownOutcomeIsKept: if the first of several equal jobs failed with an unknown outcome, later jobs check
// for its effect from the time of that first job on.
func TestFirstUnknownOutcomeIsKept(t *testing.T) {
	inBubble(t, func(w *world) {
		var failures []state.Failure
		w.store.failing = func(f state.Failure) { failures = append(failures, f) }
		w.handle(state.JobStatus, func(ctx context.Context, job *state.Job, _ int) (event.Event, error) {
			if err := w.store.MarkAttempted(ctx, job.ID, job.Epoch); err != nil {
				return event.Event{}, err
			}
			if job.Attempt == 1 {
				return event.Event{}, errTemporary // no response arrived
			}
			return event.Event{}, errPermanent
		})
		w.trigger(1)
		w.runFor(30 * time.Minute)
		if len(w.seen) < 5 || w.seen[0].Attempted || !w.seen[0].UnknownSince.IsZero() {
			t.Fatalf("%d jobs, the first %+v", len(w.seen), w.seen)
		}
		first := w.seen[0].Created
		for i, j := range w.seen[2:] {
			if !j.Attempted || !j.UnknownSince.Equal(first) || !j.Created.After(first) {
				t.Errorf("claim %d: attempted %v, checks from %s on, want %s", i+3, j.Attempted, j.UnknownSince, first)
			}
		}
		for i, f := range failures {
			if !f.UnknownSince.Equal(first) {
				t.Errorf("failure %d: unknown outcome since %s, want %s", i+1, f.UnknownSince, first)
			}
		}
	})
}

// TestUnknownOutcomeReachesQueuedJob: a job that was queued while an equal one was in flight also checks for the effect
// of that one if it fails.
func TestUnknownOutcomeReachesQueuedJob(t *testing.T) {
	inBubble(t, func(w *world) {
		w.handle(state.JobStatus, func(ctx context.Context, job *state.Job, n int) (event.Event, error) {
			switch err := w.store.MarkAttempted(ctx, job.ID, job.Epoch); {
			case n > 2 || err != nil:
				return nothing, err
			case n == 1:
				return event.Event{}, errTemporary // no response arrived
			}
			key := state.TaskKey{Repo: 7, Issue: 1}
			for _, payload := range []event.Payload{event.Locked{}, event.Unlocked{}} { // queues a job that shows a newer version
				if _, err := w.store.Apply(ctx, event.Event{Task: key, Payload: payload}, store.Ack{}); err != nil {
					return event.Event{}, err
				}
			}
			return event.Event{}, errPermanent
		})
		w.trigger(1)
		w.runFor(30 * time.Minute)
		if len(w.seen) < 3 || w.seen[2].ID == w.seen[0].ID {
			t.Fatalf("claims %+v", w.seen)
		}
		if j := w.seen[2]; !j.Attempted || !j.UnknownSince.Equal(w.seen[0].Created) {
			t.Errorf("next claim: attempted %v, checks from %s on, want %s", j.Attempted, j.UnknownSince, w.seen[0].Created)
		}
	})
}
