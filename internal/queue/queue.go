// Package queue runs the jobs in the store. For each job it claims a lease, runs the job's step and applies the
// resulting event; after a temporary error it retries with back-off. It does not know the kinds of jobs.
//
// Each job takes effect exactly once: a step's context ends before its lease does, events are applied under the lease's
// epoch, and the result of a worker whose lease has expired is rejected. Jobs claimed by a process that died are
// rescued when their leases expire.
//
// Start here: [Queue.Run].
package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// Store is the part of the state store that the queue uses.
type Store interface {
	Claim(ctx context.Context, req store.ClaimReq) (*state.Job, error)
	Rescue(ctx context.Context, now time.Time) (int, error)
	NextDue(ctx context.Context) (time.Time, bool, error)
	Wake(ctx context.Context) <-chan struct{}
	Apply(ctx context.Context, e event.Event, ack store.Ack) (store.Applied, error)
	Retry(ctx context.Context, id string, epoch int64, f state.Failed) error
}

// A Handler runs one job and returns the event that completes it.
type Handler func(ctx context.Context, job *state.Job) (event.Event, error)

// A Verdict classifies an error of a [Handler].
type Verdict struct {
	Temporary bool      // a retry may succeed; after an unknown outcome the step first checks for the effect
	Retry     time.Time // earliest time of the retry; zero means back-off
	Reason    string    // one sentence for users
	Hint      string    // what a user can do about it; may be empty
	Class     state.FailureClass
	// Outage reports that the cause will pass, but not soon, such as an outage of a service. When retries are used up,
	// the task then waits and is retried automatically; otherwise it fails.
	Outage bool
}

// Config configures a [Queue]. Zero durations and counts select the defaults in parentheses.
type Config struct {
	Store  Store
	Handle Handler
	Judge  func(error) Verdict
	Now    func() time.Time
	Log    zerolog.Logger
	Tries  int // errors after which a job fails permanently (8)
	// Patient reports whether jobs of this kind are retried for about a day while their errors are temporary. It is for
	// jobs whose permanent failure would go unnoticed, such as handling a user's comment. It may be nil.
	Patient func(state.JobKind) bool
	Backoff time.Duration                     // first back-off, doubled each time, with jitter (2 s)
	Max     time.Duration                     // longest back-off (5 min)
	Lease   func(state.JobKind) time.Duration // lease duration for a kind of job
	Margin  time.Duration                     // time between a step's timeout and the end of its lease (5 s)
	// Exclusive states that no other process can hold leases of this store, as with bbolt, which locks its file. Jobs
	// that are claimed when the queue starts then belong to a dead process and are released immediately.
	Exclusive bool
	Rescue    time.Duration                          // interval between checks for expired leases (10 s)
	Workers   map[state.Lane]int                     // concurrent jobs per lane (4)
	Done      func(*state.Job, time.Duration, error) // called after each job, for metrics; may be nil
}

// A Queue runs jobs until its context ends.
type Queue struct{ cfg Config }

// New returns a [Queue] with the defaults filled in.
func New(cfg Config) *Queue {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&cfg.Backoff, 2*time.Second)
	def(&cfg.Max, 5*time.Minute)
	def(&cfg.Margin, 5*time.Second)
	def(&cfg.Rescue, 10*time.Second)
	if cfg.Tries == 0 {
		cfg.Tries = 8
	}
	if cfg.Lease == nil {
		cfg.Lease = func(state.JobKind) time.Duration { return 2 * time.Minute }
	}
	return &Queue{cfg: cfg}
}

