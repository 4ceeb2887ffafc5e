// Package queue takes jobs from the store and has them done: claim under a lease, run the step,
// apply its event, or try again later with back-off. It knows nothing of what a job does.
//
// A job is done exactly once in effect: the step's outside call ends before the lease does, the
// event is applied under the lease's epoch, and a worker that comes too late changes nothing. What a
// dead process had claimed is rescued when its lease has run out. Start reading at Queue.Run.
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

	"github.com/errand-bot/errand/state"
)

// Store is what the queue needs of the store.
type Store interface {
	Claimer
	Apply(ctx context.Context, e state.Event, ack state.Ack) (state.Applied, error)
	Retry(ctx context.Context, id string, epoch int64, f state.Failed) error
}

// Claimer gives jobs out.
type Claimer interface {
	Claim(ctx context.Context, req state.ClaimReq) (*state.Job, error)
	Rescue(ctx context.Context, now time.Time) (int, error)
	NextDue(ctx context.Context) (time.Time, bool, error)
	Wake(ctx context.Context) <-chan struct{}
}

// Handler does one job and returns what came of it.
type Handler func(ctx context.Context, job *state.Job) (state.Event, error)

// Verdict is what an error of a Handler means.
type Verdict struct {
	Temporary bool      // trying again may help, also after an unknown outcome: the step looks first
	Retry     time.Time // not before; zero means back-off
	Reason    string    // one sentence for people
	Hint      string    // what a person can do
	Class     string    // operator's word
	// Waits says that the cause passes, only not soon, such as an outage of a service: a task is set
	// aside then and tried again by itself, where it would fail otherwise.
	Waits bool
}

// Config configures a Queue. Zero durations and counts mean the defaults in parentheses.
type Config struct {
	Store  Store
	Handle Handler
	Judge  func(error) Verdict
	Now    func() time.Time
	Log    zerolog.Logger
	Tries  int // errors after which a job gives up (8)
	// Patient says that a job of this kind goes on trying while its errors are temporary, for about
	// a day: nobody is told when it gives up, so that what a person said would be lost in silence.
	// May be nil.
	Patient func(state.JobKind) bool
	Backoff time.Duration                     // first wait, doubled each time, with jitter (2 s)
	Max     time.Duration                     // longest wait (5 min)
	Lease   func(state.JobKind) time.Duration // how long a job may take
	Margin  time.Duration                     // a step ends so long before its lease (5 s)
	// Exclusive says that no other process can hold leases of this store, as with bbolt, whose file
	// is locked: what is claimed at the start was claimed by a dead process and is given back at once.
	Exclusive bool
	Rescue    time.Duration                          // between two looks for expired leases (10 s)
	Workers   map[state.Lane]int                     // jobs at once per lane (4)
	Done      func(*state.Job, time.Duration, error) // for metrics; may be nil
}

// Queue runs jobs until its context ends.
type Queue struct{ cfg Config }

// New returns a Queue.
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

// Run works until ctx ends, then waits for the steps under way, which end with ctx too.
func (q *Queue) Run(ctx context.Context) error {
	if q.cfg.Exclusive { // before a lane claims anything of its own
		if _, err := q.cfg.Store.Rescue(ctx, q.cfg.Now().Add(24*time.Hour)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("rescue the jobs of a dead process: %w", err)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, lane := range state.Lanes() {
		g.Go(func() error { return q.lane(ctx, lane) })
	}
	g.Go(func() error { return q.rescue(ctx) })
	return g.Wait()
}

// lane claims jobs of one lane and keeps a bounded number of them under way. Lanes do not share
// workers: a long step of one task never delays a cancel of another.
func (q *Queue) lane(ctx context.Context, lane state.Lane) error {
	wake := q.cfg.Store.Wake(ctx)
	workers := q.cfg.Workers[lane]
	if workers == 0 {
		workers = 4
	}
	slots := make(chan struct{}, workers)
	var g errgroup.Group
	defer func() { _ = g.Wait() }() // the functions return nil
	vain := 0                       // looks in a row that found nothing although something is due
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		job, err := q.cfg.Store.Claim(ctx, state.ClaimReq{Lanes: []state.Lane{lane}, Lease: q.cfg.Lease})
		if err == nil && job != nil {
			vain = 0
			g.Go(func() error {
				defer func() { <-slots }()
				q.do(ctx, job)
				return nil
			})
			continue
		}
		<-slots
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			q.cfg.Log.Error().Err(err).Str("lane", string(lane)).Msg("claim a job")
		}
		vain = q.wait(ctx, wake, vain)
	}
}

const (
	idle     = 5 * time.Second       // the longest sleep without a wake-up, should one be lost
	shortest = 50 * time.Millisecond // the shortest one, doubled while there is nothing for this lane
)

// wait sleeps until something changed in the store or the next delayed job is due. What is due but
// was not to be had belongs to a lane whose workers are all busy: it is looked for less and less
// often. It returns the number of looks in vain so far.
func (q *Queue) wait(ctx context.Context, wake <-chan struct{}, vain int) int {
	d := idle
	if at, ok, err := q.cfg.Store.NextDue(ctx); err == nil && ok {
		d = at.Sub(q.cfg.Now())
		if d > 0 {
			vain = 0
		}
		d = min(idle, max(d, shortest<<min(vain, 7)))
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
		return 0
	case <-timer.C:
	}
	return vain + 1
}

