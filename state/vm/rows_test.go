package vm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
)

// euros is a price of an hour for tests.
const euros = 100_000

func cloudIntent(name string, task state.TaskKey) Intent {
	return Intent{Name: name, Task: task, Owner: "o", Provider: "p", MicroHour: euros, Currency: "EUR", Paid: time.Hour, Repo: task.Repo}
}

func (s *testRows) intend(t *testing.T, in Intent, caps Caps) Row {
	t.Helper()
	row, err := s.Intend(context.Background(), in, caps)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func (s *testRows) vmEvent(t *testing.T, name string, e Event) Row {
	t.Helper()
	if e.Kind == Made && e.CreatedAt.IsZero() {
		e.CreatedAt, e.MicroHour, e.Currency, e.Paid = s.time(), euros, "EUR", time.Hour
	}
	row, changed, err := s.Apply(context.Background(), name, e)
	if err != nil || !changed {
		t.Fatalf("%s to %s (%s): got changed %v, error %v", e.Kind, name, row.Phase, changed, err)
	}
	return row
}

// bring creates a usable VM.
func (s *testRows) bring(t *testing.T, name string, task state.TaskKey, caps Caps) {
	t.Helper()
	s.intend(t, cloudIntent(name, task), caps)
	s.vmEvent(t, name, Event{Kind: Made, ID: name, Usable: true})
}

func (s *testRows) drop(t *testing.T, name string) {
	t.Helper()
	s.vmEvent(t, name, Event{Kind: End, EndReason: "done"})
	s.vmEvent(t, name, Event{Kind: Deleted})
}

func (s *testRows) refuses(t *testing.T, in Intent, caps Caps, limit string) *LimitError {
	t.Helper()
	_, err := s.Intend(context.Background(), in, caps)
	var refused *LimitError
	if !errors.As(err, &refused) || refused.Limit != limit || refused.Hint() == "" || refused.Reason == "" {
		t.Fatalf("intent %s: got error %v, want limit %s", in.Name, err, limit)
	}
	if _, err := s.Get(context.Background(), in.Name); !errors.Is(err, ErrNoRow) {
		t.Errorf("got a row after a refused intent: %v", err)
	}
	return refused
}

var firstTask = state.TaskKey{Repo: 5, Issue: 7}

func TestIntendVMTwice(t *testing.T) {
	t.Parallel()
	s := newTestRows(t)
	first := s.intend(t, cloudIntent("a", firstTask), Caps{VMs: 1})
	s.reopen(t)
	if second := s.intend(t, cloudIntent("a", firstTask), Caps{VMs: 1}); !cmp.Equal(first, second) {
		t.Errorf("got a different row from the second intent:\n%s", cmp.Diff(first, second))
	}
	s.drop(t, "a")
	if _, err := s.Intend(context.Background(), cloudIntent("a", firstTask), Caps{}); !errors.Is(err, ErrOver) {
		t.Errorf("got error %v for a used name, want ErrOver", err)
	}
	if _, _, err := s.Apply(context.Background(), "b", Event{Kind: Up}); !errors.Is(err, ErrNoRow) {
		t.Errorf("event of an unknown VM: got error %v, want ErrNoRow", err)
	}
}

func TestCapOnVMs(t *testing.T) {
	t.Parallel()
	s, caps := newTestRows(t), Caps{VMs: 2}
	s.bring(t, "a", firstTask, caps)
	s.intend(t, cloudIntent("b", firstTask), caps)
	if got := s.refuses(t, cloudIntent("c", firstTask), caps, LimitVMs); got.Reason != "2 of 2 VMs are in use" {
		t.Errorf("got reason %q", got.Reason)
	}
	s.vmEvent(t, "a", Event{Kind: End, EndReason: "done"})
	s.refuses(t, cloudIntent("c", firstTask), caps, LimitVMs) // it is paid for, and counts towards the account's limit, until it is deleted
	s.vmEvent(t, "a", Event{Kind: Deleted})
	s.intend(t, Intent{Name: "free", Owner: "x"}, caps)
	s.refuses(t, Intent{Name: "free2", Owner: "x"}, caps, LimitVMs)
	s.vmEvent(t, "free", Event{Kind: Fail, EndReason: "crashed"}) // the remains of a box do not count towards the limit
	s.intend(t, Intent{Name: "free2", Owner: "x"}, caps)
}

// A place that is reserved for those that waited longer is not given to others, and the number is the last cap that is
// checked: its refusal means that nothing else forbids the VM.
func TestReservedPlaces(t *testing.T) {
	t.Parallel()
	s := newTestRows(t)
	s.bring(t, "a", firstTask, Caps{})
	if got := s.refuses(t, cloudIntent("b", firstTask), Caps{VMs: 3, Reserved: 2}, LimitVMs); !strings.Contains(got.Reason, "1 of 3 VMs are in use, and tasks that have waited longer") {
		t.Errorf("got reason %q", got.Reason)
	}
	s.refuses(t, cloudIntent("b", firstTask), Caps{VMs: 1, PerHour: 1}, LimitVMCreates)
	s.refuses(t, cloudIntent("b", firstTask), Caps{VMs: 1, MicroDay: euros}, LimitVMsDay)
	s.intend(t, cloudIntent("b", firstTask), Caps{VMs: 3, Reserved: 1})
	s.intend(t, cloudIntent("c", firstTask), Caps{Reserved: 9}) // no limit
}

func TestCapOnIntents(t *testing.T) {
	t.Parallel()
	s, caps := newTestRows(t), Caps{PerHour: 3}
	for i := range 3 {
		s.bring(t, fmt.Sprint(i), firstTask, caps)
		s.drop(t, fmt.Sprint(i))
		s.advance(10 * time.Minute)
	}
	if got := s.refuses(t, cloudIntent("x", firstTask), caps, LimitVMCreates); !got.Until.Equal(began.Add(time.Hour)) {
		t.Errorf("got the limit's end %s", got.Until)
	}
	s.intend(t, Intent{Name: "free", Owner: "x"}, caps)
	s.advance(30 * time.Minute)
	s.intend(t, cloudIntent("x", firstTask), caps)
}

func TestCapOnTaskHours(t *testing.T) {
	t.Parallel()
	s, caps := newTestRows(t), Caps{PerTask: 3 * time.Hour}
	s.bring(t, "a", firstTask, caps)
	s.advance(61 * time.Minute)
	s.drop(t, "a")
	s.bring(t, "b", firstTask, caps)
	s.refuses(t, cloudIntent("c", firstTask), caps, LimitVMHours)
	s.intend(t, cloudIntent("other", state.TaskKey{Repo: 5, Issue: 8}), caps)
	row, err := s.Get(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	var refused *LimitError
	if err := s.SpanAllowed(t.Context(), row, caps); !errors.As(err, &refused) || refused.Limit != LimitVMHours {
		t.Errorf("fourth hour: got error %v", err)
	}
	if err := s.SpanAllowed(t.Context(), row, Caps{PerTask: 4 * time.Hour}); err != nil {
		t.Errorf("with a higher cap: got error %v", err)
	}
	bill, err := billOf(t.Context(), s.Rows, firstTask, s.time())
	want := Bill{VMs: 2, Spans: 3, Time: 3 * time.Hour, Micro: 3 * euros, Currency: "EUR"}
	bill.Currency = "EUR"
	if err != nil || bill != want {
		t.Errorf("got bill %+v, error %v", bill, err)
	}
}

func TestCapOnMoney(t *testing.T) {
	t.Parallel()
	s := newTestRows(t)
	day, month := Caps{MicroDay: 3 * euros}, Caps{MicroMonth: 5 * euros}
	s.bring(t, "a", firstTask, day)
	s.advance(59 * time.Minute)
	s.drop(t, "a")
	s.bring(t, "b", firstTask, day)                      // a second hour has begun
	s.intend(t, cloudIntent("reserved", firstTask), day) // and a third is reserved
	if got := s.refuses(t, cloudIntent("c", firstTask), day, LimitVMsDay); !got.Until.Equal(time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("got the limit's end %s", got.Until)
	}
	s.drop(t, "reserved") // was never made
	s.advance(24*time.Hour - 2*time.Minute)
	gotDay, gotMonth, err := s.Spent(t.Context(), s.time())
	if err != nil || gotDay.Spans != 9 || gotMonth.Spans != 25 {
		t.Errorf("got spending %+v, %+v, error %v", gotDay, gotMonth, err)
	}
	s.drop(t, "b")
	s.refuses(t, cloudIntent("c", firstTask), month, LimitVMsMonth)
	s.advance(31 * 24 * time.Hour)
	s.intend(t, cloudIntent("c", firstTask), month)
	closedDay, closedMonth, err := s.Spent(t.Context(), began.AddDate(0, 0, 1))
	closedMonth.VMs, gotMonth.VMs, gotDay.VMs, closedDay.VMs = 0, 0, 0, 0
	if diff := cmp.Diff([]Bill{gotDay, gotMonth}, []Bill{closedDay, closedMonth}); err != nil || diff != "" {
		t.Errorf("got error %v and a bill changed by closing it (-before +after):\n%s", err, diff)
	}
}

// TestReusedVMIsPaidOnce: a task's VM becomes a standby VM and then another task's; every span is paid once.
func TestReusedVMIsPaidOnce(t *testing.T) {
	t.Parallel()
	s, caps := newTestRows(t), Caps{VMs: 1, PerHour: 1, PerTask: time.Hour}
	s.bring(t, "a", firstTask, caps)
	successor := cloudIntent("b", state.TaskKey{Repo: 5, Issue: 8})
	successor.Rebuilds = "a"
	if _, err := s.Intend(t.Context(), successor, caps); !errors.Is(err, ErrOver) {
		t.Errorf("VM in use: got error %v, want ErrOver", err)
	}
	s.advance(20 * time.Minute)
	s.vmEvent(t, "a", Event{Kind: Keep, EndReason: "done"})
	stranger := successor
	stranger.Name, stranger.Repo = "c", 6
	if _, err := s.Intend(t.Context(), stranger, caps); !errors.Is(err, ErrOver) {
		t.Errorf("other repository: got error %v, want ErrOver", err)
	}
	row := s.intend(t, successor, caps)
	if row.Spans(s.time()) != 0 || !row.CreatedAt.Equal(began) || row.Rebuilds != "a" {
		t.Errorf("got successor %+v", row)
	}
	old, err := s.Get(t.Context(), "a")
	if err != nil || old.Phase != Deleting || old.Successor != "b" || old.EndReason != "done" {
		t.Errorf("got old row %+v, error %v", old, err)
	}
	s.vmEvent(t, "b", Event{Kind: Made, ID: "a", CreatedAt: began, Usable: true, MicroHour: euros, Paid: time.Hour, Currency: "EUR"})
	s.vmEvent(t, "a", Event{Kind: Deleted})
	s.advance(45 * time.Minute)
	s.drop(t, "b")
	for task, want := range map[state.TaskKey]int64{firstTask: 1, successor.Task: 1} {
		if bill, err := billOf(t.Context(), s.Rows, task, s.time()); err != nil || bill.Spans != want {
			t.Errorf("task %s: got bill %+v, error %v", task, bill, err)
		}
	}
	if day, _, err := s.Spent(t.Context(), s.time()); err != nil || day.Micro != 2*euros {
		t.Errorf("got the day's cost %+v, error %v", day, err)
	}
}

func TestVMRowsAndTimes(t *testing.T) {
	t.Parallel()
	s := newTestRows(t)
	for i := range 3 {
		name := fmt.Sprint("vm", i)
		s.intend(t, cloudIntent(name, firstTask), Caps{})
		s.vmEvent(t, name, Event{Kind: Made, ID: name})
		s.vmEvent(t, name, Event{Kind: Runs})
		s.advance(time.Duration(i+1) * time.Minute)
		s.vmEvent(t, name, Event{Kind: Up, Pins: []string{"k"}})
	}
	times, err := s.Times(t.Context())
	if err != nil || Percentile(times.Boot, 50) != 2*time.Minute || Percentile(times.Boot, 95) != 3*time.Minute || Percentile(times.Image, 50) != 0 {
		t.Errorf("got times %v, error %v", times, err)
	}
	s.drop(t, "vm0")
	s.advance(time.Hour)
	s.drop(t, "vm1")
	if n, err := s.Prune(t.Context(), s.time().Add(-time.Minute)); n != 1 || err != nil {
		t.Errorf("got %d pruned rows, error %v", n, err)
	}
	rows, err := s.List(t.Context())
	if err != nil || len(rows) != 2 || rows[0].Name != "vm1" || rows[0].Phase != Gone || rows[1].Pins[0] != "k" {
		t.Errorf("got rows %+v, error %v", rows, err)
	}
}

// Check must report each planted inconsistency.
func TestCheckFindsBadVMs(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]Row{
		"not in the roster": {Name: "x", Phase: Ready},
		"no reason":         {Name: "x", Phase: Gone, EndedAt: began},
		"no end":            {Name: "x", Phase: Gone, EndReason: "done"},
		"another name":      {Name: "y", Phase: Gone, EndedAt: began, EndReason: "done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestRows(t)
			s.bring(t, "a", firstTask, Caps{})
			err := kv.Update(t.Context(), s.db, "spoil", func(tx kv.Tx) error { return s.codec.PutJSON(tx, rowKey("x"), spoil) })
			if err != nil {
				t.Fatal(err)
			}
			if problems := s.problems(t); len(problems) == 0 {
				t.Error("got no problems, want some")
			}
			err = kv.Update(t.Context(), s.db, "mend", func(tx kv.Tx) error { return tx.Delete(rowKey("x")) })
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// billOf returns the cost of a task's VMs until a time, also after their rows are deleted.
func billOf(ctx context.Context, s *Rows, task state.TaskKey, at time.Time) (bill Bill, err error) {
	err = s.viewRoster(ctx, func(r kv.Reader, o *roster) (err error) {
		bill, err = s.taskBill(r, o, task, at)
		return err
	})
	if err != nil {
		return Bill{}, fmt.Errorf("read what the VMs of task %s have cost: %w", task, err)
	}
	return bill, nil
}