// Run runs jobs until ctx ends, then waits for the steps in flight, whose contexts end with ctx.
func (q *Queue) Run(ctx context.Context) error {
	for q.cfg.Exclusive { // before any lane claims a job
		_, err := q.cfg.Store.Rescue(ctx, q.cfg.Now().Add(24*time.Hour))
		if err == nil || ctx.Err() != nil {
			break
		}
		q.cfg.Log.Error().Err(err).Msg("failed to rescue the jobs of a dead process; retrying")
		if clock.Sleep(ctx, q.cfg.Rescue) != nil {
			break
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, lane := range state.Lanes() {
		g.Go(func() error { return q.runLane(ctx, lane) })
	}
	g.Go(func() error { return q.rescue(ctx) })
	return g.Wait()
}

// runLane claims jobs of one lane and keeps a bounded number of them in flight. Lanes do not share workers, so a long
// step never delays the cancellation of another task.
func (q *Queue) runLane(ctx context.Context, lane state.Lane) error {
	wake := q.cfg.Store.Wake(ctx)
	workers := q.cfg.Workers[lane]
	if workers == 0 {
		workers = 4
	}
	slots := make(chan struct{}, workers)
	var g errgroup.Group
	defer func() { _ = g.Wait() }() // the functions return nil
	vain := 0                       // consecutive polls that found nothing although a job was due
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		job, err := q.cfg.Store.Claim(ctx, store.ClaimReq{Lanes: []state.Lane{lane}, Lease: q.cfg.Lease})
		if err == nil && job != nil {
			vain = 0
			g.Go(func() error {
				defer func() { <-slots }()
				q.runStep(ctx, job)
				return nil
			})
			continue
		}
		<-slots
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			q.cfg.Log.Error().Err(err).Str("lane", string(lane)).Msg("failed to claim a job")
		}
		vain = q.wait(ctx, wake, vain)
	}
}

const (
	idle     = 5 * time.Second       // longest sleep, in case a wake-up is lost
	shortest = 50 * time.Millisecond // shortest sleep, doubled after each empty poll
)

// wait sleeps until the store changes or the next delayed job is due. A job that is due but could not be claimed
// belongs to a lane whose workers are all busy, so wait polls less and less often. It returns the new number of empty
// polls.
func (q *Queue) wait(ctx context.Context, wake <-chan struct{}, vain int) int {
	d := idle
	if at, ok, err := q.cfg.Store.NextDue(ctx); err == nil && ok {
		d = at.Sub(q.cfg.Now())
		if d > 0 {
			vain = 0
		}
		d = min(idle, max(d, shortest<<min(vain, 7)))
	}
	if woken, _ := clock.SleepOrWake(ctx, d, wake); woken {
		return 0
	}
	return vain + 1
}

// Step claims the job of a lane that is due first and runs it before returning. It returns false if no job is due. Run
// does the same concurrently; Step is for tests that control the clock.
func (q *Queue) Step(ctx context.Context, lane state.Lane) (bool, error) {
	job, err := q.cfg.Store.Claim(ctx, store.ClaimReq{Lanes: []state.Lane{lane}, Lease: q.cfg.Lease})
	if err != nil || job == nil {
		return false, err
	}
	q.runStep(ctx, job)
	return true, nil
}

// runStep runs one job and applies its event.
func (q *Queue) runStep(ctx context.Context, job *state.Job) {
	log := q.cfg.Log.With().Str("task", job.Task.String()).Str("job", string(job.Kind)).Str("job_id", job.ID).Int("attempt", job.Attempt).Logger()
	begun := q.cfg.Now()
	left := max(job.Until.Sub(begun)-q.cfg.Margin, time.Second)
	stepCtx, cancel := context.WithTimeout(log.WithContext(ctx), left)
	event, err := q.handle(stepCtx, job)
	cancel()
	if q.cfg.Done != nil {
		q.cfg.Done(job, q.cfg.Now().Sub(begun), err)
	}
	if err != nil && ctx.Err() != nil {
		return // shutting down: the lease expires or is rescued at the next start
	}
	if err == nil {
		err = q.apply(ctx, job, event)
	}
	// An event that the store rejects, for example because it is too large, counts as a failure. Otherwise the job
	// would run again each time its lease expires.
	if err != nil && !errors.Is(err, store.ErrLeaseLost) && ctx.Err() == nil {
		err = q.handleFailure(ctx, job, err, log)
	}
	if err != nil && !errors.Is(err, store.ErrLeaseLost) && ctx.Err() == nil {
		log.Error().Err(err).Msg("failed to complete a job")
	}
}

