package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/blob"
)

// Task returns a task, or nil if there is none.
func (s *Store) Task(ctx context.Context, key state.TaskKey) (*state.Task, error) {
	var task *state.Task
	err := s.db.View(ctx, func(r kv.Reader) (err error) {
		task, err = s.getTask(r, key)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read task %s: %w", key, err)
	}
	return task, nil
}

// TasksIn returns the tasks in any of the phases. It reads no others.
func (s *Store) TasksIn(ctx context.Context, phases ...state.Phase) ([]*state.Task, error) {
	prefixes := map[string]bool{}
	for _, p := range phases {
		prefixes[indexOf(p)] = true
	}
	var tasks []*state.Task
	for _, prefix := range []string{preOpen, preEnded} {
		if !prefixes[prefix] {
			continue
		}
		some, err := s.listIndexed(ctx, prefix, phases)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, some...)
	}
	return tasks, nil
}

func indexOf(p state.Phase) string {
	if p.Terminal() {
		return preEnded
	}
	return preOpen
}

// listIndexed returns the tasks of an index that are in any of the phases, as of one moment.
func (s *Store) listIndexed(ctx context.Context, prefix string, phases []state.Phase) ([]*state.Task, error) {
	var tasks []*state.Task
	err := s.db.View(ctx, func(r kv.Reader) error {
		tasks = nil
		pairs, err := r.Range(prefix, "", 0)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			if !slices.Contains(phases, phaseOf(p.Value)) {
				continue
			}
			key, err := state.ParseTaskKey(p.Key[len(prefix):])
			if err != nil {
				return err
			}
			task, err := s.getTask(r, key)
			if err != nil {
				return err
			}
			if task == nil {
				return fmt.Errorf("task %s is listed but not stored", key)
			}
			tasks = append(tasks, task)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	return tasks, nil
}

// OutOfReach returns the tasks that ended because errand lost access. It reads all tasks.
func (s *Store) OutOfReach(ctx context.Context) ([]*state.Task, error) {
	var list []*state.Task
	for after := (state.TaskKey{}); ; {
		tasks, err := s.AllTasks(ctx, after, 200)
		if err != nil || len(tasks) == 0 {
			return list, err
		}
		for _, t := range tasks {
			if t.Ended() && t.End != nil && t.End.Class == state.ClassAccess {
				list = append(list, t)
			}
		}
		after = tasks[len(tasks)-1].Key
	}
}

// AllTasks returns at most limit tasks, including ended ones, in the order of their keys' text, starting after the
// given key (the zero key for the first page).
func (s *Store) AllTasks(ctx context.Context, after state.TaskKey, limit int) ([]*state.Task, error) {
	from := ""
	if !after.IsZero() {
		from = kv.After(taskKey(after))
	}
	var tasks []*state.Task
	err := s.db.View(ctx, func(r kv.Reader) error {
		tasks = nil
		pairs, err := r.Range(preTask, from, limit)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			var task state.Task
			data, err := blob.Join(r, p.Key, p.Value)
			if err == nil {
				err = s.codec.DecodeUncached(p.Key, data, &task)
			}
			if err != nil {
				return err
			}
			tasks = append(tasks, &task)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	return tasks, nil
}

// TaskByPR returns the task with this pull request, or nil if there is none.
func (s *Store) TaskByPR(ctx context.Context, repo int64, number int) (*state.Task, error) {
	var task *state.Task
	err := s.db.View(ctx, func(r kv.Reader) error {
		task = nil
		text, err := r.Get(prKey(repo, number))
		if errors.Is(err, kv.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		key, err := state.ParseTaskKey(string(text))
		if err != nil {
			return err
		}
		task, err = s.getTask(r, key)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read task of pull request %d: %w", number, err)
	}
	return task, nil
}

// Counts returns the number of tasks in each phase that has any.
func (s *Store) Counts(ctx context.Context) (map[state.Phase]int, error) {
	counts := map[state.Phase]int{}
	for _, prefix := range []string{preOpen, preEnded} {
		err := s.db.Scan(ctx, prefix, "", 0, func(p kv.Pair) error {
			counts[phaseOf(p.Value)]++
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("count tasks: %w", err)
		}
	}
	return counts, nil
}
