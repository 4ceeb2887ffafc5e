package budget_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/budget"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
)

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// newBudget returns a budget whose store has one task with an active run, and the run.
func newBudget(t *testing.T, caps store.Caps) (budget.Budget, *state.Run) {
	t.Helper()
	db, err := boltkv.Open(filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := store.Open(t.Context(), db, store.Options{Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	apply := func(e event.Event) *state.Task {
		t.Helper()
		e.Task = state.TaskKey{Repo: 7, Issue: 1}
		applied, err := s.Apply(t.Context(), e, store.Ack{})
		if err != nil {
			t.Fatal(err)
		}
		return applied.Task
	}
	ada := state.Person{ID: 1, Login: "ada"}
	apply(event.Event{
		By: ada, Permission: state.PermissionWrite, Via: "assigned", At: noon(), Repo: &state.Repo{ID: 7, Owner: "acme", Name: "shop", DefaultBranch: "main"},
		Payload: event.Triggered{Issue: &state.Issue{Node: "I_1", Title: "Prices are rounded twice", Author: ada}},
	})
	task := apply(event.Event{Payload: event.Started{Start: event.Start{
		Settings: settings.Default(), Visible: true, Branch: state.Branch{Name: "errand/1-prices", Base: "main", BaseSHA: "b0"},
	}}})
	task = apply(event.Event{Run: task.Run.ID, Payload: event.Launched{Launch: state.Launch{
		Run: task.Run.ID, VM: state.VM{Name: "vm1", Provider: "local", Kind: "bwrap"}, Adapter: "claude", Model: "some-model", Started: noon(),
	}}})
	return budget.Budget{Store: s, Caps: caps, Now: noon}, task.Run
}

// record books a call of the run.
func record(t *testing.T, b budget.Budget, run *state.Run, cost state.Money) {
	t.Helper()
	u := gateway.UsageRecord{Task: state.TaskKey{Repo: 7, Issue: 1}, Run: run.ID, Cost: cost}
	if err := b.Record(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

func TestRecordBooksACallInItsTaskAndPeriods(t *testing.T) {
	t.Parallel()
	b, run := newBudget(t, store.Caps{DayMicroUSD: 50, MonthMicroUSD: 500})
	record(t, b, run, state.Money{MicroUSD: 30, InputTokens: 3, OutputTokens: 4})
	record(t, b, run, state.Money{MicroUSD: 5})
	task, err := b.Store.Task(t.Context(), state.TaskKey{Repo: 7, Issue: 1})
	if err != nil {
		t.Fatal(err)
	}
	if task.Money.MicroUSD != 35 || task.Run.Money.MicroUSD != 35 || task.Money.Tokens() != 7 {
		t.Errorf("task %+v, run %+v", task.Money, task.Run.Money)
	}
	day, month, err := b.Spent(t.Context())
	if err != nil || day.MicroUSD != 35 || month.MicroUSD != 35 || day.CapMicroUSD != 50 || month.CapMicroUSD != 500 {
		t.Errorf("day %+v, month %+v: %v", day, month, err)
	}
}

func TestCapReached(t *testing.T) {
	t.Parallel()
	spent := state.Money{MicroUSD: 60, InputTokens: 600}
	for name, c := range map[string]struct {
		caps       store.Caps
		open, need state.Money
		free       bool
		until      time.Time // end of the wait; zero if no cap is reached
	}{
		"no caps":                          {need: state.Money{MicroUSD: 1e9}},
		"below all caps":                   {caps: store.Caps{DayMicroUSD: 61, MonthMicroUSD: 61, DayTokens: 601, MonthTokens: 601}},
		"today's cost":                     {caps: store.Caps{DayMicroUSD: 60}, until: nextDay()},
		"this month's cost":                {caps: store.Caps{MonthMicroUSD: 60, DayMicroUSD: 60}, until: nextMonth()},
		"today's tokens":                   {caps: store.Caps{DayTokens: 600}, until: nextDay()},
		"this month's tokens":              {caps: store.Caps{MonthTokens: 600}, until: nextMonth()},
		"with calls in flight":             {caps: store.Caps{DayMicroUSD: 100}, open: state.Money{MicroUSD: 40}, until: nextDay()},
		"calls in flight leave room":       {caps: store.Caps{DayMicroUSD: 100}, open: state.Money{MicroUSD: 39}},
		"too little for the next call":     {caps: store.Caps{DayMicroUSD: 100}, need: state.Money{MicroUSD: 41}, until: nextDay()},
		"enough for the next call":         {caps: store.Caps{DayMicroUSD: 100}, need: state.Money{MicroUSD: 40}},
		"free calls ignore caps on cost":   {caps: store.Caps{DayMicroUSD: 1, MonthMicroUSD: 1}, free: true},
		"free calls keep today's tokens":   {caps: store.Caps{DayMicroUSD: 1, DayTokens: 600}, free: true, until: nextDay()},
		"free calls keep a month's tokens": {caps: store.Caps{MonthMicroUSD: 1, MonthTokens: 600}, free: true, until: nextMonth()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, run := newBudget(t, c.caps)
			record(t, b, run, spent)
			w, err := b.CapReached(t.Context(), c.open, c.need, c.free)
			if err != nil {
				t.Fatal(err)
			}
			if w == nil {
				w = &state.Waiting{}
			} else if w.Kind != state.WaitMoney || w.Detail == "" {
				t.Errorf("wait %+v", w)
			}
			if !w.Until.Equal(c.until) {
				t.Errorf("waits until %s, want %s", w.Until, c.until)
			}
		})
	}
}

func nextDay() time.Time   { return time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC) }
func nextMonth() time.Time { return time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC) }

func TestCallsInFlightReduceTheBudget(t *testing.T) {
	t.Parallel()
	b, run := newBudget(t, store.Caps{DayMicroUSD: 100, MonthMicroUSD: 90, DayTokens: 1000})
	record(t, b, run, state.Money{MicroUSD: 60, InputTokens: 600})
	open := state.Money{MicroUSD: 10, OutputTokens: 100}
	left, err := b.Left(t.Context(), open, false)
	if err != nil || left.MicroUSD != 20 || left.Tokens != 300 {
		t.Errorf("%+v: %v", left, err)
	}
	free, err := b.Left(t.Context(), open, true)
	if err != nil || free.MicroUSD != state.Unlimited().MicroUSD || free.Tokens != 300 {
		t.Errorf("free calls: %+v: %v", free, err)
	}
}

// models has one call in flight and a wait per provider.
type models struct {
	inFlight state.Money
	waits    map[string]*state.Waiting
}

func (m models) InFlightCost() state.Money { return m.inFlight }

func (m models) ProviderWait(_ context.Context, provider string) (*state.Waiting, error) {
	return m.waits[provider], nil
}

func TestMayStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		inFlight int64
		provider string
		want     state.WaitKind // empty: the run may start
	}{
		"money is left":                   {provider: "anthropic"},
		"calls in flight reach the cap":   {provider: "anthropic", inFlight: 40, want: state.WaitMoney},
		"a subscription costs no money":   {provider: "subscribed", inFlight: 40},
		"the provider refuses its key":    {provider: "refusing", want: state.WaitKey},
		"the budget comes before the key": {provider: "refusing", inFlight: 40, want: state.WaitMoney},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, run := newBudget(t, store.Caps{DayMicroUSD: 100})
			record(t, b, run, state.Money{MicroUSD: 60})
			s := budget.Starter{
				Budget: b,
				Models: models{
					inFlight: state.Money{MicroUSD: c.inFlight},
					waits:    map[string]*state.Waiting{"refusing": {Kind: state.WaitKey}},
				},
				Subscribed: map[string]bool{"subscribed": true},
			}
			w, err := s.MayStart(t.Context(), c.provider)
			if err != nil {
				t.Fatal(err)
			}
			if w == nil {
				w = &state.Waiting{}
			}
			if w.Kind != c.want {
				t.Errorf("waits for %q, want %q", w.Kind, c.want)
			}
		})
	}
}