// Step claims the job of a lane that is due first and does it before it returns; false says that none
// is due. Run does the same side by side; Step is for whoever has a clock of his own.
func (q *Queue) Step(ctx context.Context, lane state.Lane) (bool, error) {
	job, err := q.cfg.Store.Claim(ctx, state.ClaimReq{Lanes: []state.Lane{lane}, Lease: q.cfg.Lease})
	if err != nil || job == nil {
		return false, err
	}
	q.do(ctx, job)
	return true, nil
}

// do runs one job and applies what came of it.
func (q *Queue) do(ctx context.Context, job *state.Job) {
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
		return // shutting down: the lease runs out, or is taken up at the next start
	}
	if err == nil {
		err = q.apply(ctx, job, event)
	}
	// An event that the store does not take, such as one that is too large, is a failure like any
	// other: else the job would be done again and again, whenever its lease has run out.
	if err != nil && !errors.Is(err, state.ErrLeaseLost) && ctx.Err() == nil {
		err = q.failed(ctx, job, err, log)
	}
	if err != nil && !errors.Is(err, state.ErrLeaseLost) && ctx.Err() == nil {
		log.Error().Err(err).Msg("settle a job")
	}
}

// handle runs the step; a panic of it is an error like any other.
func (q *Queue) handle(ctx context.Context, job *state.Job) (ev state.Event, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in job %s: %v", job.Kind, r)
			zerolog.Ctx(ctx).Error().Err(err).Bytes("stack", debug.Stack()).Msg("panic")
		}
	}()
	return q.cfg.Handle(ctx, job)
}

// apply spends the job with its event.
func (q *Queue) apply(ctx context.Context, job *state.Job, ev state.Event) error {
	ev.Task = job.Task
	applied, err := q.cfg.Store.Apply(ctx, ev, state.Ack{Job: job.ID, Epoch: job.Epoch})
	if err != nil {
		return err
	}
	q.cfg.Log.Debug().Str("task", job.Task.String()).Str("job", string(job.Kind)).Str("event", string(ev.Kind)).Str("note", applied.Note).Bool("changed", applied.Changed).Msg("job done")
	return nil
}

// failed tries again later, or tells the task that the job gave up.
func (q *Queue) failed(ctx context.Context, job *state.Job, cause error, log zerolog.Logger) error {
	v := q.cfg.Judge(cause)
	if v.Temporary && q.triesAgain(job, v) {
		at := q.cfg.Now().Add(q.delay(job.Try()))
		if v.Retry.After(at) {
			at = v.Retry
		}
		log.Warn().Err(cause).Time("again", at).Msg("job goes wrong, will be tried again")
		return q.cfg.Store.Retry(ctx, job.ID, job.Epoch, state.Failed{Error: cause.Error(), Retry: at, Defect: v.Class == ClassInternal})
	}
	log.Error().Err(cause).Str("class", v.Class).Msg("job gives up")
	f := &state.Failure{Job: job.Kind, Class: v.Class, Reason: v.Reason, Hint: v.Hint, Detail: cause.Error(), Key: job.Key}
	if job.Attempted { // and what came of that is not known, else it would be done
		f.Doubt = job.Created
		if !job.Doubt.IsZero() {
			f.Doubt = job.Doubt
		}
	}
	if v.Temporary && v.Waits {
		f.RetryAt = q.cfg.Now()
		if v.Retry.After(f.RetryAt) {
			f.RetryAt = v.Retry
		}
	}
	return q.apply(ctx, job, state.Event{Kind: state.EventStepFailed, Run: job.Run, Post: job.Post, Failure: f})
}

// patientTries is how often a patient job is tried: for about a day, with waits of 5 minutes.
const patientTries = 300

// ClassInternal is the class of errors of errand's own: waiting for long does not cure them.
const ClassInternal = "internal"

// triesAgain reports whether a job is tried once more after an error that may pass. errand's own errors are counted by
// themselves: the first of them must not end a patient job that an outage of GitHub has kept for long.
func (q *Queue) triesAgain(job *state.Job, v Verdict) bool {
	most := q.cfg.Tries
	if q.cfg.Patient != nil && q.cfg.Patient(job.Kind) {
		most = max(most, patientTries)
	}
	return job.Try() < most && (v.Class != ClassInternal || job.Defects+1 < q.cfg.Tries)
}

// delay is the back-off before the try after the n-th, with jitter.
func (q *Queue) delay(n int) time.Duration {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier, b.RandomizationFactor = q.cfg.Backoff, q.cfg.Max, 2, 0.2
	var d time.Duration
	for range min(max(n, 1), 32) {
		d = b.NextBackOff()
	}
	return d
}

// rescue gives expired leases back now and again.
func (q *Queue) rescue(ctx context.Context) error {
	for {
		n, err := q.cfg.Store.Rescue(ctx, q.cfg.Now())
		if err != nil && ctx.Err() == nil {
			q.cfg.Log.Error().Err(err).Msg("rescue jobs")
		}
		if n > 0 {
			q.cfg.Log.Info().Int("jobs", n).Msg("rescued jobs whose lease had run out")
		}
		timer := time.NewTimer(q.cfg.Rescue + rand.N(q.cfg.Rescue/4+1))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}
