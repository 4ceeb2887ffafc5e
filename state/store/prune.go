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

// The bounds of one call of Prune, which takes about a second then, and of one of its updates, which hold others up.
const (
	maxPruned   = 1000
	prunedBatch = 20
)

// Prune takes the heavy parts out of tasks that ended before a time, at most 1000 of them, and returns how many it made
// lighter: the discussion, unanswered feedback, the texts of plans that nobody approved. What was decided, by whom, when, and
// what it cost stays. It changes nothing that an event could turn on, so it needs none. It is meant to be called now and again:
// the index of ended tasks tells which of them are light already, and those are not read again.
func (s *Store) Prune(ctx context.Context, before time.Time) (int, error) {
	pruned, seen := 0, 0
	var batch []pruning
	flush := func() error {
		n, err := s.replace(ctx, batch)
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
		one, err := s.pruning(ctx, key, before) // outside of an update, which would keep others waiting
		if err != nil || one == nil {
			return err
		}
		seen++
		if max(len(one.was), len(one.packed)) > kv.MaxUpdateBytes/prunedBatch { // it has an update of its own
			n, err := s.replace(ctx, []pruning{*one})
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

// pruning is a task that is to become lighter.
type pruning struct {
	key    state.TaskKey
	phase  state.Phase
	was    []byte // as it is stored
	packed []byte // as it will be; nil if nothing has to go
}

// pruning makes a task lighter in memory. It returns nil for one that did not end before the time.
func (s *Store) pruning(ctx context.Context, key state.TaskKey, before time.Time) (*pruning, error) {
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
	if lighten(&task) {
		one.packed, err = s.codec.EncodeJSON(taskKey(key), &task)
	}
	return one, err
}

// replace stores tasks that were made lighter, and marks them as light. Those that were changed meanwhile stay as they are.
func (s *Store) replace(ctx context.Context, list []pruning) (lighter int, err error) {
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

// lighten removes the heavy parts and reports whether there were any.
func lighten(t *state.Task) bool {
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
