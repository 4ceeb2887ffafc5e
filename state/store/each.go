package store

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/blob"
)

// Listed is an open task found by EachOpen.
type Listed struct {
	Key   state.TaskKey
	Phase state.Phase
	// Stamp changes with every change of the task, within one process: values derived from the task are valid while the
	// stamp is the same.
	Stamp uint64
	// Load decodes the task as it was when it was listed.
	Load func() (*state.Task, error)
}

// eachPage is the number of tasks that EachOpen reads at once.
const eachPage = 128

// EachOpen calls fn for every task that has not ended, in the order of their keys, without holding all of them in
// memory. fn may be slow and may call the store. Tasks that are created or that end during the call may be missed. An
// error of fn ends the iteration and is returned.
func (s *Store) EachOpen(ctx context.Context, fn func(Listed) error) error {
	from := ""
	for {
		page, next, err := s.openPage(ctx, from)
		if err != nil {
			return fmt.Errorf("read tasks: %w", err)
		}
		for _, l := range page {
			if err := fn(l); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		from = next
	}
}

// openPage reads one page of tasks at one moment, and returns the start of the next page, empty at the end.
func (s *Store) openPage(ctx context.Context, from string) (page []Listed, next string, err error) {
	err = s.db.View(ctx, func(r kv.Reader) error {
		page, next = nil, ""
		pairs, err := r.Range(preOpen, from, eachPage)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			key, err := state.ParseTaskKey(p.Key[len(preOpen):])
			if err != nil {
				return err
			}
			data, err := blob.Get(r, taskKey(key))
			if err != nil {
				return fmt.Errorf("task %s is listed: %w", key, err)
			}
			load := func() (*state.Task, error) {
				var t state.Task
				return &t, s.codec.DecodeUncached(taskKey(key), data, &t)
			}
			page = append(page, Listed{Key: key, Phase: phaseOf(p.Value), Stamp: maphash.Bytes(s.seed, data), Load: load})
		}
		if len(pairs) == eachPage {
			next = kv.After(pairs[len(pairs)-1].Key)
		}
		return nil
	})
	return page, next, err
}

// lightMark follows the phase in the index of ended tasks whose large parts have been removed.
const lightMark = " light"

// phaseOf returns the phase in a value of an index.
func phaseOf(value []byte) state.Phase {
	return state.Phase(bytes.TrimSuffix(value, []byte(lightMark)))
}
