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
	Backup time.Time `json:"backup"` // when the backup was made
	At     time.Time `json:"at"`     // when it was restored
}

// searchTime is how long after a restoration jobs look for effects that the store does not know. GitHub's log of webhooks, from which
// errand learns what it missed, reaches back three days.
const searchTime = 8 * 24 * time.Hour

// MarkRestored prepares a store from a backup, before a server opens it: nothing is done until the operator resumes errand, VMs that
// are older than the restoration and unknown are never deleted automatically, and jobs look for effects since the backup. The action
// is completed with the result and stored in the audit log.
func (s *Store) MarkRestored(ctx context.Context, backup time.Time, a Action) error {
	r := Restored{Backup: backup, At: s.now()}
	if err := s.VMs.Distrust(ctx, r.At); err != nil {
		return fmt.Errorf("mark the store as restored: %w", err)
	}
	err := kv.Update(ctx, s.db, "mark restored", func(tx kv.Tx) error { return s.codec.PutJSON(tx, keyRestored, r) })
	if err != nil {
		return fmt.Errorf("mark the store as restored: %w", err)
	}
	s.restored = r
	_, err = s.Pauses.change(ctx, a, func(list []state.Pause, a *Action) []state.Pause {
		list = slices.DeleteFunc(list, func(p state.Pause) bool { return p.Repo == 0 })
		a.Result = "restored from the backup of " + backup.UTC().Format("2006-01-02 15:04 UTC")
		return append(list, state.Pause{Since: r.At, By: a.By, Reason: a.Result, Restored: backup})
	})
	return err
}

// Restored returns when the store was restored from a backup; its times are zero if it was not.
func (s *Store) Restored() Restored { return s.restored }

// readRestored reads what MarkRestored recorded.
func (s *Store) readRestored(ctx context.Context) error {
	err := s.db.View(ctx, func(r kv.Reader) error { return s.codec.GetJSON(r, keyRestored, &s.restored) })
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return fmt.Errorf("read the restoration: %w", err)
	}
	return nil
}

// distrust marks a job that is being claimed as one whose effect may have happened between the backup and the restoration of this
// store. Only kinds that look for their own effect on GitHub, by a hidden marker or the branch, are marked.
func (s *Store) distrust(j *state.Job, now time.Time) {
	if s.restored.At.IsZero() || j.Attempted || now.Sub(s.restored.At) > searchTime {
		return
	}
	switch j.Kind {
	case state.JobPost, state.JobStatus, state.JobIssue, state.JobOpenPR, state.JobAnswer:
		j.Attempted, j.UnknownSince = true, s.restored.Backup
	}
}
