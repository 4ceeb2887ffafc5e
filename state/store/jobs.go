package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/blob"
)

// ClaimReq describes the jobs that a worker accepts.
type ClaimReq struct {
	Lanes []state.Lane // empty means all
	// Lease returns the length of the lease for jobs of a kind. It must be positive.
	Lease func(state.JobKind) time.Duration
}

// Claim claims the next due job for a worker, or returns nil if there is none. Jobs are ordered by priority, then by
// the time since when they are due. Jobs of one task and lane are claimed one at a time in the order of their creation.
// A later job may overtake one that is not yet due, except work that is being retried. The worker has until Job.Until
// to call Apply or Retry with the job's ID and epoch.
func (s *Store) Claim(ctx context.Context, req ClaimReq) (*state.Job, error) {
	if len(req.Lanes) == 0 {
		req.Lanes = state.Lanes()
	}
	now := s.now()
	candidates, err := s.candidates(ctx, req.Lanes, now)
	if err != nil {
		return nil, fmt.Errorf("claim job: %w", err)
	}
	for _, c := range candidates {
		job, err := s.claim(ctx, c, req, now)
		if err != nil {
			return nil, fmt.Errorf("claim job %s: %w", c.ID, err)
		}
		if job != nil {
			return job, nil
		} // otherwise another worker was faster
	}
	return nil, nil
}

// candidates returns the first claimable job of each task and lane, in claiming order.
func (s *Store) candidates(ctx context.Context, lanes []state.Lane, now time.Time) ([]state.Job, error) {
	var found []state.Job
	err := s.eachQueue(ctx, func(q *queue) {
		for _, lane := range lanes {
			if j := q.firstClaimable(lane, now); j != nil {
				found = append(found, *j)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b state.Job) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), dueSince(&a).Compare(dueSince(&b)))
	})
	return found, nil
}

// dueSince returns the time at which a job became due.
func dueSince(j *state.Job) time.Time {
	if j.NotBefore.After(j.Created) {
		return j.NotBefore
	}
	return j.Created
}

// claim claims a candidate, or returns nil if it is no longer claimable.
func (s *Store) claim(ctx context.Context, c state.Job, req ClaimReq, now time.Time) (*state.Job, error) {
	var claimed *state.Job
	err := kv.Update(ctx, s.db, "claim "+string(c.Kind), func(tx kv.Tx) error {
		claimed = nil
		q, err := s.getQueue(tx, c.Task)
		if err != nil {
			return err
		}
		j := q.firstClaimable(c.Lane, now)
		if j == nil || j.ID != c.ID {
			return nil
		}
		j.State, j.Until = state.JobClaimed, now.Add(req.Lease(j.Kind))
		j.Epoch++
		j.Attempt++
		s.distrust(j, now)
		q.changed = true
		if claimed, err = s.withPayload(tx, *j); err != nil {
			return err
		}
		return s.putQueue(tx, q)
	})
	return claimed, err
}

// MarkAttempted records durably that the worker is about to cause the job's external effect. Later claims of the job
// have Attempted set. If the lease is lost the error is ErrLeaseLost.
func (s *Store) MarkAttempted(ctx context.Context, id string, epoch int64) error {
	return s.changeJob(ctx, "mark", id, epoch, func(_ kv.Tx, q *queue, j *state.Job) error {
		j.Attempted, q.changed = true, true
		return nil
	})
}

// MarkLaunch is MarkAttempted for the start of a run, and stores the run's parameters: later claims of the job have
// Job.Launch set. It may be called again with other parameters before the start.
func (s *Store) MarkLaunch(ctx context.Context, id string, epoch int64, l state.Launch) error {
	return s.changeJob(ctx, "mark", id, epoch, func(_ kv.Tx, q *queue, j *state.Job) error {
		j.Attempted, j.Launch, q.changed = true, &l, true
		return nil
	})
}

// Retry returns a claimed job to its position in the queue, to be claimed again at f.Retry, which must be set. If the
// lease is lost the error is ErrLeaseLost.
func (s *Store) Retry(ctx context.Context, id string, epoch int64, f state.Failed) error {
	if f.Retry.IsZero() {
		return fmt.Errorf("retry job %s: no time to try again", id)
	}
	at := f.Retry.UTC().Round(0)
	return s.changeJob(ctx, "retry", id, epoch, func(tx kv.Tx, q *queue, j *state.Job) error {
		j.Failures++
		if f.Defect {
			j.Defects++
		}
		return q.requeue(tx, j.ID, at, f.Error)
	})
}

