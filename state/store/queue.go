package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/blob"
)

// queue is the value stored under jobsKey: the queued and claimed jobs of one task in the order of their creation. A
// job that is claimed or retried keeps its position. Payloads are stored under preJobData.
type queue struct {
	task state.TaskKey
	jobs []state.Job
	// changed is set when the queue must be stored.
	changed  bool
	unfenced bool // SafeguardFencing is disabled
}

// payload is the part of a job that never changes and may be large.
type payload struct {
	Event     json.RawMessage  `json:"event,omitempty"`
	Post      *state.Post      `json:"post,omitempty"`
	Candidate *state.Candidate `json:"candidate,omitempty"`
}

func (s *Store) getQueue(r kv.Reader, key state.TaskKey) (*queue, error) {
	q := &queue{task: key, unfenced: s.isDisabled(SafeguardFencing)}
	err := s.codec.GetJSON(r, jobsKey(key), &q.jobs)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	return q, nil
}

func (s *Store) putQueue(tx kv.Tx, q *queue) error {
	switch {
	case !q.changed:
		return nil
	case len(q.jobs) == 0:
		return blob.Delete(tx, jobsKey(q.task))
	}
	return s.codec.PutJSON(tx, jobsKey(q.task), q.jobs)
}

// enqueue adds a job that follows from e, subject to Job.Key. A job vet gets e itself. If an unclaimed job with the
// same key is queued, that job is moved to an earlier time if the new one would be due earlier. The status comment's
// job may also be moved to a later time, because it may have been queued before the edit from which it must keep its
// distance.
func (s *Store) enqueue(tx kv.Tx, q *queue, job state.Job, e event.Event) error {
	if !job.Task.IsZero() && job.Task != q.task {
		return fmt.Errorf("enqueue %s for task %s in the queue of %s", job.Kind, job.Task, q.task)
	}
	if twin := s.findDuplicate(q, &job); twin != nil {
		if twin.Attempt == 0 && (job.NotBefore.Before(twin.NotBefore) || job.Kind == state.JobStatus) {
			twin.NotBefore, q.changed = job.NotBefore, true
		}
		return nil
	}
	id, err := nextJobID(tx, q.task)
	if err != nil {
		return err
	}
	job.ID, job.Task, job.Created, job.State = id, q.task, e.Now, state.JobQueued
	job.Epoch, job.Until, job.Attempt, job.Failures, job.Defects = 0, time.Time{}, 0, 0, 0
	job.Attempted, job.LastError = !job.UnknownSince.IsZero(), ""
	if job.Lane == "" {
		job.Lane = state.LaneWork
	}
	if job.Kind == state.JobVet {
		if job.Event, err = json.Marshal(e); err != nil {
			return err
		}
	}
	p := payload{job.Event, job.Post, job.Candidate}
	if len(p.Event) > 0 || p.Post != nil || p.Candidate != nil {
		if err := s.codec.PutJSON(tx, preJobData+id, p); err != nil {
			return err
		}
	}
	job.Event, job.Post, job.Candidate = nil, nil, nil
	q.jobs, q.changed = append(q.jobs, job), true
	return nil
}

// nextJobID returns the next ID for a job of the task.
func nextJobID(tx kv.Tx, key state.TaskKey) (string, error) {
	var n int64
	stored, err := tx.Get(jobSeqKey(key))
	if err == nil {
		n, err = strconv.ParseInt(string(stored), 10, 64)
	}
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return "", fmt.Errorf("number job of task %s: %w", key, err)
	}
	n++
	return jobID(key, n), tx.Put(jobSeqKey(key), strconv.AppendInt(nil, n, 10))
}

// withPayload returns a copy of a job with its payload.
func (s *Store) withPayload(r kv.Reader, job state.Job) (*state.Job, error) {
	var p payload
	err := s.codec.GetJSON(r, preJobData+job.ID, &p)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	job.Event, job.Post, job.Candidate = p.Event, p.Post, p.Candidate
	return &job, nil
}

// findQueued returns the queued job with a key, or nil if there is none or the key is empty.
func (q *queue) findQueued(key string) *state.Job {
	for i := range q.jobs {
		if j := &q.jobs[i]; key != "" && j.Key == key && j.State == state.JobQueued {
			return j
		}
	}
	return nil
}

// findClaimed returns the job if it is claimed with that epoch, else ErrLeaseLost.
func (q *queue) findClaimed(id string, epoch int64) (*state.Job, error) {
	for i := range q.jobs {
		if j := &q.jobs[i]; j.ID == id && (j.State == state.JobClaimed && j.Epoch == epoch || q.unfenced) {
			return j, nil
		}
	}
	return nil, fmt.Errorf("job %s with epoch %d: %w", id, epoch, ErrLeaseLost)
}

