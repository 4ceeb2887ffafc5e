package store

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
)

// The costs of tasks are summed by day and month, and a cap holds until the next period.
func TestCostsAreSummedByPeriod(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.next = spend
	s.advance(time.Date(2026, 11, 30, 23, 59, 0, 0, time.UTC).Sub(testStart))
	apply := func(issue int, micro int64) {
		t.Helper()
		if _, err := s.Apply(t.Context(), event.Event{Task: state.TaskKey{Repo: 7, Issue: issue}, Payload: event.ModelCalled{Money: state.Money{InputTokens: 1, MicroUSD: micro}}}, Ack{}); err != nil {
			t.Fatal(err)
		}
	}
	caps := Caps{DayMicroUSD: 50, MonthMicroUSD: 70}
	wantWaitUntil := func(want string) {
		t.Helper()
		w, err := s.Spending.CapReached(t.Context(), caps, state.Money{}, state.Money{}, s.time())
		got := ""
		if w != nil {
			got = w.Until.Format(time.DateTime)
		}
		if err != nil || got != want {
			t.Errorf("got a wait until %q, want %q: %v", got, want, err)
		}
	}
	wantWaitUntil("")
	apply(1, 30)
	apply(2, 19)
	wantWaitUntil("")
	apply(1, 1)
	wantWaitUntil("2026-12-01 00:00:00")
	s.advance(2 * time.Minute)
	wantWaitUntil("")
	apply(1, 20)
	apply(2, 29)
	wantWaitUntil("")
	s.advance(24 * time.Hour)
	apply(2, 30)
	wantWaitUntil("2027-01-01 00:00:00")
	day, month, err := s.Spending.Spent(t.Context(), s.time())
	if want := (state.Money{InputTokens: 1, MicroUSD: 30}); err != nil || day != want || month.MicroUSD != 79 || month.InputTokens != 3 {
		t.Errorf("got cost %+v of the day, %+v of the month, error %v", day, month, err)
	}
	if w, err := s.Spending.CapReached(t.Context(), Caps{}, state.Money{}, state.Money{}, s.time()); w != nil || err != nil {
		t.Errorf("without caps: got wait %v, error %v", w, err)
	}
}

// Spending on subscriptions is recorded for the day and the month, and dollars are those of keys alone.
func TestSpendingOnASubscription(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.next = spend
	spent := func() state.Money {
		t.Helper()
		day, month, err := s.Spending.Spent(t.Context(), s.time())
		if err != nil || day != month {
			t.Fatalf("got day %+v, month %+v, error %v", day, month, err)
		}
		return day
	}
	for _, step := range []struct{ add, want state.Money }{
		{state.Money{InputTokens: 5, Subscription: true}, state.Money{InputTokens: 5, Subscription: true}},
		{state.Money{InputTokens: 1, MicroUSD: 7}, state.Money{InputTokens: 6, MicroUSD: 7, Subscription: true}},
	} {
		if _, err := s.Apply(t.Context(), event.Event{Task: state.TaskKey{Repo: 7, Issue: 1}, Payload: event.ModelCalled{Money: step.add}}, Ack{}); err != nil {
			t.Fatal(err)
		}
		if got := spent(); got != step.want {
			t.Errorf("spent %+v, want %+v", got, step.want)
		}
	}
}

// Each of the caps on money and tokens, per day and per month, is effective.
func TestTheSecondCapOnMoneyHolds(t *testing.T) {
	t.Parallel()
	day, month := "2026-03-04 00:00:00", "2026-04-01 00:00:00"
	for name, c := range map[string]struct {
		caps Caps
		need state.Money
		want string // until when
	}{
		"none is reached":             {Caps{DayMicroUSD: 51, MonthMicroUSD: 81, DayTokens: 6, MonthTokens: 9}, state.Money{}, ""},
		"the day's money":             {Caps{DayMicroUSD: 50, MonthMicroUSD: 81, DayTokens: 6, MonthTokens: 9}, state.Money{}, day},
		"the day's tokens":            {Caps{DayMicroUSD: 51, MonthMicroUSD: 81, DayTokens: 5, MonthTokens: 9}, state.Money{}, day},
		"the month's money":           {Caps{DayMicroUSD: 51, MonthMicroUSD: 80, DayTokens: 6, MonthTokens: 9}, state.Money{}, month},
		"the month's tokens":          {Caps{DayMicroUSD: 51, MonthMicroUSD: 81, DayTokens: 6, MonthTokens: 8}, state.Money{}, month},
		"both: the later":             {Caps{DayMicroUSD: 50, MonthMicroUSD: 80}, state.Money{}, month},
		"too little money today":      {Caps{DayMicroUSD: 60, MonthMicroUSD: 1000, DayTokens: 1000}, state.Money{MicroUSD: 11}, day},
		"too few tokens today":        {Caps{DayMicroUSD: 1000, DayTokens: 10, MonthTokens: 1000}, state.Money{InputTokens: 4, OutputTokens: 2}, day},
		"too little this month":       {Caps{DayMicroUSD: 1000, MonthMicroUSD: 90, MonthTokens: 1000}, state.Money{MicroUSD: 11}, month},
		"too few this month":          {Caps{DayMicroUSD: 1000, MonthMicroUSD: 1000, MonthTokens: 10}, state.Money{OutputTokens: 3}, month},
		"enough under each":           {Caps{DayMicroUSD: 61, MonthMicroUSD: 91, DayTokens: 8, MonthTokens: 11}, state.Money{MicroUSD: 10, OutputTokens: 2}, ""},
		"tokens, where money is none": {Caps{MonthTokens: 8}, state.Money{}, month},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.next = spend
			for i, m := range []state.Money{{OutputTokens: 3, MicroUSD: 30}, {InputTokens: 2, MicroUSD: 20}, {InputTokens: 3, MicroUSD: 30}} { // the first one yesterday
				if _, err := s.Apply(t.Context(), event.Event{Task: state.TaskKey{Repo: 7, Issue: i + 1}, Payload: event.ModelCalled{Money: m}}, Ack{}); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					s.advance(24 * time.Hour)
				}
			}
			w, err := s.Spending.CapReached(t.Context(), c.caps, state.Money{}, c.need, s.time())
			got := ""
			if w != nil {
				got = w.Until.Format(time.DateTime)
			}
			if err != nil || got != c.want {
				t.Errorf("got a wait until %q, want %q: %v", got, c.want, err)
			}
		})
	}
}

// spend is a Next that only adds costs.
func spend(t *state.Task, e event.Event, _ machine.Policy) machine.Change {
	next := &state.Task{Key: e.Task, TaskPhase: state.TaskPhase{Phase: state.PhaseQueued}, Gen: 1}
	if t != nil {
		c := *t
		next = &c
	}
	next.Money.Add(event.Of[event.ModelCalled](e).Money)
	return machine.Change{Task: next}
}
