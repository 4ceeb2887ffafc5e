package vm

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
)

// Each of several caps is effective, whichever is reached first, and the use of one task does not count for another.
func TestTheSecondCapOnVMsBinds(t *testing.T) {
	t.Parallel()
	other := state.TaskKey{Repo: 5, Issue: 8}
	for name, c := range map[string]struct {
		caps Caps
		task state.TaskKey
		want string
	}{
		"the day, though the month has some left":      {Caps{MicroDay: 2 * euros, MicroMonth: 100 * euros}, other, LimitVMsDay},
		"the month, though the day has some left":      {Caps{MicroDay: 100 * euros, MicroMonth: 2 * euros}, other, LimitVMsMonth},
		"the task, though day and month have":          {Caps{PerTask: time.Hour, MicroDay: 100 * euros, MicroMonth: 100 * euros}, firstTask, LimitVMHours},
		"not another task's":                           {Caps{PerTask: time.Hour, MicroDay: 100 * euros, MicroMonth: 100 * euros}, state.TaskKey{Repo: 6, Issue: 7}, ""},
		"the number, though money is left":             {Caps{VMs: 2, MicroDay: 100 * euros, MicroMonth: 100 * euros}, other, LimitVMs},
		"those made in an hour, though places are":     {Caps{VMs: 100, PerHour: 2, MicroDay: 100 * euros}, other, LimitVMCreates},
		"money, though places are left":                {Caps{VMs: 100, PerHour: 100, MicroDay: 2 * euros}, other, LimitVMsDay},
		"the task, though it is not the only one":      {Caps{VMs: 100, PerTask: time.Hour}, other, LimitVMHours},
		"none: there is room under every one of them":  {Caps{VMs: 3, PerHour: 3, PerTask: 2 * time.Hour, MicroDay: 3 * euros, MicroMonth: 3 * euros}, firstTask, ""},
		"the month, though the day's is not set":       {Caps{MicroMonth: 2 * euros}, firstTask, LimitVMsMonth},
		"the task, though it asks for another's place": {Caps{VMs: 3, PerTask: time.Hour, MicroMonth: 3 * euros}, firstTask, LimitVMHours},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestRows(t)
			s.bring(t, "a", firstTask, Caps{})
			s.bring(t, "b", other, Caps{})
			if c.want != "" {
				s.refuses(t, cloudIntent("c", c.task), c.caps, c.want)
				return
			}
			s.intend(t, cloudIntent("c", c.task), c.caps)
		})
	}
}

// Each task's VMs are on its own bill, open or closed; all are on the day's bill.
func TestBillsOfTwoTasks(t *testing.T) {
	t.Parallel()
	s := newTestRows(t)
	other := state.TaskKey{Repo: 5, Issue: 8}
	s.bring(t, "a", firstTask, Caps{})
	s.bring(t, "b", other, Caps{})
	s.bring(t, "c", other, Caps{})
	s.advance(61 * time.Minute)
	s.drop(t, "b")
	got := map[state.TaskKey]int64{}
	for _, task := range []state.TaskKey{firstTask, other, {Repo: 6, Issue: 7}} {
		bill, err := billOf(t.Context(), s.Rows, task, s.time())
		if err != nil {
			t.Fatal(err)
		}
		got[task] = bill.Spans
	}
	if diff := cmp.Diff(map[state.TaskKey]int64{firstTask: 2, other: 4, {Repo: 6, Issue: 7}: 0}, got); diff != "" {
		t.Errorf("spans of each task (-want +got):\n%s", diff)
	}
	if day, _, err := s.Spent(t.Context(), s.time()); err != nil || day.Spans != 6 {
		t.Errorf("got %d spans of all tasks (error %v), want 6", day.Spans, err)
	}
	row, err := s.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	var refused *LimitError
	if err := s.SpanAllowed(t.Context(), row, Caps{PerTask: 3 * time.Hour, MicroDay: 6 * euros}); !errors.As(err, &refused) || refused.Limit != LimitVMsDay {
		t.Errorf("a third hour of the first task, which would be the seventh of the day: %v", err)
	}
}
