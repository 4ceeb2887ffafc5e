package walk

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// journal wraps the store for all of errand, and compares each call with the model before and after. It does not panic,
// because the queue converts a step's panic to an error: see complain.
type journal struct {
	*store.Store
	w *world
}

// complain records a broken promise from within errand; the walk ends after the current step.
func (w *world) complain(format string, args ...any) {
	if w.broke == "" {
		w.broke = w.story(format, args...)
	}
}

// errFull is the error of the store when the disk is full.
var errFull = errors.New("there is no space left on the device")

// kept stores the gateway's bookings.
func (w *world) kept(e event.Event) (store.Applied, error) {
	w.itself = true
	defer func() { w.itself = false }()
	return w.journal.Apply(context.Background(), e, store.Ack{})
}

// Apply is checked against the journal's data about the task and the job that the event comes from.
func (j journal) Apply(ctx context.Context, e event.Event, ack store.Ack) (store.Applied, error) {
	before := j.w.jobs.was(e.Task)
	j.w.applying = e.Kind()
	out, err := j.Store.Apply(ctx, e, ack)
	j.w.applying = ""
	j.w.storage.spent(ack.Delivery, err)
	j.w.polls.applied(e, err)
	if err != nil { // errand may have died after the commit
		delete(j.w.jobs.tasks, e.Task)
		j.w.jobs.refused(ack, err)
		return out, err
	}
	j.w.jobs.applied(before, out.Task, e, ack)
	return out, err
}

// Claim records the claimed job.
func (j journal) Claim(ctx context.Context, req store.ClaimReq) (*state.Job, error) {
	job, err := j.Store.Claim(ctx, req)
	switch {
	case errors.Is(err, errFull):
	case err != nil:
		j.w.jobs.vague++
	case job != nil:
		j.w.jobs.claimed(job)
	}
	return job, err
}

// Retry checks the delay against the number of the job's errors, and then sets it to a power of two, because the
// queue's jitter would make walks irreproducible.
func (j journal) Retry(ctx context.Context, id string, epoch int64, f state.Failed) error {
	d := f.Retry.Sub(j.w.now)
	j.w.jobs.checkBackOff(id, epoch, d)
	f.Retry = j.w.now.Add(time.Duration(math.Exp2(math.Round(math.Log2(max(d.Seconds(), 1))))) * time.Second)
	err := j.Store.Retry(ctx, id, epoch, f)
	j.w.jobs.retried(id, epoch, err)
	return err
}

// MarkAttempted records that the job's effect may exist from now on.
func (j journal) MarkAttempted(ctx context.Context, id string, epoch int64) error {
	err := j.Store.MarkAttempted(ctx, id, epoch)
	if err == nil {
		j.w.jobs.of(id).attempted = true
	}
	return err
}

// MarkLaunch records the data with which a run may have started.
func (j journal) MarkLaunch(ctx context.Context, id string, epoch int64, l state.Launch) error {
	err := j.Store.MarkLaunch(ctx, id, epoch, l)
	if err == nil {
		r := j.w.jobs.of(id)
		r.attempted, r.launch = true, l.Run
	}
	return err
}

// Rescue records the expired leases.
func (j journal) Rescue(ctx context.Context, now time.Time) (int, error) {
	n, err := j.Store.Rescue(ctx, now)
	if err != nil {
		j.w.jobs.look()
		return n, err
	}
	for _, r := range j.w.jobs.list {
		if !r.until.After(now) {
			r.held = false
		}
	}
	return n, err
}
