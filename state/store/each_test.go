package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
)

// Every open task is listed once, whatever the number of pages; a stamp is the same while its task does not change.
func TestEachOpen(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	const many = eachPage + 3
	for i := range many {
		s.mustApply(t, spelled(state.TaskKey{Repo: 7, Issue: 1000 + i}, "body=1"), Ack{})
	}
	s.mustApply(t, spelled(state.TaskKey{Repo: 7, Issue: 999}, "phase="+string(state.PhaseDone)), Ack{})
	listStamps := func() map[state.TaskKey]uint64 {
		t.Helper()
		stamps := map[state.TaskKey]uint64{}
		var last state.TaskKey
		err := s.EachOpen(t.Context(), func(l Listed) error {
			task, err := l.Load()
			if err != nil || task.Key != l.Key || task.Phase != l.Phase || l.Key.Issue <= last.Issue {
				return fmt.Errorf("listed %+v after %s, loaded %v: %w", l, last, task, err)
			}
			stamps[l.Key], last = l.Stamp, l.Key
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return stamps
	}
	first := listStamps()
	if len(first) != many {
		t.Fatalf("got %d tasks, want %d", len(first), many)
	}
	changed := state.TaskKey{Repo: 7, Issue: 1000 + eachPage}
	s.mustApply(t, spelled(changed, "body=10"), Ack{})
	for key, stamp := range listStamps() {
		if same := stamp == first[key]; same == (key == changed) {
			t.Errorf("task %s: got an equal stamp: %t", key, same)
		}
	}
	enough := errors.New("enough")
	if err := s.EachOpen(t.Context(), func(Listed) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got error %v", err)
	}
}

// The index marks pruned tasks, which are not read again, and still contains the phases.
func TestPruneReadsLightTasksOnce(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.mustApply(t, spelled(task1, "phase="+string(state.PhaseDone)), Ack{})
	s.advance(time.Hour)
	if _, err := s.Prune(t.Context(), s.time()); err != nil {
		t.Fatal(err)
	}
	err := s.db.View(t.Context(), func(r kv.Reader) error {
		value, err := r.Get(preEnded + task1.String())
		if string(value) != string(state.PhaseDone)+lightMark {
			t.Errorf("got index value %q", value)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	counts, err := s.Counts(t.Context())
	if err != nil || counts[state.PhaseDone] != 1 || len(counts) != 1 {
		t.Errorf("got counts %v, error %v", counts, err)
	}
	if list, err := s.TasksIn(t.Context(), state.PhaseDone); err != nil || len(list) != 1 {
		t.Errorf("got %d tasks that are done, error %v", len(list), err)
	}
	s.mustApply(t, spelled(task1, "phase="+string(state.PhaseQueued)), Ack{}) // a new life begins, and ends
	s.mustApply(t, spelled(task1, "phase="+string(state.PhaseDone)), Ack{})
	if list, err := s.TasksIn(t.Context(), state.PhaseDone); err != nil || len(list) != 1 {
		t.Errorf("got %d tasks that are done the second time, error %v", len(list), err)
	}
}
