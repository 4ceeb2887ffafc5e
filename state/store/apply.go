package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/machine"
)

// Ack names the source of an event, which is spent in the transaction that applies the event. At most one of Delivery,
// Job and Call is set; an event may also have no source.
type Ack struct {
	Delivery string // a delivery's GUID
	Job      string // a job's ID, claimed with Epoch
	Epoch    int64
	Call     string // the ID of a call's Reservation; the event records the call's cost
}

// hasOneSource reports whether at most one source is set.
func (a Ack) hasOneSource() bool {
	n := 0
	for _, id := range []string{a.Delivery, a.Job, a.Call} {
		if id != "" {
			n++
		}
	}
	return n <= 1
}

// Applied is the result of applying an event.
type Applied struct {
	Task    *state.Task // after the event, nil if there is none
	Changed bool        // the event changed the task
	Answer  string      // machine.Change.Answer
	Note    string
}

// noteSeen is the note for an event that was applied before.
const noteSeen = "this event was applied before"

// Apply applies an event to its task: in one transaction it calls machine.Next, saves the task, drops and enqueues
// jobs, and spends ack. It is the only way to change a task. When it returns nil the change is durable.
//
// An event whose ID the task has seen changes nothing, but still spends ack. If ack's job is not claimed with ack's
// epoch the error is ErrLeaseLost; if ack's delivery was spent or its call recorded before, the error is ErrSpent. In
// both cases nothing has changed.
func (s *Store) Apply(ctx context.Context, e event.Event, ack Ack) (Applied, error) {
	if e.Task.IsZero() {
		return Applied{}, fmt.Errorf("apply %s: the event names no task", e.Kind())
	}
	if !ack.hasOneSource() {
		return Applied{}, fmt.Errorf("apply %s to %s: the acknowledgment names more than one item", e.Kind(), e.Task)
	}
	e.Now = s.now()
	var applied Applied
	err := kv.Update(ctx, s.db, "apply "+string(e.Kind()), func(tx kv.Tx) (err error) {
		applied, err = s.apply(tx, e, ack)
		return err
	})
	if err != nil {
		return Applied{}, fmt.Errorf("apply %s to %s: %w", e.Kind(), e.Task, err)
	}
	s.reportPhase(ctx, e, applied)
	return applied, nil
}

// reportPhase calls Options.PhaseChanged after an event was applied.
func (s *Store) reportPhase(ctx context.Context, e event.Event, applied Applied) {
	if s.phaseChanged == nil || !applied.Changed {
		return
	}
	if e.Kind() == event.KindRunEnded || e.Kind() == event.KindWorkSaved || !applied.Task.Since.Before(e.Now) {
		s.phaseChanged(ctx, applied.Task.Key)
	}
}

// apply is Apply inside its transaction.
func (s *Store) apply(tx kv.Tx, e event.Event, ack Ack) (Applied, error) {
	task, err := s.getTask(tx, e.Task)
	if err != nil {
		return Applied{}, err
	}
	queue, err := s.getQueue(tx, e.Task)
	if err != nil {
		return Applied{}, err
	}
	if err := s.spendAck(tx, e, ack, queue); err != nil {
		return Applied{}, err
	}
	e.Unvetted, e.VMNeeded, e.Approving = queue.hasUnvettedText(), queue.hasWork(), queue.hasApproval()
	e.Busy, e.Stopping = queue.isBusy(), queue.hasStop()
	applied := Applied{Task: task, Note: noteSeen}
	if task == nil || e.ID == "" || !task.HasSeen(e.ID) {
		applied, err = s.transition(tx, task, e, queue)
	}
	if err != nil {
		return Applied{}, err
	}
	return applied, s.putQueue(tx, queue)
}