// hasUnvettedText reports whether the author of a comment or of an edit of the issue is still being vetted.
func (q *queue) hasUnvettedText() bool {
	return slices.ContainsFunc(q.jobs, func(j state.Job) bool {
		return j.Kind == state.JobVet && (strings.HasPrefix(j.Key, state.VetPrefix+"comment:") || strings.HasPrefix(j.Key, state.VetPrefix+"edit:"))
	})
}

// hasApproval reports whether an approval is being checked, or its author is being vetted.
func (q *queue) hasApproval() bool {
	vetsEdit := state.VetPrefix + string(event.KindCommentEdited)
	return slices.ContainsFunc(q.jobs, func(j state.Job) bool {
		return j.Kind == state.JobApprove || j.Kind == state.JobVet && strings.HasPrefix(j.Key, vetsEdit)
	})
}

// hasWork reports whether the task has work in its queue, or a person's text is being vetted.
func (q *queue) hasWork() bool {
	return q.hasUnvettedText() || slices.ContainsFunc(q.jobs, func(j state.Job) bool { return j.Lane == state.LaneWork })
}

// isBusy reports whether a job is claimed, or an action of a person is being vetted.
func (q *queue) isBusy() bool {
	return slices.ContainsFunc(q.jobs, func(j state.Job) bool { return j.State == state.JobClaimed || j.Kind == state.JobVet })
}

// markDoubt marks the queued job with the same key as a failed one to check for effects of the failed job.
func (q *queue) markDoubt(f state.Failure) {
	if f.UnknownSince.IsZero() {
		return
	}
	if j := q.findQueued(f.Key); j != nil && j.UnknownSince.IsZero() {
		j.UnknownSince, j.Attempted, q.changed = f.UnknownSince, true, true
	}
}

// remove removes a job and its payload.
func (q *queue) remove(tx kv.Tx, id string) error {
	q.jobs = slices.DeleteFunc(q.jobs, func(j state.Job) bool { return j.ID == id })
	q.changed = true
	return blob.Delete(tx, preJobData+id)
}

// dropQueued removes queued jobs for which which returns true.
func (q *queue) dropQueued(tx kv.Tx, which func(*state.Job) bool) error {
	for _, j := range slices.Clone(q.jobs) {
		if j.State != state.JobQueued || !which(&j) {
			continue
		}
		if err := q.remove(tx, j.ID); err != nil {
			return err
		}
	}
	return nil
}

// requeue returns a claimed job to its position in the queue. A job with the same key that was queued behind it would
// have the same effect and is removed.
func (q *queue) requeue(tx kv.Tx, id string, notBefore time.Time, why string) error {
	i := slices.IndexFunc(q.jobs, func(j state.Job) bool { return j.ID == id })
	if twin := q.findQueued(q.jobs[i].Key); twin != nil {
		if err := q.remove(tx, twin.ID); err != nil {
			return err
		}
		i = slices.IndexFunc(q.jobs, func(j state.Job) bool { return j.ID == id })
	}
	j := &q.jobs[i]
	j.State, j.NotBefore, j.Until, j.LastError = state.JobQueued, notBefore, time.Time{}, why
	q.changed = true
	return nil
}

// firstClaimable returns the claimable job of a lane: the oldest that is due. It returns nil if a job of the lane is
// claimed, or if an older job blocks the lane or waits for a stop.
func (q *queue) firstClaimable(lane state.Lane, now time.Time) *state.Job {
	if q.claimedIn(lane) != nil {
		return nil
	}
	for i := range q.jobs {
		j := &q.jobs[i]
		switch {
		case j.Lane != lane:
		case q.waitsForStop(j):
			return nil
		case !j.NotBefore.After(now):
			return j
		case blocksLane(j):
			return nil
		}
	}
	return nil
}

// waitsForStop reports whether a job uses the task's checkout while a run is still to be stopped there. The stop is in
// another lane and saves the run's work: it could commit files that the next run is writing.
func (q *queue) waitsForStop(j *state.Job) bool {
	switch j.Kind {
	case state.JobLaunch, state.JobCollect, state.JobRebase, state.JobSuspend:
		return q.hasStop()
	}
	return false
}

// hasStop reports whether a run is being stopped, or is about to be.
func (q *queue) hasStop() bool {
	return slices.ContainsFunc(q.jobs, func(j state.Job) bool { return j.Kind == state.JobStop })
}

// claimedIn returns the claimed job of a lane, or nil if there is none.
func (q *queue) claimedIn(lane state.Lane) *state.Job {
	for i := range q.jobs {
		if j := &q.jobs[i]; j.Lane == lane && j.State == state.JobClaimed {
			return j
		}
	}
	return nil
}

// blocksLane reports whether no other job may overtake a queued job that is not yet due: work that is retried runs
// before the work that follows from it. Jobs that are only delayed, and jobs of the lanes that people wait for, may be
// overtaken.
func blocksLane(j *state.Job) bool {
	return j.Attempt > 0 && j.Kind != state.JobDue && (j.Lane == state.LaneWork || j.Lane == state.LaneStatus)
}
