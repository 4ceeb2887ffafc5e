package state

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTheSecondCapOnVMsBinds: of several caps each one binds, whichever is reached first, and what one task has used
// does not count for another.
func TestTheSecondCapOnVMsBinds(t *testing.T) {
	t.Parallel()
	other := TaskKey{Repo: 5, Issue: 8}
	for name, c := range map[string]struct {
		caps VMCaps
		task TaskKey
		want string
	}{
		"the day, though the month has some left":      {VMCaps{MicroDay: 2 * euros, MicroMonth: 100 * euros}, other, LimitVMsDay},
		"the month, though the day has some left":      {VMCaps{MicroDay: 100 * euros, MicroMonth: 2 * euros}, other, LimitVMsMonth},
		"the task, though day and month have":          {VMCaps{PerTask: time.Hour, MicroDay: 100 * euros, MicroMonth: 100 * euros}, vmTask, LimitVMHours},
		"not another task's":                           {VMCaps{PerTask: time.Hour, MicroDay: 100 * euros, MicroMonth: 100 * euros}, TaskKey{Repo: 6, Issue: 7}, ""},
		"the number, though money is left":             {VMCaps{VMs: 2, MicroDay: 100 * euros, MicroMonth: 100 * euros}, other, LimitVMs},
		"those made in an hour, though places are":     {VMCaps{VMs: 100, PerHour: 2, MicroDay: 100 * euros}, other, LimitVMMakes},
		"money, though places are left":                {VMCaps{VMs: 100, PerHour: 100, MicroDay: 2 * euros}, other, LimitVMsDay},
		"the task, though it is not the only one":      {VMCaps{VMs: 100, PerTask: time.Hour}, other, LimitVMHours},
		"none: there is room under every one of them":  {VMCaps{VMs: 3, PerHour: 3, PerTask: 2 * time.Hour, MicroDay: 3 * euros, MicroMonth: 3 * euros}, vmTask, ""},
		"the month, though the day's is not set":       {VMCaps{MicroMonth: 2 * euros}, vmTask, LimitVMsMonth},
		"the task, though it asks for another's place": {VMCaps{VMs: 3, PerTask: time.Hour, MicroMonth: 3 * euros}, vmTask, LimitVMHours},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.bring(t, "a", vmTask, VMCaps{})
			s.bring(t, "b", other, VMCaps{})
			if c.want != "" {
				s.refuses(t, cloudIntent("c", c.task), c.caps, c.want)
				return
			}
			s.intend(t, cloudIntent("c", c.task), c.caps)
		})
	}
}

// TestBillsOfTwoTasks: each task's VMs are on its own bill, open or closed; all are on the day's.
func TestBillsOfTwoTasks(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	other := TaskKey{Repo: 5, Issue: 8}
	s.bring(t, "a", vmTask, VMCaps{})
	s.bring(t, "b", other, VMCaps{})
	s.bring(t, "c", other, VMCaps{})
	s.advance(61 * time.Minute)
	s.drop(t, "b")
	got := map[TaskKey]int64{}
	for _, task := range []TaskKey{vmTask, other, {Repo: 6, Issue: 7}} {
		bill, err := s.VMs.TaskBill(t.Context(), task, s.time())
		if err != nil {
			t.Fatal(err)
		}
		got[task] = bill.Spans
	}
	if diff := cmp.Diff(map[TaskKey]int64{vmTask: 2, other: 4, {Repo: 6, Issue: 7}: 0}, got); diff != "" {
		t.Errorf("spans of each task (-want +got):\n%s", diff)
	}
	if day, _, err := s.VMs.Spent(t.Context(), s.time()); err != nil || day.Spans != 6 {
		t.Errorf("of all %d, want 6: %v", day.Spans, err)
	}
	row, err := s.VMs.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	var refused *VMLimitError
	if err := s.VMs.SpanAllowed(t.Context(), row, VMCaps{PerTask: 3 * time.Hour, MicroDay: 6 * euros}); !errors.As(err, &refused) || refused.Limit != LimitVMsDay {
		t.Errorf("a third hour of the first task, which would be the seventh of the day: %v", err)
	}
}