// spendAck removes the source of the event.
func (s *Store) spendAck(tx kv.Tx, e event.Event, ack Ack, queue *queue) error {
	switch {
	case ack.Delivery != "":
		return s.spendDelivery(tx, ack.Delivery, e.Now)
	case ack.Call != "":
		return s.Reservations.settle(tx, ack.Call)
	case ack.Job == "":
		return nil
	}
	owner, err := taskOfJob(ack.Job)
	if err != nil {
		return err
	}
	if owner != e.Task {
		return fmt.Errorf("job %s belongs to task %s", ack.Job, owner)
	}
	job, err := queue.findClaimed(ack.Job, ack.Epoch)
	if err != nil {
		return err
	}
	return queue.remove(tx, job.ID)
}

// transition calls machine.Next and stores its result.
func (s *Store) transition(tx kv.Tx, before *state.Task, e event.Event, queue *queue) (Applied, error) {
	ch := s.next(before, e, s.policy)
	if ch.DropTexts {
		if err := markPurge(tx, before); err != nil {
			return Applied{}, err
		}
	}
	if ch.DropWork || ch.DropDue || ch.DropTexts {
		if err := queue.dropQueued(tx, ch.Drops); err != nil {
			return Applied{}, err
		}
	}
	queue.markDoubt(event.Of[event.StepFailed](e).Failure)
	for _, job := range ch.Jobs {
		if err := s.enqueue(tx, queue, job, e); err != nil {
			return Applied{}, err
		}
	}
	if ch.Task == nil {
		return Applied{Task: before, Note: ch.Note}, nil
	}
	after := ch.Task
	after.Key, after.Version = e.Task, 1
	if before != nil {
		after.Version = before.Version + 1
	}
	machine.MarkSeen(after, e)
	if err := s.putTask(tx, before, after); err != nil {
		return Applied{}, err
	}
	if err := errors.Join(s.Spending.addCost(tx, before, after, e.Now), s.VMs.Follow(tx, before, after, e.Now)); err != nil {
		return Applied{}, err
	}
	return Applied{Task: after, Changed: true, Answer: ch.Answer, Note: ch.Note}, nil
}

// getTask returns a task, or nil if there is none.
func (s *Store) getTask(r kv.Reader, key state.TaskKey) (*state.Task, error) {
	var t state.Task
	err := s.codec.GetJSON(r, taskKey(key), &t)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// putTask saves a task and updates the indexes. before is nil for a new task.
func (s *Store) putTask(tx kv.Tx, before, after *state.Task) error {
	key := after.Key.String()
	here, there := preOpen, preEnded
	if after.Ended() {
		here, there = there, here
	}
	if before == nil || before.Phase != after.Phase {
		if err := errors.Join(tx.Put(here+key, []byte(after.Phase)), tx.Delete(there+key)); err != nil {
			return err
		}
	}
	if err := indexPRs(tx, after.Key, prNumbers(before), prNumbers(after)); err != nil {
		return err
	}
	return s.codec.PutJSON(tx, taskKey(after.Key), after)
}

// indexPRs updates the index of pull requests.
func indexPRs(tx kv.Tx, key state.TaskKey, before, after []int) error {
	for _, n := range before {
		if slices.Contains(after, n) {
			continue
		}
		holder, err := tx.Get(prKey(key.Repo, n))
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return err
		}
		if string(holder) == key.String() { // otherwise another task has since adopted it
			if err := tx.Delete(prKey(key.Repo, n)); err != nil {
				return err
			}
		}
	}
	for _, n := range after {
		if slices.Contains(before, n) {
			continue
		}
		if err := tx.Put(prKey(key.Repo, n), []byte(key.String())); err != nil {
			return err
		}
	}
	return nil
}

// prNumbers returns the numbers of the task's pull request and of those that it replaced.
func prNumbers(t *state.Task) []int {
	if t == nil {
		return nil
	}
	var list []int
	if t.PR != nil {
		list = append(list, t.PR.Number)
	}
	for _, r := range t.Replaced {
		if r.Number != 0 {
			list = append(list, r.Number)
		}
	}
	return list
}
