package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
)

// Restored records that the store is a copy from a backup: between the backup and the restoration errand did things of which this
// store knows nothing.
type Restored struct {
	Backup time.Time `json:"backup"` // when the backup was made, or an earlier one, if that was restored shortly before
	At     time.Time `json:"at"`     // when it was restored
	// UsedRuns is a number up to which runs may exist that this store does not know.
	UsedRuns int `json:"used_runs,omitempty"`
	// CaughtUp is when errand, after the operator had resumed it, had compared all tasks with GitHub; zero until then.
	CaughtUp time.Time `json:"caught_up,omitzero"`
}

// searchTime is how long after it has caught up with GitHub a restored errand's jobs look for effects that the store does not know. GitHub's log of webhooks, from which
// errand learns what it missed, reaches back three days.
const searchTime = 8 * 24 * time.Hour

// skippedNumbers returns how many numbers of VMs and runs are left out after a restoration, so that none is used twice. An errand that
// was restored from the same backup before may have used numbers, too: it had less time since the backup, and a task does not get a VM
// or a run every second.
func skippedNumbers(backup, at time.Time) int { return 100 + int(max(0, at.Sub(backup)).Seconds()) }

// MarkRestored prepares a store from a backup, before a server opens it: nothing is done until the operator resumes errand, VMs that
// are older than the restoration and unknown are never deleted automatically, jobs look for effects since the backup, and no number
// of a VM or a run is used that may have been used since. The action is completed with the result and stored in the audit log.
func (s *Store) MarkRestored(ctx context.Context, backup time.Time, a Action) error {
	r := Restored{Backup: backup, At: s.now()}
	if old := s.restored; !old.At.IsZero() && old.Backup.Before(backup) &&
		(old.CaughtUp.IsZero() || backup.Sub(old.CaughtUp) < searchTime) {
		r.Backup = old.Backup // the backup is that of a restored errand, which was still looking for what happened since that one
	}
	skipped := skippedNumbers(backup, r.At)
	generation, err := s.skipRuns(ctx, &r, skipped)
	if err == nil {
		err = s.VMs.Distrust(ctx, r.At, generation, skipped)
	}
	if err != nil {
		return fmt.Errorf("mark the store as restored: %w", err)
	}
	err = kv.Update(ctx, s.db, "mark restored", func(tx kv.Tx) error { return s.codec.PutJSON(tx, keyRestored, r) })
	if err != nil {
		return fmt.Errorf("mark the store as restored: %w", err)
	}
	s.setRestored(r)
	_, err = s.Pauses.change(ctx, a, func(list []state.Pause, a *Action) []state.Pause {
		list = slices.DeleteFunc(list, func(p state.Pause) bool { return p.Repo == 0 })
		a.Result = "restored from the backup of " + backup.UTC().Format("2006-01-02 15:04 UTC")
		return append(list, state.Pause{Since: r.At, By: a.By, Reason: a.Result, Restored: backup})
	})
	return err
}

// skipRuns sets r.UsedRuns, gives new numbers to the runs that the backup was about to start, and returns the highest generation of a
// task's VM.
func (s *Store) skipRuns(ctx context.Context, r *Restored, skipped int) (generation int, err error) {
	r.UsedRuns = s.restored.UsedRuns
	var starting []state.TaskKey
	for after := (state.TaskKey{}); ; {
		tasks, err := s.AllTasks(ctx, after, 200)
		if err != nil {
			return 0, err
		}
		if len(tasks) == 0 {
			break
		}
		for _, t := range tasks {
			r.UsedRuns = max(r.UsedRuns, t.RunSeq)
			generation = max(generation, t.LastVMGen())
			if t.Run != nil && t.Run.State == state.RunLaunching {
				starting = append(starting, t.Key)
			}
		}
		after = tasks[len(tasks)-1].Key
	}
	r.UsedRuns += skipped
	for _, key := range starting {
		err := kv.Update(ctx, s.db, "renumber run", func(tx kv.Tx) error { return s.renumberRun(tx, key, r.UsedRuns+1) })
		if err != nil {
			return 0, err
		}
	}
	return generation, nil
}

// renumberRun gives a new number to a run that is about to be started. One whose start was recorded keeps it: a repeated launch finds it.
func (s *Store) renumberRun(tx kv.Tx, key state.TaskKey, seq int) error {
	t, err := s.getTask(tx, key)
	if err != nil {
		return err
	}
	q, err := s.getQueue(tx, key)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(q.jobs, func(j state.Job) bool { return j.Kind == state.JobLaunch && j.Run == t.Run.ID })
	if i >= 0 && q.jobs[i].Launch != nil {
		return nil
	}
	t.SetRunSeq(seq)
	if i >= 0 { // otherwise the run waits, for example for a limit
		q.jobs[i].Run, q.changed = t.Run.ID, true
	}
	return errors.Join(s.putTask(tx, t, t), s.putQueue(tx, q))
}

// Restored returns when the store was restored from a backup; its times are zero if it was not.
func (s *Store) Restored() Restored { return s.restored }

// readRestored reads what MarkRestored recorded.
func (s *Store) readRestored(ctx context.Context) error {
	err := s.db.View(ctx, func(r kv.Reader) error { return s.codec.GetJSON(r, keyRestored, &s.restored) })
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return fmt.Errorf("read the restoration: %w", err)
	}
	s.setRestored(s.restored)
	return nil
}

func (s *Store) setRestored(r Restored) {
	s.restored, s.policy.UsedRuns, s.policy.Restored = r, r.UsedRuns, r.At
}

// MarkCaughtUp records that a restored errand has compared all tasks with GitHub.
func (s *Store) MarkCaughtUp(ctx context.Context) error {
	r := s.restored
	r.CaughtUp = s.now()
	err := kv.Update(ctx, s.db, "mark caught up", func(tx kv.Tx) error { return s.codec.PutJSON(tx, keyRestored, r) })
	if err != nil {
		return fmt.Errorf("record that the restored errand has caught up: %w", err)
	}
	s.restored = r
	return nil
}

// distrust marks a job that is being claimed as one of a restored store. The effect of kinds that look for it on GitHub, by a hidden
// marker or the branch, may have happened between the backup and the restoration.
func (s *Store) distrust(j *state.Job, now time.Time) {
	r := s.restored
	if r.At.IsZero() || !r.CaughtUp.IsZero() && now.Sub(r.CaughtUp) > searchTime {
		return
	}
	j.Restored = r.At
	if j.Attempted {
		return
	}
	switch j.Kind {
	case state.JobPost, state.JobStatus, state.JobIssue, state.JobOpenPR, state.JobAnswer:
		j.Attempted, j.UnknownSince = true, r.Backup
	}
}