// handle runs the step and turns a panic into an error.
func (q *Queue) handle(ctx context.Context, job *state.Job) (ev event.Event, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in job %s: %v", job.Kind, r)
			zerolog.Ctx(ctx).Error().Err(err).Bytes("stack", debug.Stack()).Msg("job panicked")
		}
	}()
	return q.cfg.Handle(ctx, job)
}

// apply completes the job with its event.
func (q *Queue) apply(ctx context.Context, job *state.Job, ev event.Event) error {
	ev.Task = job.Task
	applied, err := q.cfg.Store.Apply(ctx, ev, store.Ack{Job: job.ID, Epoch: job.Epoch})
	if err != nil {
		return err
	}
	q.cfg.Log.Debug().Str("task", job.Task.String()).Str("job", string(job.Kind)).Str("event", string(ev.Kind())).
		Str("note", applied.Note).Bool("changed", applied.Changed).Msg("job done")
	return nil
}

// handleFailure schedules a retry, or reports the permanent failure to the task.
func (q *Queue) handleFailure(ctx context.Context, job *state.Job, cause error, log zerolog.Logger) error {
	v := q.cfg.Judge(cause)
	if v.Temporary && q.canRetry(job, v) {
		at := q.cfg.Now().Add(q.delay(job.Try()))
		if v.Retry.After(at) {
			at = v.Retry
		}
		log.Warn().Err(cause).Time("retry_at", at).Msg("job failed; retrying")
		return q.cfg.Store.Retry(ctx, job.ID, job.Epoch, state.Failed{Error: cause.Error(), Retry: at,
			Defect: v.Class == state.ClassInternal})
	}
	log.Error().Err(cause).Str("class", string(v.Class)).Msg("job failed permanently")
	f := &state.Failure{Job: job.Kind, Class: v.Class, Reason: v.Reason, Hint: v.Hint, Detail: cause.Error(), Key: job.Key}
	if job.Attempted { // the outcome is unknown: a job with a known outcome would be done
		f.UnknownSince = job.Created
		if !job.UnknownSince.IsZero() {
			f.UnknownSince = job.UnknownSince
		}
	}
	if v.Temporary && v.Outage {
		f.RetryAt = q.cfg.Now()
		if v.Retry.After(f.RetryAt) {
			f.RetryAt = v.Retry
		}
	}
	return q.apply(ctx, job, event.Event{Run: job.Run, Payload: event.StepFailed{Post: job.Post, Failure: *f, Launch: job.Launch}})
}

// patientTries is the number of tries of a patient job: about a day at 5 minutes each.
const patientTries = 300

// canRetry reports whether a job may be retried after a temporary error. Internal errors are counted separately: the
// first one must not end a patient job that has been retried for long because GitHub was down.
func (q *Queue) canRetry(job *state.Job, v Verdict) bool {
	most := q.cfg.Tries
	if q.cfg.Patient != nil && q.cfg.Patient(job.Kind) {
		most = max(most, patientTries)
	}
	return job.Try() < most && (v.Class != state.ClassInternal || job.Defects+1 < q.cfg.Tries)
}

// delay returns the back-off after the n-th try, with jitter.
func (q *Queue) delay(n int) time.Duration {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier, b.RandomizationFactor = q.cfg.Backoff, q.cfg.Max, 2, 0.2
	var d time.Duration
	for range min(max(n, 1), 32) {
		d = b.NextBackOff()
	}
	return d
}

// rescue periodically releases expired leases.
func (q *Queue) rescue(ctx context.Context) error {
	for {
		n, err := q.cfg.Store.Rescue(ctx, q.cfg.Now())
		if err != nil && ctx.Err() == nil {
			q.cfg.Log.Error().Err(err).Msg("failed to rescue jobs")
		}
		if n > 0 {
			q.cfg.Log.Info().Int("jobs", n).Msg("rescued jobs with expired leases")
		}
		if clock.Sleep(ctx, q.cfg.Rescue+rand.N(q.cfg.Rescue/4+1)) != nil {
			return nil
		}
	}
}
