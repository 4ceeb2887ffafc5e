package state

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/errand-bot/errand/state/kv"
)

// Prune takes the heavy parts out of the tasks that ended before a time and returns how many it made
// lighter: the discussion, unanswered feedback, the texts of plans that nobody approved. What was
// decided, by whom, when, and what it cost stays. It changes nothing that an event could turn on, so
// it needs none; it may be called as often as one likes: the index of ended tasks tells which of them
// are light already, and those are not read again.
func (s *Store) Prune(ctx context.Context, before time.Time) (int, error) {
	pruned := 0
	err := s.db.Scan(ctx, preEnded, "", 0, func(p kv.Pair) error {
		if bytes.HasSuffix(p.Value, []byte(lightMark)) {
			return nil
		}
		key, err := ParseTaskKey(p.Key[len(preEnded):])
		if err != nil {
			return err
		}
		task, err := s.Task(ctx, key) // outside of an update, which would keep others waiting
		if err != nil || task == nil || !task.prunable(before) {
			return err
		}
		lighter, err := s.pruneTask(ctx, key, before)
		if lighter && err == nil {
			pruned++
		}
		return err
	})
	if err != nil {
		return pruned, fmt.Errorf("prune tasks: %w", err)
	}
	return pruned, nil
}

func (t *Task) prunable(before time.Time) bool { return t.Ended() && t.Since.Before(before) }

// pruneTask makes one task lighter, and marks it as light in any case.
func (s *Store) pruneTask(ctx context.Context, key TaskKey, before time.Time) (lighter bool, err error) {
	err = s.update(ctx, "prune task", func(tx kv.Tx) error {
		lighter = false
		task, err := s.getTask(tx, key)
		if err != nil || task == nil || !task.prunable(before) {
			return err
		}
		if err := tx.Put(preEnded+key.String(), []byte(string(task.Phase)+lightMark)); err != nil {
			return err
		}
		if lighter = task.lighten(); !lighter {
			return nil
		}
		return s.packer.putJSON(tx, taskKey(key), task)
	})
	return lighter, err
}

// lighten removes the heavy parts and reports whether there were any.
func (t *Task) lighten() bool {
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
