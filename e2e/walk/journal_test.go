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

// journal is the store as all of errand sees it: what errand asks of it is held against the model before
// and after. Nothing here panics, since the queue takes a panic of a step for an error of it: see complain.
type journal struct {
	*store.Store
	w *world
}

// complain notes that a promise is broken, from within errand: the walk ends when the step has.
func (w *world) complain(format string, args ...any) {
	if w.broke == "" {
		w.broke = w.story(format, args...)
	}
}

// errFull is what the store says when it can write nothing.
var errFull = errors.New("there is no space left on the device")

// kept has the store keep what happens at the gateway.
func (w *world) kept(e event.Event) (store.Applied, error) {
	w.itself = true
	defer func() { w.itself = false }()
	return w.journal.Apply(context.Background(), e, store.Ack{})
}

// Apply is held against what the journal knows of the task and of the job that the event comes from.
func (j journal) Apply(ctx context.Context, e event.Event, ack store.Ack) (store.Applied, error) {
	before := j.w.jobs.was(e.Task)
	j.w.applying = e.Kind()
	out, err := j.Store.Apply(ctx, e, ack)
	j.w.applying = ""
	j.w.storage.spent(ack.Delivery, err)
	j.w.polls.applied(e, err)
	if err != nil { // a death may have come after the commit
		delete(j.w.jobs.tasks, e.Task)
		j.w.jobs.refused(ack, err)
		return out, err
	}
	j.w.jobs.applied(before, out.Task, e, ack)
	return out, err
}

// Claim notes which job is claimed.
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

// Retry holds the wait against how often the job has gone wrong, then sets it to a power of two: the queue's
// waits have a jitter, which would make no walk like another.
func (j journal) Retry(ctx context.Context, id string, epoch int64, f state.Failed) error {
	d := f.Retry.Sub(j.w.now)
	j.w.jobs.waits(id, epoch, d)
	f.Retry = j.w.now.Add(time.Duration(math.Exp2(math.Round(math.Log2(max(d.Seconds(), 1))))) * time.Second)
	err := j.Store.Retry(ctx, id, epoch, f)
	j.w.jobs.retried(id, epoch, err)
	return err
}

// MarkAttempted notes that the job's effect may be there from now on.
func (j journal) MarkAttempted(ctx context.Context, id string, epoch int64) error {
	err := j.Store.MarkAttempted(ctx, id, epoch)
	if err == nil {
		j.w.jobs.of(id).attempted = true
	}
	return err
}

// MarkLaunch notes with what a run may have been started.
func (j journal) MarkLaunch(ctx context.Context, id string, epoch int64, l state.Launch) error {
	err := j.Store.MarkLaunch(ctx, id, epoch, l)
	if err == nil {
		r := j.w.jobs.of(id)
		r.attempted, r.launch = true, l.Run
	}
	return err
}

// Rescue notes which leases are over.
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
