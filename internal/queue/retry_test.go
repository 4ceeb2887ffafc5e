package queue_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/queue"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
)

var (
	errTemporary = errors.New("GitHub is down")
	errPermanent = errors.New("GitHub said no")
)

// nothing is an event that no row of the table matches: it completes the job and changes nothing.
var nothing = event.Event{}

// claims counts the queue's calls to the store.
type claims struct {
	*store.Store
	mu sync.Mutex
	n  int
	// failing is called with permanent failures; it may be nil.
	failing func(state.Failure)
}

func (c *claims) Apply(ctx context.Context, e event.Event, ack store.Ack) (store.Applied, error) {
	if e.Kind() == event.KindStepFailed && c.failing != nil {
		c.failing(event.Of[event.StepFailed](e).Failure)
	}
	return c.Store.Apply(ctx, e, ack)
}

func (c *claims) Claim(ctx context.Context, req store.ClaimReq) (*state.Job, error) {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	return c.Store.Claim(ctx, req)
}

func (c *claims) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// world is a real store and the queue's activity on it, in a bubble of virtual time.
type world struct {
	t     *testing.T
	store *claims
	cfg   queue.Config

	mu   sync.Mutex
	seen []state.Job // attempts at the jobs under test
	at   []time.Time
}

// inBubble runs a test in virtual time with a real store in a temporary folder.
func inBubble(t *testing.T, test func(*world)) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "errand.db")
	synctest.Test(t, func(t *testing.T) {
		db, err := boltkv.Open(path, boltkv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		st, err := store.Open(t.Context(), db, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, store: &claims{Store: st}}
		w.cfg = queue.Config{Store: w.store, Now: time.Now, Log: zerolog.Nop(), Judge: judge, Rescue: time.Second}
		test(w)
	})
}

func judge(err error) queue.Verdict {
	return queue.Verdict{Temporary: !errors.Is(err, errPermanent), Reason: "It went wrong.", Hint: "Do it right.", Class: state.ClassGitHub}
}

// trigger starts a task, which creates jobs in several lanes. The job of kind start is in the work lane.
func (w *world) trigger(issue int) {
	w.t.Helper()
	_, err := w.store.Apply(w.t.Context(), event.Event{
		Task:       state.TaskKey{Repo: 7, Issue: issue},
		By:         state.Person{ID: 2, Login: "ada"},
		Permission: state.PermissionWrite,
		Via:        "assigned",
		At:         time.Now(),
		Repo:       &state.Repo{ID: 7, Owner: "acme", Name: "shop"},
		Payload:    event.Triggered{Issue: &state.Issue{Title: "Bug"}},
	}, store.Ack{})
	if err != nil {
		w.t.Fatal(err)
	}
}

// handle runs fn for jobs of one kind, with the number of the attempt. All other jobs do nothing.
func (w *world) handle(kind state.JobKind, fn func(ctx context.Context, job *state.Job, n int) (event.Event, error)) {
	w.cfg.Handle = func(ctx context.Context, job *state.Job) (event.Event, error) {
		if job.Kind != kind {
			return nothing, nil
		}
		w.mu.Lock()
		w.seen, w.at = append(w.seen, *job), append(w.at, time.Now())
		n := len(w.seen)
		w.mu.Unlock()
		return fn(ctx, job, n)
	}
}

// attempts returns the number of attempts at the jobs under test.
func (w *world) attempts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

// run starts a queue and returns a function that stops it and waits for it.
func (w *world) run() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- queue.New(w.cfg).Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("run: %v", err)
		}
	}
}

// runFor runs a queue for d.
func (w *world) runFor(d time.Duration) {
	stop := w.run()
	<-time.After(d)
	stop()
}

func (w *world) task(issue int) *state.Task {
	w.t.Helper()
	task, err := w.store.Task(context.WithoutCancel(w.t.Context()), state.TaskKey{Repo: 7, Issue: issue})
	if err != nil || task == nil {
		w.t.Fatalf("task %d: %v", issue, err)
	}
	return task
}

// kinds lists the live jobs of a task.
func (w *world) kinds(issue int) (kinds []state.JobKind) {
	w.t.Helper()
	jobs, err := w.store.Jobs(w.t.Context(), state.TaskKey{Repo: 7, Issue: issue})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, j := range jobs {
		kinds = append(kinds, j.Kind)
	}
	return kinds
}

func started() event.Event {
	return event.Event{Payload: event.Started{Start: event.Start{Settings: settings.Default(), Visible: true, Branch: state.Branch{Name: "b", Base: "main"}}}}
}

