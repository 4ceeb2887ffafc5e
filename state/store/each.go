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

// Listed is an open task as EachOpen came upon it.
type Listed struct {
	Key   state.TaskKey
	Phase state.Phase
	// Stamp is another one after every change of the task, within one process: who keeps what it made of
	// a task need not read the task again while the stamp is the same.
	Stamp uint64
	// Load reads the task as it was then.
	Load func() (*state.Task, error)
}

// eachPage is how many tasks EachOpen holds at once.
const eachPage = 128

// EachOpen calls fn for every task that has not ended, in the order of their keys, without ever having
// all of them in memory. fn may take its time and may call the store; tasks that come or go meanwhile
// may be missed. An error of fn ends it.
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

// openPage reads some tasks of one moment, and where the next page begins, empty at the end.
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
			page = append(page, Listed{Key: key, Phase: phaseOf(p.Value), Stamp: maphash.Bytes(s.seed, data), Load: func() (*state.Task, error) {
				var t state.Task
				return &t, s.codec.DecodeUncached(taskKey(key), data, &t)
			}})
		}
		if len(pairs) == eachPage {
			next = kv.After(pairs[len(pairs)-1].Key)
		}
		return nil
	})
	return page, next, err
}

// lightMark follows the phase in the index of ended tasks when their heavy parts are gone.
const lightMark = " light"

// phaseOf is the phase in a value of an index.
func phaseOf(value []byte) state.Phase {
	return state.Phase(bytes.TrimSuffix(value, []byte(lightMark)))
}
