package state

import (
	"context"
	"fmt"
	"time"

	"github.com/errand-bot/errand/state/kv"
)

// Prune takes the heavy parts out of the tasks that ended before a time and returns how many it made
// lighter: the discussion, unanswered feedback, the texts of plans that nobody approved. What was
// decided, by whom, when, and what it cost stays. It changes nothing that an event could turn on, so
// it needs none; it may be called as often as one likes.
func (s *Store) Prune(ctx context.Context, before time.Time) (int, error) {
	pruned := 0
	err := s.db.Scan(ctx, preEnded, "", 0, func(p kv.Pair) error {
		key, err := ParseTaskKey(p.Key[len(preEnded):])
		if err != nil {
			return err
		}
		lighter := false
		err = s.update(ctx, "prune task", func(tx kv.Tx) error {
			task, err := s.getTask(tx, key)
			if err != nil || task == nil {
				return err
			}
			lighter = task.Ended() && task.Since.Before(before) && task.lighten()
			if !lighter {
				return nil
			}
			return s.packer.putJSON(tx, taskKey(key), task)
		})
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
