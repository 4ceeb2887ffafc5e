package store

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
)

// A change of a task by any event is visible in the next listing, and an ended task is no longer listed.
func TestOverviews(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	put := func(key state.TaskKey, task state.Task) {
		s.next = func(*state.Task, event.Event, machine.Policy) machine.Change { return machine.Change{Task: &task} }
		s.mustApply(t, spelled(key, ""), Ack{})
	}
	wantOverviews := func(want ...state.TaskOverview) {
		t.Helper()
		got, err := s.Overviews(t.Context())
		if d := cmp.Diff(want, got, cmp.Transformer("empty", func(l []state.TaskOverview) []state.TaskOverview { return append([]state.TaskOverview{}, l...) })); d != "" || err != nil {
			t.Errorf("got error %v, difference (-want +got):\n%s", err, d)
		}
	}
	wantOverviews()
	put(task1, state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseQueued}, TaskIssue: state.TaskIssue{Installation: 5}})
	put(task2, state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseQueued, Waiting: &state.Waiting{Kind: state.WaitBlocked}}, TaskIssue: state.TaskIssue{Installation: 6}})
	wantOverviews(state.TaskOverview{Key: task1, Phase: state.PhaseQueued, Installation: 5}, state.TaskOverview{Key: task2, Phase: state.PhaseQueued, Installation: 6, Waiting: state.WaitBlocked})
	put(task1, state.Task{TaskPhase: state.TaskPhase{Phase: state.PhasePROpen}, TaskIssue: state.TaskIssue{Installation: 5}, TaskChanges: state.TaskChanges{Branch: state.Branch{Name: "errand/1", Head: "c0ffee"}, PR: &state.PR{Number: 9}}, TaskVMs: state.TaskVMs{VM: &state.VM{}}})
	put(task2, state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseQueued, Waiting: &state.Waiting{Kind: state.WaitPermission}}, TaskIssue: state.TaskIssue{Installation: 7}})
	wantOverviews(state.TaskOverview{Key: task1, Phase: state.PhasePROpen, Installation: 5, Branch: "errand/1", Head: "c0ffee", HasPR: true, HasVM: true},
		state.TaskOverview{Key: task2, Phase: state.PhaseQueued, Installation: 7, Waiting: state.WaitPermission})
	put(task1, state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseDone}})
	wantOverviews(state.TaskOverview{Key: task2, Phase: state.PhaseQueued, Installation: 7, Waiting: state.WaitPermission})
}

// listing iterates over the tasks of a test and counts how often each is read.
type listing struct {
	list   []Listed
	reads  map[state.TaskKey]int
	broken map[state.TaskKey]bool
}

var errUnreadable = errors.New("the disk is on fire")

func (l *listing) EachOpen(_ context.Context, fn func(Listed) error) error {
	for _, one := range l.list {
		one.Load = func() (*state.Task, error) {
			l.reads[one.Key]++
			if l.broken[one.Key] {
				return nil, errUnreadable
			}
			return &state.Task{Key: one.Key, Version: int64(one.Stamp)}, nil
		}
		if err := fn(one); err != nil {
			return err
		}
	}
	return nil
}

// A task is read once for each of its states; after an error the next call continues where the last one ended; values
// of ended tasks are dropped.
func TestDigestReadsOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	l := &listing{list: []Listed{{Key: task1, Stamp: 1}, {Key: task2, Stamp: 1}, {Key: task3, Stamp: 1}}, reads: map[state.TaskKey]int{}, broken: map[state.TaskKey]bool{task2: true}}
	d := NewDigest(l, func(t *state.Task) int64 { return t.Version })
	wantOverviews := func(fails error, want []int64, reads map[state.TaskKey]int) {
		t.Helper()
		got, err := d.Open(t.Context())
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, fails) {
			t.Errorf("got error %v, difference (-want +got):\n%s", err, diff)
		}
		if diff := cmp.Diff(reads, l.reads); diff != "" {
			t.Error(diff)
		}
	}
	wantOverviews(errUnreadable, nil, map[state.TaskKey]int{task1: 1, task2: 1})
	delete(l.broken, task2)
	wantOverviews(nil, []int64{1, 1, 1}, map[state.TaskKey]int{task1: 1, task2: 2, task3: 1})
	wantOverviews(nil, []int64{1, 1, 1}, map[state.TaskKey]int{task1: 1, task2: 2, task3: 1})
	l.list[0].Stamp = 2
	l.list = l.list[:2]
	wantOverviews(nil, []int64{2, 1}, map[state.TaskKey]int{task1: 2, task2: 2, task3: 1})
	if len(d.kept) != 2 {
		t.Errorf("got %d cached tasks", len(d.kept))
	}
}
