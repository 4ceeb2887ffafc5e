package store

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
)

// Calls in flight count towards the caps of a task, a run, a day and a month in the same way, in money as in tokens,
// and so does the need of the next call.
func TestCallsInFlightCount(t *testing.T) {
	t.Parallel()
	micro, tokens := state.Money{MicroUSD: 60}, state.Money{OutputTokens: 60}
	tests := map[string]struct {
		limit  func(*state.Task, *Caps)
		tokens bool
	}{
		"a task's money":   {func(t *state.Task, _ *Caps) { t.Money.CapMicroUSD = 100 }, false},
		"a task's tokens":  {func(t *state.Task, _ *Caps) { t.Money.CapTokens = 100 }, true},
		"a run's money":    {func(t *state.Task, _ *Caps) { t.Settings.Limits.RunMicroUSD = 100 }, false},
		"a run's tokens":   {func(t *state.Task, _ *Caps) { t.Settings.Limits.RunTokens = 100 }, true},
		"a day's money":    {func(_ *state.Task, c *Caps) { c.DayMicroUSD = 100 }, false},
		"a day's tokens":   {func(_ *state.Task, c *Caps) { c.DayTokens = 100 }, true},
		"a month's money":  {func(_ *state.Task, c *Caps) { c.MonthMicroUSD = 100 }, false},
		"a month's tokens": {func(_ *state.Task, c *Caps) { c.MonthTokens = 100 }, true},
		"a month's money, with a larger cap of the day": {func(_ *state.Task, c *Caps) { c.MonthMicroUSD, c.DayMicroUSD = 100, 500 }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			task, caps := &state.Task{TaskRuns: state.TaskRuns{Run: &state.Run{}}}, Caps{}
			test.limit(task, &caps)
			waitDetail := func(open, need state.Money) string {
				w := task.Capped(open, open, need, false)
				all, err := s.Spending.CapReached(t.Context(), caps, open, need, s.time())
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case w == nil && all == nil:
					return ""
				case w == nil:
					return all.Detail
				}
				return w.Detail
			}
			left := func(open state.Money) state.Remaining {
				l, err := s.Spending.Left(t.Context(), caps, open, s.time())
				if err != nil {
					t.Fatal(err)
				}
				return l.Min(task.Remaining(open, open, false))
			}
			one, want := micro, state.Remaining{MicroUSD: 40, Tokens: state.Unlimited().Tokens}
			if test.tokens {
				one, want = tokens, state.Remaining{MicroUSD: state.Unlimited().MicroUSD, Tokens: 40}
			}
			two := one
			two.Add(one)
			if got := waitDetail(one, state.Money{}); got != "" {
				t.Errorf("60 of 100 are in flight, and the next call has to wait: %s", got)
			}
			if got := waitDetail(two, state.Money{}); !strings.Contains(got, "is reached") {
				t.Errorf("120 of 100 are in flight: %q", got)
			}
			if got := waitDetail(one, one); !strings.Contains(got, "leaves too little") {
				t.Errorf("60 of 100 are in flight, and 60 more are needed: %q", got)
			}
			if day := caps.DayMicroUSD + caps.DayTokens; day > 0 && caps.MonthMicroUSD == 0 && !strings.Contains(waitDetail(one, one), "; a new day begins at 00:00 UTC") {
				t.Errorf("got no end in %q", waitDetail(one, one))
			}
			if got := left(one); got != want {
				t.Errorf("left %+v, want %+v", got, want)
			}
			if got := left(two); got.MicroUSD != 0 && got.Tokens != 0 {
				t.Errorf("got %+v left of an exceeded cap", got)
			}
		})
	}
}
