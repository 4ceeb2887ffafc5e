package state

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state/kv"
)

// euros is a price of an hour for tests.
const euros = 100_000

func cloudIntent(name string, task TaskKey) VMIntent {
	return VMIntent{Name: name, Task: task, Owner: "o", Provider: "p", MicroHour: euros, Currency: "EUR", Paid: time.Hour, Repo: task.Repo}
}

func (s *testStore) intend(t *testing.T, in VMIntent, caps VMCaps) VMRow {
	t.Helper()
	row, err := s.VMs.Intend(context.Background(), in, caps)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func (s *testStore) vmEvent(t *testing.T, name string, e VMEvent) VMRow {
	t.Helper()
	if e.Kind == VMMade && e.CreatedAt.IsZero() {
		e.CreatedAt, e.MicroHour, e.Currency, e.Paid = s.time(), euros, "EUR", time.Hour
	}
	row, changed, err := s.VMs.Apply(context.Background(), name, e)
	if err != nil || !changed {
		t.Fatalf("%s to %s (%s): changed %v, %v", e.Kind, name, row.Phase, changed, err)
	}
	return row
}

// bring makes a VM that can be used.
func (s *testStore) bring(t *testing.T, name string, task TaskKey, caps VMCaps) {
	t.Helper()
	s.intend(t, cloudIntent(name, task), caps)
	s.vmEvent(t, name, VMEvent{Kind: VMMade, ID: name, Usable: true})
}

func (s *testStore) drop(t *testing.T, name string) {
	t.Helper()
	s.vmEvent(t, name, VMEvent{Kind: VMEnd, Why: "done"})
	s.vmEvent(t, name, VMEvent{Kind: VMDeleted})
}

func (s *testStore) refuses(t *testing.T, in VMIntent, caps VMCaps, limit string) *VMLimitError {
	t.Helper()
	_, err := s.VMs.Intend(context.Background(), in, caps)
	var refused *VMLimitError
	if !errors.As(err, &refused) || refused.Limit != limit || refused.Hint() == "" || refused.Reason == "" {
		t.Fatalf("intent %s: %v, want the limit %s", in.Name, err, limit)
	}
	if _, err := s.VMs.Get(context.Background(), in.Name); !errors.Is(err, ErrNoVMRow) {
		t.Errorf("a refused intent left a row: %v", err)
	}
	return refused
}

var vmTask = TaskKey{Repo: 5, Issue: 7}

func TestIntendVMTwice(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	first := s.intend(t, cloudIntent("a", vmTask), VMCaps{VMs: 1})
	s.reopen(t)
	if second := s.intend(t, cloudIntent("a", vmTask), VMCaps{VMs: 1}); !cmp.Equal(first, second) {
		t.Errorf("the second intent differs:\n%s", cmp.Diff(first, second))
	}
	s.drop(t, "a")
	if _, err := s.VMs.Intend(context.Background(), cloudIntent("a", vmTask), VMCaps{}); !errors.Is(err, ErrVMOver) {
		t.Errorf("a name is used again: %v", err)
	}
	if _, _, err := s.VMs.Apply(context.Background(), "b", VMEvent{Kind: VMUp}); !errors.Is(err, ErrNoVMRow) {
		t.Errorf("an event of an unknown VM: %v", err)
	}
}

func TestCapOnVMs(t *testing.T) {
	t.Parallel()
	s, caps := newTestStore(t), VMCaps{VMs: 2}
	s.bring(t, "a", vmTask, caps)
	s.intend(t, cloudIntent("b", vmTask), caps)
	if got := s.refuses(t, cloudIntent("c", vmTask), caps, LimitVMs); got.Reason != "2 of 2 VMs are in use" {
		t.Errorf("the reason is %q", got.Reason)
	}
	s.vmEvent(t, "a", VMEvent{Kind: VMEnd, Why: "done"})
	s.refuses(t, cloudIntent("c", vmTask), caps, LimitVMs) // it is paid for, and counts in the account's limit, until it is gone
	s.vmEvent(t, "a", VMEvent{Kind: VMDeleted})
	s.intend(t, VMIntent{Name: "free", Owner: "x"}, caps)
	s.refuses(t, VMIntent{Name: "free2", Owner: "x"}, caps, LimitVMs)
	s.vmEvent(t, "free", VMEvent{Kind: VMFail, Why: "crashed"}) // what is left of a box takes no place
	s.intend(t, VMIntent{Name: "free2", Owner: "x"}, caps)
}

func TestCapOnIntents(t *testing.T) {
	t.Parallel()
	s, caps := newTestStore(t), VMCaps{PerHour: 3}
	for i := range 3 {
		s.bring(t, fmt.Sprint(i), vmTask, caps)
		s.drop(t, fmt.Sprint(i))
		s.advance(10 * time.Minute)
	}
	if got := s.refuses(t, cloudIntent("x", vmTask), caps, LimitVMMakes); !got.Until.Equal(testStart.Add(time.Hour)) {
		t.Errorf("it ends at %s", got.Until)
	}
	s.intend(t, VMIntent{Name: "free", Owner: "x"}, caps)
	s.advance(30 * time.Minute)
	s.intend(t, cloudIntent("x", vmTask), caps)
}

func TestCapOnTaskHours(t *testing.T) {
	t.Parallel()
	s, caps := newTestStore(t), VMCaps{PerTask: 3 * time.Hour}
	s.bring(t, "a", vmTask, caps)
	s.advance(61 * time.Minute)
	s.drop(t, "a")
	s.bring(t, "b", vmTask, caps)
	s.refuses(t, cloudIntent("c", vmTask), caps, LimitVMHours)
	s.intend(t, cloudIntent("other", TaskKey{Repo: 5, Issue: 8}), caps)
	row, err := s.VMs.Get(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	var refused *VMLimitError
	if err := s.VMs.SpanAllowed(t.Context(), row, caps); !errors.As(err, &refused) || refused.Limit != LimitVMHours {
		t.Errorf("a fourth hour: %v", err)
	}
	if err := s.VMs.SpanAllowed(t.Context(), row, VMCaps{PerTask: 4 * time.Hour}); err != nil {
		t.Errorf("with a higher cap: %v", err)
	}
	bill, err := s.VMs.TaskBill(t.Context(), vmTask, s.time())
	want := VMBill{VMs: 2, Spans: 3, Time: 3 * time.Hour, Micro: 3 * euros, Currency: "EUR"}
	bill.Currency = "EUR"
	if err != nil || bill != want {
		t.Errorf("the bill is %+v, %v", bill, err)
	}
}

func TestCapOnMoney(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	day, month := VMCaps{MicroDay: 3 * euros}, VMCaps{MicroMonth: 5 * euros}
	s.bring(t, "a", vmTask, day)
	s.advance(59 * time.Minute)
	s.drop(t, "a")
	s.bring(t, "b", vmTask, day)                      // a second hour has begun
	s.intend(t, cloudIntent("reserved", vmTask), day) // and a third is reserved
	if got := s.refuses(t, cloudIntent("c", vmTask), day, LimitVMsDay); !got.Until.Equal(time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("it ends at %s", got.Until)
	}
	s.drop(t, "reserved") // was never made
	s.advance(24*time.Hour - 2*time.Minute)
	gotDay, gotMonth, err := s.VMs.Spent(t.Context(), s.time())
	if err != nil || gotDay.Spans != 9 || gotMonth.Spans != 25 {
		t.Errorf("spent %+v, %+v, %v", gotDay, gotMonth, err)
	}
	s.drop(t, "b")
	s.refuses(t, cloudIntent("c", vmTask), month, LimitVMsMonth)
	s.advance(31 * 24 * time.Hour)
	s.intend(t, cloudIntent("c", vmTask), month)
	closedDay, closedMonth, err := s.VMs.Spent(t.Context(), testStart.AddDate(0, 0, 1))
	closedMonth.VMs, gotMonth.VMs, gotDay.VMs, closedDay.VMs = 0, 0, 0, 0
	if diff := cmp.Diff([]VMBill{gotDay, gotMonth}, []VMBill{closedDay, closedMonth}); err != nil || diff != "" {
		t.Errorf("%v; closing the bill changed it (-before +after):\n%s", err, diff)
	}
}

// TestHeir lets a task's VM go on as a spare one and then as another task's: every span is paid once.
func TestHeir(t *testing.T) {
	t.Parallel()
	s, caps := newTestStore(t), VMCaps{VMs: 1, PerHour: 1, PerTask: time.Hour}
	s.bring(t, "a", vmTask, caps)
	heir := cloudIntent("b", TaskKey{Repo: 5, Issue: 8})
	heir.Rebuilds = "a"
	if _, err := s.VMs.Intend(t.Context(), heir, caps); !errors.Is(err, ErrVMOver) {
		t.Errorf("a VM in use is taken: %v", err)
	}
	s.advance(20 * time.Minute)
	s.vmEvent(t, "a", VMEvent{Kind: VMKeep, Why: "done"})
	stranger := heir
	stranger.Name, stranger.Repo = "c", 6
	if _, err := s.VMs.Intend(t.Context(), stranger, caps); !errors.Is(err, ErrVMOver) {
		t.Errorf("another repository takes it: %v", err)
	}
	row := s.intend(t, heir, caps)
	if row.Spans(s.time()) != 0 || !row.CreatedAt.Equal(testStart) || row.Rebuilds != "a" {
		t.Errorf("the heir is %+v", row)
	}
	old, err := s.VMs.Get(t.Context(), "a")
	if err != nil || old.Phase != VMDeleting || old.Heir != "b" || old.Why != "done" {
		t.Errorf("the old row is %+v, %v", old, err)
	}
	s.vmEvent(t, "b", VMEvent{Kind: VMMade, ID: "a", CreatedAt: testStart, Usable: true, MicroHour: euros, Paid: time.Hour, Currency: "EUR"})
	s.vmEvent(t, "a", VMEvent{Kind: VMDeleted})
	s.advance(45 * time.Minute)
	s.drop(t, "b")
	for task, want := range map[TaskKey]int64{vmTask: 1, heir.Task: 1} {
		if bill, err := s.VMs.TaskBill(t.Context(), task, s.time()); err != nil || bill.Spans != want {
			t.Errorf("task %s pays %+v, %v", task, bill, err)
		}
	}
	if day, _, err := s.VMs.Spent(t.Context(), s.time()); err != nil || day.Micro != 2*euros {
		t.Errorf("the day costs %+v, %v", day, err)
	}
}

// TestRowFollowsTask wants the row to say whether a run is on the VM from the same transaction on.
func TestRowFollowsTask(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.bring(t, "a", vmTask, VMCaps{})
	s.bring(t, "b", vmTask, VMCaps{})
	var next *Task
	s.next = func(*Task, Event, Policy) Change { return Change{Task: next} }
	step := func(task Task, want string) {
		t.Helper()
		next = &task
		s.mustApply(t, Event{Kind: EventPoked, Task: vmTask}, Ack{})
		got := ""
		for _, name := range []string{"a", "b"} {
			row, err := s.VMs.Get(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			got += " " + string(row.Phase)
		}
		if got != " "+want {
			t.Errorf("rows are%s, want %s", got, want)
		}
	}
	a, b := &VM{Name: "a"}, &VM{Name: "b"}
	step(Task{Phase: PhaseQueued}, "ready ready")
	step(Task{Phase: PhaseQueued, Run: &Run{}}, "ready ready")
	step(Task{Phase: PhaseQueued, Run: &Run{VM: "a"}, VM: a}, "busy ready")
	step(Task{Phase: PhaseQueued, VM: a}, "parked ready")
	step(Task{Phase: PhaseQueued, Run: &Run{VM: "a"}, VM: a}, "busy ready")
	step(Task{Phase: PhaseQueued, Run: &Run{VM: "b"}, VM: b}, "parked busy")
	step(Task{Phase: PhaseQueued}, "parked parked")
	step(Task{Phase: PhaseQueued, VM: &VM{Name: "unknown"}}, "parked parked")
}

func TestVMRowsAndTimes(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	for i := range 3 {
		name := fmt.Sprint("vm", i)
		s.intend(t, cloudIntent(name, vmTask), VMCaps{})
		s.vmEvent(t, name, VMEvent{Kind: VMMade, ID: name})
		s.vmEvent(t, name, VMEvent{Kind: VMRuns})
		s.advance(time.Duration(i+1) * time.Minute)
		s.vmEvent(t, name, VMEvent{Kind: VMUp, Pins: []string{"k"}})
	}
	times, err := s.VMs.Times(t.Context())
	if err != nil || Percentile(times.Boot, 50) != 2*time.Minute || Percentile(times.Boot, 95) != 3*time.Minute || Percentile(times.Image, 50) != 0 {
		t.Errorf("times are %v, %v", times, err)
	}
	s.drop(t, "vm0")
	s.advance(time.Hour)
	s.drop(t, "vm1")
	if n, err := s.VMs.Prune(t.Context(), s.time().Add(-time.Minute)); n != 1 || err != nil {
		t.Errorf("pruned %d, %v", n, err)
	}
	rows, err := s.VMs.List(t.Context())
	if err != nil || len(rows) != 2 || rows[0].Name != "vm1" || rows[0].Phase != VMGone || rows[1].Pins[0] != "k" {
		t.Errorf("rows are %+v, %v", rows, err)
	}
}

// TestCheckFindsBadVMs plants contradictions.
func TestCheckFindsBadVMs(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]VMRow{
		"not in the roster": {Name: "x", Phase: VMReady},
		"no reason":         {Name: "x", Phase: VMGone, EndedAt: testStart},
		"no end":            {Name: "x", Phase: VMGone, Why: "done"},
		"another name":      {Name: "y", Phase: VMGone, EndedAt: testStart, Why: "done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.bring(t, "a", vmTask, VMCaps{})
			err := kv.Update(t.Context(), s.db, "spoil", func(tx kv.Tx) error { return s.codec.PutJSON(tx, vmKey("x"), spoil) })
			if err != nil {
				t.Fatal(err)
			}
			if problems, err := s.Check(t.Context()); err != nil || len(problems) == 0 {
				t.Errorf("nothing is found: %v", err)
			}
			err = kv.Update(t.Context(), s.db, "mend", func(tx kv.Tx) error { return tx.Delete(vmKey("x")) })
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