// TestTheSecondCapOnMoneyHolds: of the caps on money and tokens, of the day and of the month, each one holds.
func TestTheSecondCapOnMoneyHolds(t *testing.T) {
	t.Parallel()
	day, month := "2026-03-04 00:00:00", "2026-04-01 00:00:00"
	for name, c := range map[string]struct {
		caps Caps
		need Money
		want string // until when
	}{
		"none is reached":             {Caps{DayMicroUSD: 51, MonthMicroUSD: 81, DayTokens: 6, MonthTokens: 9}, Money{}, ""},
		"the day's money":             {Caps{DayMicroUSD: 50, MonthMicroUSD: 81, DayTokens: 6, MonthTokens: 9}, Money{}, day},
		"the day's tokens":            {Caps{DayMicroUSD: 51, MonthMicroUSD: 81, DayTokens: 5, MonthTokens: 9}, Money{}, day},
		"the month's money":           {Caps{DayMicroUSD: 51, MonthMicroUSD: 80, DayTokens: 6, MonthTokens: 9}, Money{}, month},
		"the month's tokens":          {Caps{DayMicroUSD: 51, MonthMicroUSD: 81, DayTokens: 6, MonthTokens: 8}, Money{}, month},
		"both: the later":             {Caps{DayMicroUSD: 50, MonthMicroUSD: 80}, Money{}, month},
		"too little money today":      {Caps{DayMicroUSD: 60, MonthMicroUSD: 1000, DayTokens: 1000}, Money{MicroUSD: 11}, day},
		"too few tokens today":        {Caps{DayMicroUSD: 1000, DayTokens: 10, MonthTokens: 1000}, Money{InputTokens: 4, OutputTokens: 2}, day},
		"too little this month":       {Caps{DayMicroUSD: 1000, MonthMicroUSD: 90, MonthTokens: 1000}, Money{MicroUSD: 11}, month},
		"too few this month":          {Caps{DayMicroUSD: 1000, MonthMicroUSD: 1000, MonthTokens: 10}, Money{OutputTokens: 3}, month},
		"enough under each":           {Caps{DayMicroUSD: 61, MonthMicroUSD: 91, DayTokens: 8, MonthTokens: 11}, Money{MicroUSD: 10, OutputTokens: 2}, ""},
		"tokens, where money is none": {Caps{MonthTokens: 8}, Money{}, month},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.next = spend
			for i, m := range []Money{{OutputTokens: 3, MicroUSD: 30}, {InputTokens: 2, MicroUSD: 20}, {InputTokens: 3, MicroUSD: 30}} { // the first one yesterday
				if _, err := s.Apply(t.Context(), Event{Kind: EventSpent, Task: TaskKey{Repo: 7, Issue: i + 1}, Money: &m}, Ack{}); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					s.advance(24 * time.Hour)
				}
			}
			w, err := s.Held(t.Context(), c.caps, Money{}, c.need, s.time())
			got := ""
			if w != nil {
				got = w.Until.Format(time.DateTime)
			}
			if err != nil || got != c.want {
				t.Errorf("held until %q, want %q: %v", got, c.want, err)
			}
		})
	}
}

// TestTheSecondCapOfATaskHolds: of the caps of a task, on money and on tokens, each one holds, and is named.
func TestTheSecondCapOfATaskHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		money Money
		cap   bool
		hint  string
	}{
		"neither": {Money{MicroUSD: 9, CapMicroUSD: 10, InputTokens: 4, OutputTokens: 5, CapTokens: 10}, false, HintBudget},
		"money":   {Money{MicroUSD: 10, CapMicroUSD: 10, InputTokens: 4, OutputTokens: 5, CapTokens: 10}, true, HintBudget},
		"tokens":  {Money{MicroUSD: 9, CapMicroUSD: 10, InputTokens: 4, OutputTokens: 6, CapTokens: 10}, true, HintTokens},
		"both":    {Money{MicroUSD: 10, CapMicroUSD: 10, InputTokens: 4, OutputTokens: 6, CapTokens: 10}, true, HintBudget},
		"no cap":  {Money{MicroUSD: 10, InputTokens: 4, OutputTokens: 6}, false, HintBudget},
	} {
		if got := c.money.AtCap(); got != c.cap || c.money.Hint() != c.hint {
			t.Errorf("%s: at the cap %v, hint %q; want %v, %q", name, got, c.money.Hint(), c.cap, c.hint)
		}
	}
}
