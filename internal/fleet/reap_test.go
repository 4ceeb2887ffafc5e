package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// reap plans and acts. It returns the deleted items as "kind id".
func reap(t *testing.T, f *fleet.Fleet, opts fleet.ReapOptions) string {
	t.Helper()
	plan, err := f.ReapPlan(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := f.Reap(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, item := range gone {
		if item.Explanation == "" || !slices.Contains(fleet.Reasons(), item.Reason) {
			t.Errorf("%s %s is deleted without a reason", item.Kind, item.ID)
		}
		out = append(out, item.Kind+" "+item.ID)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// createUnmanagedVM creates a VM at the provider that the store does not know.
func createUnmanagedVM(m *memory, c *clock, name string, labels map[string]string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.vms[name] = fleet.VM{Name: name, State: fleet.StateRunning, CreatedAt: c.now(), Labels: labels}
	return name
}

func TestReapOrphanVM(t *testing.T) {
	t.Parallel()
	f, m, c := newFleet(t, 3)
	acquire(t, f, "ours", 1)
	orphan := createUnmanagedVM(m, c, "orphan", nil)
	steps := []struct {
		what  string
		after time.Duration
		want  string
	}{
		{"too young", 14 * time.Minute, ""},
		{"first sighting", time.Minute, ""},
		{"nearly", 15*time.Minute - time.Second, ""},
		{"due", time.Second, "vm " + orphan},
		{"gone", time.Hour, ""},
	}
	for _, step := range steps {
		c.pass(step.after)
		if got := reap(t, f, fleet.ReapOptions{}); got != step.want {
			t.Errorf("%s: reaped %q, want %q", step.what, got, step.want)
		}
	}
	if m.reasons[orphan] != fleet.ReasonOrphan || len(m.vms) != 1 {
		t.Errorf("got reason %q, %d remaining VMs", m.reasons[orphan], len(m.vms))
	}
}

func TestReapNeedsTwoSightings(t *testing.T) {
	t.Parallel()
	f, m, c := newFleet(t, 3)
	acquire(t, f, "ours", 1)
	name := createUnmanagedVM(m, c, "orphan", nil)
	c.pass(24 * time.Hour)
	if got := reap(t, f, fleet.ReapOptions{}); got != "" {
		t.Errorf("got reaped items %q at first sight", got)
	}
	m.mu.Lock()
	vm := m.vms[name]
	delete(m.vms, name)
	m.mu.Unlock()
	c.pass(15 * time.Minute)
	reap(t, f, fleet.ReapOptions{}) // it is not seen: a later VM of that name counts as new
	m.mu.Lock()
	m.vms[name] = vm
	m.mu.Unlock()
	c.pass(15 * time.Minute)
	if got := reap(t, f, fleet.ReapOptions{}); got != "" {
		t.Errorf("got reaped items %q at first sight", got)
	}
	if got := reap(t, f, fleet.ReapOptions{Reviewed: true}); got != "vm "+name {
		t.Errorf("after a confirmation: got reaped items %q", got)
	}
}

func TestReapIgnoresIncompleteLists(t *testing.T) {
	t.Parallel()
	f, m, c := newFleet(t, 3)
	acquire(t, f, "ours", 1)
	createUnmanagedVM(m, c, "orphan", nil)
	c.pass(time.Hour)
	m.listErr = fmt.Errorf("%w: page 2 is missing", fleet.ErrUnauthorized)
	plan, err := f.ReapPlan(t.Context(), fleet.ReapOptions{All: true})
	if err != nil || !errors.Is(plan.Unlisted[fleet.ReapVM], fleet.ErrUnauthorized) {
		t.Errorf("got unlisted kinds %v, error %v", plan.Unlisted, err)
	}
	if gone, err := f.Reap(t.Context(), plan); err != nil || len(gone) != 0 || len(m.vms) != 2 {
		t.Error("something was deleted")
	}
}

func TestReapRetriesFailedDeletions(t *testing.T) {
	t.Parallel()
	f, m, c := newFleet(t, 3)
	acquire(t, f, "ours", 1)
	name := createUnmanagedVM(m, c, "orphan", nil)
	c.pass(time.Hour)
	m.delErr = errors.New("locked")
	plan, err := f.ReapPlan(t.Context(), fleet.ReapOptions{Reviewed: true})
	if err != nil {
		t.Fatal(err)
	}
	if gone, err := f.Reap(t.Context(), plan); !errors.Is(err, m.delErr) || len(gone) != 0 {
		t.Errorf("got deleted items %v, error %v", gone, err)
	}
	m.delErr = nil
	if got := reap(t, f, fleet.ReapOptions{Reviewed: true}); got != "vm "+name {
		t.Errorf("got reaped items %q", got)
	}
}

// TestReapAfterALostStore: nothing is deleted with a store that may have lost rows.
func TestReapAfterALostStore(t *testing.T) {
	t.Parallel()
	f, m, c := newFleet(t, 3)
	old := createUnmanagedVM(m, c, "old", nil)
	c.pass(time.Hour)
	for range 3 {
		c.pass(time.Hour)
		if got := reap(t, f, fleet.ReapOptions{}); got != "" {
			t.Errorf("empty store: got reaped items %q", got)
		}
	}
	acquire(t, f, "new", 1)
	for range 3 {
		c.pass(time.Hour)
		if got := reap(t, f, fleet.ReapOptions{}); got != "" {
			t.Errorf("new store: got reaped items %q", got)
		}
	}
	if alarms := f.Alarms(); len(alarms) != 1 || alarms[0].Name != old || !strings.Contains(alarms[0].Explanation, "--all") {
		t.Errorf("got alarms %+v", alarms)
	}
	if got := reap(t, f, fleet.ReapOptions{All: true}); got != "vm "+old {
		t.Errorf("got reaped items %q", got)
	}
}

func TestReapIsBounded(t *testing.T) {
	t.Parallel()
	f, m, c := newFleet(t, 3)
	acquire(t, f, "ours", 1)
	for i := range 8 {
		createUnmanagedVM(m, c, fmt.Sprint("orphan", i), nil)
	}
	c.pass(time.Hour)
	reap(t, f, fleet.ReapOptions{})
	c.pass(time.Hour)
	if got := reap(t, f, fleet.ReapOptions{}); strings.Count(got, "vm") != 5 {
		t.Errorf("got reaped items %q immediately", got)
	}
	if alarms := f.Alarms(); len(alarms) != 1 || alarms[0].ID != "many" {
		t.Errorf("got alarms %+v", alarms)
	}
	if got := reap(t, f, fleet.ReapOptions{}); strings.Count(got, "vm") != 3 {
		t.Errorf("then got reaped items %q", got)
	}
}

func TestReapVMsPastTheirTime(t *testing.T) {
	t.Parallel()
	f, m, c := newFleet(t, 3)
	acquire(t, f, "ours", 1)
	createUnmanagedVM(m, c, "late", map[string]string{fleet.LabelNotAfter: fmt.Sprint(c.now().Add(time.Minute).Unix())})
	createUnmanagedVM(m, c, "odd", map[string]string{fleet.LabelNotAfter: "soon"})
	c.pass(2 * time.Minute)
	if got := reap(t, f, fleet.ReapOptions{Reviewed: true}); got != "vm late" {
		t.Errorf("got reaped items %q", got)
	}
}

// newTaskFleet returns a fleet with a store in which the test can set a task.
func newTaskFleet(t *testing.T) (*fleet.Fleet, *memory, *clock, *tasks) {
	t.Helper()
	c := newClock()
	m := newMemory(c.now)
	s := &tasks{Store: newStore(t, c.now)}
	f := fleet.New(m, fleet.Config{Deployment: "demo", Rows: s.VMs, Store: s, Now: c.now, Sleep: c.sleep})
	t.Cleanup(f.Close)
	return f, m, c, s
}

// tasks is a store whose only task is set by the test.
type tasks struct {
	*store.Store
	task *state.Task
}

func (s *tasks) Task(context.Context, state.TaskKey) (*state.Task, error) { return s.task, nil }

func TestReapRows(t *testing.T) {
	t.Parallel()
	key := state.TaskKey{Repo: 5, Issue: 7}
	name := fleet.VMName("demo", "5-7", 1)
	mine := &state.VM{Name: name}
	tests := map[string]struct {
		task *state.Task
		work vm.EventKind
		why  fleet.Reason // empty: it is kept
	}{
		"its task has it":              {&state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}, TaskVMs: state.TaskVMs{VM: mine}}, "", ""},
		"its task is parked":           {&state.Task{TaskPhase: state.TaskPhase{Phase: state.PhasePROpen}, TaskVMs: state.TaskVMs{VM: mine}}, vm.Rest, ""},
		"its launch is active":         {&state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}, TaskRuns: state.TaskRuns{Run: &state.Run{}}}, "", ""},
		"its launch waits":             {&state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing, Waiting: &state.Waiting{}}}, "", ""},
		"its launch was paused":        {&state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing, Waiting: state.Pause{}.Waiting()}, TaskRuns: state.TaskRuns{Run: &state.Run{}}}, "", fleet.ReasonOrphan},
		"its VM was idle at the pause": {&state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing, Waiting: state.Pause{}.Waiting()}, TaskVMs: state.TaskVMs{VM: mine}}, vm.Rest, ""},
		"no task":                      {nil, "", fleet.ReasonOrphan},
		"its task is done":             {&state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseDone}, TaskVMs: state.TaskVMs{VM: mine}}, "", fleet.ReasonDone},
		"its task was canceled":        {&state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseCancelled}}, "", fleet.ReasonCancelled},
		"its task has another VM":      {&state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}, TaskVMs: state.TaskVMs{VM: &state.VM{Name: "other"}}}, vm.Work, fleet.ReasonOrphan},
		"its task gave up the launch":  {&state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseFailed}}, "", fleet.ReasonOrphan},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f, m, c, s := newTaskFleet(t)
			if _, err := f.Acquire(t.Context(), fleet.AcquireSpec{Task: key}); err != nil {
				t.Fatal(err)
			}
			s.task = test.task
			if test.work != "" {
				if _, _, err := s.VMs.Apply(t.Context(), name, vm.Event{Kind: test.work}); err != nil {
					t.Fatal(err)
				}
			}
			for range 5 {
				c.pass(10 * time.Minute)
				reap(t, f, fleet.ReapOptions{})
			}
			if m.reasons[name] != test.why {
				t.Errorf("ended as %q, want %q", m.reasons[name], test.why)
			}
		})
	}
}

