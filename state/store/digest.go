package store

import (
	"context"
	"sync"

	"github.com/errand-bot/errand/state"
)

// Digest caches a small value per open task, so that a pass over all tasks reads only those that changed since the last
// pass. Its methods may be called concurrently.
type Digest[T any] struct {
	tasks lister
	make  func(*state.Task) T

	mu    sync.Mutex
	round int // the number of the current or last pass
	kept  map[state.TaskKey]kept[T]
}

// lister iterates over the open tasks, like Store.EachOpen.
type lister interface {
	EachOpen(ctx context.Context, fn func(Listed) error) error
}

type kept[T any] struct {
	stamp uint64
	round int // the last pass that found the task
	value T
}

// NewDigest returns a Digest of the open tasks in a store. digest computes the cached value of a task and must not
// retain the task.
func NewDigest[T any](tasks lister, digest func(*state.Task) T) *Digest[T] {
	return &Digest[T]{tasks: tasks, make: digest, kept: map[state.TaskKey]kept[T]{}}
}

// Open returns the cached values of all open tasks, in the order of their keys. After an error the values read so far
// stay cached.
func (d *Digest[T]) Open(ctx context.Context) ([]T, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.round++
	list := make([]T, 0, len(d.kept))
	err := d.tasks.EachOpen(ctx, func(l Listed) error {
		k, ok := d.kept[l.Key]
		if !ok || k.stamp != l.Stamp {
			t, err := l.Load()
			if err != nil {
				return err
			}
			k.stamp, k.value = l.Stamp, d.make(t)
		}
		k.round = d.round
		d.kept[l.Key] = k
		list = append(list, k.value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for key, k := range d.kept {
		if k.round != d.round {
			delete(d.kept, key)
		}
	}
	return list, nil
}

// Overviews returns an overview of every open task, in the order of their keys. It is cheap enough to call for every
// webhook.
func (s *Store) Overviews(ctx context.Context) ([]state.TaskOverview, error) {
	return s.glances.Open(ctx)
}
