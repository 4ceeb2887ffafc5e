package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/blob"
)

// The limits of one call of Prune, which then takes about a second, and of one of its updates, which delay other
// updates.
const (
	maxPruned   = 1000
	prunedBatch = 20
)

// Prune removes the large parts of tasks that ended before a time, at most 1000 tasks, and returns the number of tasks
// changed. It removes the discussion, unanswered feedback and the texts of unapproved plans. Decisions, their authors
// and times, and costs remain. It removes nothing that an event could depend on, so it does not need one. Call it
// regularly: the index of ended tasks marks the pruned ones, which are not read again.
func (s *Store) Prune(ctx context.Context, before time.Time) (int, error) {
	pruned, seen := 0, 0
	var batch []pruning
	flush := func() error {
		n, err := s.storePruned(ctx, batch)
		pruned, batch = pruned+n, nil
		return err
	}
	err := s.db.Scan(ctx, preEnded, "", 0, func(p kv.Pair) error {
		if seen >= maxPruned || bytes.HasSuffix(p.Value, []byte(lightMark)) {
			return nil
		}
		key, err := state.ParseTaskKey(p.Key[len(preEnded):])
		if err != nil {
			return err
		}
		one, err := s.planPruning(ctx, key, before) // outside of an update, which would delay others
		if err != nil || one == nil {
			return err
		}
		seen++
		if max(len(one.was), len(one.packed)) > kv.MaxUpdateBytes/prunedBatch { // it gets its own update
			n, err := s.storePruned(ctx, []pruning{*one})
			pruned += n
			return err
		}
		if batch = append(batch, *one); len(batch) < prunedBatch {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return pruned, fmt.Errorf("prune tasks: %w", err)
	}
	return pruned, nil
}

// pruning is a task whose large parts are to be removed.
type pruning struct {
	key    state.TaskKey
	phase  state.Phase
	was    []byte // the stored bytes
	packed []byte // the new bytes; nil if nothing is removed
}

// planPruning computes the pruned form of a task in memory. It returns nil for a task that did not end before the time.
func (s *Store) planPruning(ctx context.Context, key state.TaskKey, before time.Time) (*pruning, error) {
	one := &pruning{key: key}
	err := s.db.View(ctx, func(r kv.Reader) (err error) {
		one.was, err = blob.Get(r, taskKey(key))
		return err
	})
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	var task state.Task
	if err == nil {
		err = s.codec.DecodeUncached(taskKey(key), one.was, &task)
	}
	if err != nil || !task.Ended() || !task.Since.Before(before) {
		return nil, err
	}
	one.phase = task.Phase
	if removeLargeParts(&task) {
		one.packed, err = s.codec.EncodeJSON(taskKey(key), &task)
	}
	return one, err
}

// storePruned stores pruned tasks and marks them as light. It skips tasks that were changed in between.
func (s *Store) storePruned(ctx context.Context, list []pruning) (lighter int, err error) {
	if len(list) == 0 {
		return 0, nil
	}
	err = kv.Update(ctx, s.db, "prune tasks", func(tx kv.Tx) error {
		lighter = 0
		for _, one := range list {
			now, err := blob.Get(tx, taskKey(one.key))
			if errors.Is(err, kv.ErrNotFound) || err == nil && !bytes.Equal(now, one.was) {
				continue
			}
			if err == nil {
				err = tx.Put(preEnded+one.key.String(), []byte(string(one.phase)+lightMark))
			}
			if err == nil && one.packed != nil {
				lighter++
				err = blob.Put(tx, taskKey(one.key), one.packed)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return lighter, err
}

// removeLargeParts removes the large parts and reports whether there were any.
func removeLargeParts(t *state.Task) bool {
	changed := len(t.Context.Comments)+len(t.Context.Withheld)+len(t.Context.Existing)+len(t.Feedback) > 0 || t.Work != nil
	t.Context.Comments, t.Context.Withheld, t.Context.Existing = nil, nil, nil
	t.Feedback, t.Work = nil, nil
	for i := range t.Plans {
		p := &t.Plans[i]
		if t.Approval != nil && t.Approval.Hash == p.Hash || p.Text == "" {
			continue
		}
		p.Text, changed = "", true
	}
	return changed
}