func TestDone(t *testing.T) {
	inBubble(t, func(w *world) {
		var mu sync.Mutex
		measured := map[state.JobKind]error{}
		w.cfg.Done = func(j *state.Job, _ time.Duration, err error) {
			mu.Lock()
			defer mu.Unlock()
			measured[j.Kind] = err
		}
		w.handle(state.JobStart, func(context.Context, *state.Job, int) (event.Event, error) { return started(), nil })
		stop := w.run()
		w.trigger(1) // wakes the queue
		<-time.After(time.Second)
		stop()
		if phase := w.task(1).Phase; phase != state.PhasePreliminaryPlanning || w.attempts() != 1 {
			t.Errorf("phase %s after %d attempts", phase, w.attempts())
		}
		if kinds := w.kinds(1); slices.Contains(kinds, state.JobStart) || slices.Contains(kinds, state.JobReact) {
			t.Errorf("jobs left: %v", kinds)
		}
		if err, ok := measured[state.JobStart]; !ok || err != nil {
			t.Errorf("measured %v", measured)
		}
	})
}

func TestRetryWithBackoff(t *testing.T) {
	inBubble(t, func(w *world) {
		w.handle(state.JobStart, func(_ context.Context, _ *state.Job, n int) (event.Event, error) {
			if n < 5 {
				return event.Event{}, errTemporary
			}
			return started(), nil
		})
		w.trigger(1)
		w.runFor(2 * time.Minute)
		if w.attempts() != 5 || w.task(1).Phase != state.PhasePreliminaryPlanning {
			t.Fatalf("%d attempts, phase %s", w.attempts(), w.task(1).Phase)
		}
		wait := 2 * time.Second
		for i := 1; i < len(w.at); i++ {
			got := w.at[i].Sub(w.at[i-1])
			if got < wait*8/10 || got > wait*12/10+100*time.Millisecond {
				t.Errorf("wait %d was %v, want about %v", i, got, wait)
			}
			wait *= 2
		}
		if last := w.seen[4]; last.Attempt != 5 || last.LastError != errTemporary.Error() {
			t.Errorf("the last attempt was %+v", last)
		}
	})
}

func TestGivesUp(t *testing.T) {
	tests := map[string]struct {
		err   error
		tries int
		want  int
	}{
		"at once":     {errPermanent, 8, 1},
		"after a few": {errTemporary, 3, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.cfg.Tries = test.tries
				w.handle(state.JobStart, func(context.Context, *state.Job, int) (event.Event, error) { return event.Event{}, test.err })
				w.trigger(1)
				w.runFor(time.Minute)
				task := w.task(1)
				if w.attempts() != test.want || task.Phase != state.PhaseFailed || task.End == nil {
					t.Fatalf("%d attempts, phase %s, end %+v", w.attempts(), task.Phase, task.End)
				}
				if task.End.Reason != "It went wrong." || task.End.Hint != "Do it right." || task.End.Class != state.ClassGitHub {
					t.Errorf("end %+v", task.End)
				}
			})
		})
	}
}

// TestFailedJobIsSetAside: a task whose step cannot succeed for now waits instead of failing.
func TestFailedJobIsSetAside(t *testing.T) {
	inBubble(t, func(w *world) {
		w.cfg.Tries = 3
		w.cfg.Judge = func(error) queue.Verdict {
			return queue.Verdict{Temporary: true, Outage: true, Reason: "GitHub is down.", Class: state.ClassGitHub}
		}
		w.handle(state.JobStart, func(context.Context, *state.Job, int) (event.Event, error) { return event.Event{}, errTemporary })
		w.trigger(1)
		w.runFor(30 * time.Second)
		task := w.task(1)
		if w.attempts() != 3 || task.Phase != state.PhaseInterrupted || task.Waiting == nil || !task.Waiting.Until.After(time.Now()) {
			t.Errorf("%d attempts, phase %s, waits %+v", w.attempts(), task.Phase, task.Waiting)
		}
	})
}

// TestRetryAfter: an error such as a rate limit may set the time of the retry; back-off never shortens it.
func TestRetryAfter(t *testing.T) {
	inBubble(t, func(w *world) {
		w.cfg.Rescue = time.Minute
		w.cfg.Judge = func(error) queue.Verdict {
			return queue.Verdict{Temporary: true, Retry: time.Now().Add(10 * time.Minute)}
		}
		w.handle(state.JobStart, func(_ context.Context, _ *state.Job, n int) (event.Event, error) {
			if n == 1 {
				return event.Event{}, errTemporary
			}
			return started(), nil
		})
		w.trigger(1)
		w.runFor(15 * time.Minute)
		if w.attempts() != 2 || w.at[1].Sub(w.at[0]) < 10*time.Minute || w.at[1].Sub(w.at[0]) > 10*time.Minute+time.Second {
			t.Errorf("attempts at %v", w.at)
		}
	})
}

func TestPanicIsAnError(t *testing.T) {
	inBubble(t, func(w *world) {
		w.handle(state.JobStart, func(_ context.Context, job *state.Job, n int) (event.Event, error) {
			if n == 1 {
				panic("a bug")
			}
			return started(), nil
		})
		w.trigger(1)
		w.runFor(time.Minute)
		if w.attempts() != 2 || w.task(1).Phase != state.PhasePreliminaryPlanning {
			t.Errorf("%d attempts, phase %s", w.attempts(), w.task(1).Phase)
		}
		if got := w.seen[1].LastError; got != "panic in job start: a bug" {
			t.Errorf("last error %q", got)
		}
	})
}