// TestReapLiveVMOfAnEndedRow: a VM that still exists although its row is gone or suspended as an image is deleted; its
// row stays unchanged.
func TestReapLiveVMOfAnEndedRow(t *testing.T) {
	t.Parallel()
	for name, sleeps := range map[string]bool{"gone": false, "asleep": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s, c, store := newShopFleet(t, nil)
			vm := get(t, f, fleet.AcquireSpec{Task: shopTask})
			was, why := s.vms[vm.Name], fleet.ReasonDone
			if sleeps {
				why = fleet.ReasonAsleep
				if _, err := f.Snapshot(t.Context(), vm.Name); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Release(t.Context(), vm.Name, why); err != nil {
				t.Fatal(err)
			}
			before := rowOf(t, store, vm.Name)
			s.vms[vm.Name] = was // it was never deleted
			for range 8 {
				c.pass(5 * time.Minute)
				plan, err := f.ReapPlan(t.Context(), fleet.ReapOptions{})
				if err != nil {
					t.Fatal(err)
				}
				plan.Delete = slices.DeleteFunc(plan.Delete, func(i fleet.ReapItem) bool { return i.Kind != fleet.ReapVM })
				if _, err := f.Reap(t.Context(), plan); err != nil {
					t.Fatal(err)
				}
			}
			if _, there := s.vms[vm.Name]; there {
				t.Error("the VM still exists")
			}
			if after := rowOf(t, store, vm.Name); after.Phase != before.Phase || after.Snapshot != before.Snapshot || len(s.images) != map[bool]int{true: 1}[sleeps] {
				t.Errorf("got row %+[2]v, want %+[1]v", before, after)
			}
		})
	}
}