// changeJob changes a claimed job.
func (s *Store) changeJob(ctx context.Context, verb, id string, epoch int64, fn func(kv.Tx, *queue, *state.Job) error) error {
	task, err := taskOfJob(id)
	if err != nil {
		return fmt.Errorf("%s job: %w", verb, err)
	}
	err = kv.Update(ctx, s.db, verb+" job", func(tx kv.Tx) error {
		q, err := s.getQueue(tx, task)
		if err != nil {
			return err
		}
		j, err := q.findClaimed(id, epoch)
		if err != nil {
			return err
		}
		if err := fn(tx, q, j); err != nil {
			return err
		}
		return s.putQueue(tx, q)
	})
	if err != nil {
		return fmt.Errorf("%s job: %w", verb, err)
	}
	return nil
}

// leaseEnded is the last error of a job whose lease expired.
const leaseEnded = "the worker's lease ended before the job did"

// Rescue returns every claimed job whose lease has expired to its queue, and returns their number. It increases the
// epoch, so that calls by the old worker fail with ErrLeaseLost.
func (s *Store) Rescue(ctx context.Context, now time.Time) (int, error) {
	expired := func(j *state.Job) bool { return j.State == state.JobClaimed && !j.Until.After(now) }
	var tasks []state.TaskKey
	err := s.eachQueue(ctx, func(q *queue) {
		if slices.ContainsFunc(q.jobs, func(j state.Job) bool { return expired(&j) }) {
			tasks = append(tasks, q.task)
		}
	})
	if err != nil {
		return 0, fmt.Errorf("rescue jobs: %w", err)
	}
	total := 0
	for _, task := range tasks {
		n := 0
		err := kv.Update(ctx, s.db, "rescue jobs", func(tx kv.Tx) (err error) {
			n, err = s.rescueTask(tx, task, expired)
			return err
		})
		if err != nil {
			return total, fmt.Errorf("rescue jobs of task %s: %w", task, err)
		}
		total += n
	}
	return total, nil
}

func (s *Store) rescueTask(tx kv.Tx, task state.TaskKey, expired func(*state.Job) bool) (int, error) {
	q, err := s.getQueue(tx, task)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, j := range slices.Clone(q.jobs) {
		if !expired(&j) {
			continue
		}
		if err := q.requeue(tx, j.ID, j.NotBefore, leaseEnded); err != nil {
			return 0, err
		}
		q.queuedByID(j.ID).Epoch++
		n++
	}
	return n, s.putQueue(tx, q)
}

func (q *queue) queuedByID(id string) *state.Job {
	return &q.jobs[slices.IndexFunc(q.jobs, func(j state.Job) bool { return j.ID == id })]
}

// NextDue returns the next time at which a job can be claimed, which may be in the past, or at which a lease ends. It
// returns false if there is none.
func (s *Store) NextDue(ctx context.Context) (time.Time, bool, error) {
	var next time.Time
	found := false
	err := s.eachQueue(ctx, func(q *queue) {
		for _, lane := range state.Lanes() {
			at, ok := q.nextDue(lane)
			if ok && (!found || at.Before(next)) {
				next, found = at, true
			}
		}
	})
	if err != nil {
		return time.Time{}, false, fmt.Errorf("find the next job: %w", err)
	}
	return next, found, nil
}

func (q *queue) nextDue(lane state.Lane) (next time.Time, found bool) {
	if j := q.claimedIn(lane); j != nil {
		return j.Until, true
	}
	for i := range q.jobs {
		j := &q.jobs[i]
		if j.Lane != lane {
			continue
		}
		if q.waitsForStop(j) {
			break // the stop job has its own due time
		}
		if at := dueSince(j); !found || at.Before(next) {
			next, found = at, true
		}
		if blocksLane(j) {
			break
		}
	}
	return next, found
}

// Jobs returns the queued and claimed jobs of a task in the order of their creation, with their payloads.
func (s *Store) Jobs(ctx context.Context, key state.TaskKey) ([]state.Job, error) {
	var jobs []state.Job
	err := s.db.View(ctx, func(r kv.Reader) error {
		jobs = nil
		q, err := s.getQueue(r, key)
		if err != nil {
			return err
		}
		for _, j := range q.jobs {
			whole, err := s.withPayload(r, j)
			if err != nil {
				return err
			}
			jobs = append(jobs, *whole)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read jobs of task %s: %w", key, err)
	}
	return jobs, nil
}

// eachQueue calls fn with the queue of every task that has jobs, as of one moment.
func (s *Store) eachQueue(ctx context.Context, fn func(*queue)) error {
	return s.db.View(ctx, func(r kv.Reader) error {
		pairs, err := r.Range(preJobs, "", 0)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			task, err := state.ParseTaskKey(p.Key[len(preJobs):])
			if err != nil {
				return err
			}
			q := &queue{task: task}
			data, err := blob.Join(r, p.Key, p.Value)
			if err == nil {
				err = s.codec.Decode(p.Key, data, &q.jobs)
			}
			if err != nil {
				return err
			}
			fn(q)
		}
		return nil
	})
}
