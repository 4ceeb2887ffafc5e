package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
)

// Days and months are in UTC, in keys as 2026-11-21 and 2026-11.
const (
	dayForm   = "2006-01-02"
	monthForm = "2006-01"
)

func spendingKey(period string) string { return preSpending + period }

// Caps limit the spending of all tasks together, in millionths of a dollar and in tokens. Zero means no limit.
type Caps struct{ DayMicroUSD, MonthMicroUSD, DayTokens, MonthTokens int64 }

// Spending keeps the cost of all tasks together, by day and by month.
type Spending struct{ rows }

// Spent returns the cost of all tasks on the day and in the month of a time.
func (s *Spending) Spent(ctx context.Context, at time.Time) (day, month state.Money, err error) {
	err = s.db.View(ctx, func(r kv.Reader) (err error) {
		if day, err = s.periodCost(r, at.UTC().Format(dayForm)); err == nil {
			month, err = s.periodCost(r, at.UTC().Format(monthForm))
		}
		return err
	})
	if err != nil {
		return state.Money{}, state.Money{}, fmt.Errorf("read the money spent: %w", err)
	}
	return day, month, nil
}

// CapReached returns the wait for a cap of all tasks together that is reached, or that leaves less than need; nil if
// there is none. open is the estimated cost of calls in flight, which counts towards the day and the month. The Detail
// is for people.
func (s *Spending) CapReached(ctx context.Context, caps Caps, open, need state.Money, now time.Time) (*state.Waiting, error) {
	if caps == (Caps{}) {
		return nil, nil
	}
	day, month, err := s.withCallsInFlight(ctx, caps, open, now)
	if err != nil {
		return nil, err
	}
	now = now.UTC()
	nextMonth := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	nextDay := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.UTC)
	w := state.Waiting{Kind: state.WaitMoney, Since: now}
	switch {
	case month.AtCap():
		w.Until = nextMonth
		w.Detail = fmt.Sprintf("this month's cap of %s for all tasks together is reached; a new month begins at %s", month.CapText(), w.Until.Format("2 Jan 15:04 UTC"))
	case day.AtCap():
		w.Until = nextDay
		w.Detail = fmt.Sprintf("today's cap of %s for all tasks together is reached; a new day begins at %s", day.CapText(), w.Until.Format("15:04 UTC"))
	case month.Exceeds(need):
		w.Until = nextMonth
		w.Detail = fmt.Sprintf("the %s; a new month begins at %s", month.TooLittle("all tasks together this month", need), w.Until.Format("2 Jan 15:04 UTC"))
	case day.Exceeds(need):
		w.Until = nextDay
		w.Detail = fmt.Sprintf("the %s; a new day begins at %s", day.TooLittle("all tasks together today", need), w.Until.Format("15:04 UTC"))
	default:
		return nil, nil
	}
	return &w, nil
}

// periodCost returns the money spent in a period.
func (s *Spending) periodCost(r kv.Reader, period string) (m state.Money, err error) {
	err = s.codec.GetJSON(r, spendingKey(period), &m)
	if errors.Is(err, kv.ErrNotFound) {
		return state.Money{}, nil
	}
	return m, err
}

// addCost adds a task's additional cost to its day and month, in the event's transaction.
func (s *Spending) addCost(tx kv.Tx, before, after *state.Task, now time.Time) error {
	var old state.Money
	if before != nil {
		old = before.Money
	}
	more := state.Money{
		InputTokens: after.Money.InputTokens - old.InputTokens, OutputTokens: after.Money.OutputTokens - old.OutputTokens,
		MicroUSD: after.Money.MicroUSD - old.MicroUSD,
	}
	more.Subscription = after.Money.Subscription && more.Tokens() > 0 && more.MicroUSD == 0
	if more == (state.Money{}) {
		return nil
	}
	for _, period := range []string{now.UTC().Format(dayForm), now.UTC().Format(monthForm)} {
		m, err := s.periodCost(tx, period)
		if err != nil {
			return err
		}
		m.Add(more)
		if err := s.codec.PutJSON(tx, spendingKey(period), m); err != nil {
			return err
		}
	}
	return nil
}

// Left returns the amounts that the caps of all tasks together leave. open is the estimated cost of calls in flight.
func (s *Spending) Left(ctx context.Context, caps Caps, open state.Money, now time.Time) (state.Remaining, error) {
	if caps == (Caps{}) {
		return state.Unlimited(), nil
	}
	day, month, err := s.withCallsInFlight(ctx, caps, open, now)
	if err != nil {
		return state.Remaining{}, err
	}
	return day.Remaining().Min(month.Remaining()), nil
}

// withCallsInFlight returns the cost of the day and the month, including calls in flight, with their caps.
func (s *Spending) withCallsInFlight(ctx context.Context, caps Caps, open state.Money, now time.Time) (day, month state.Money, err error) {
	if day, month, err = s.Spent(ctx, now); err != nil {
		return state.Money{}, state.Money{}, err
	}
	day.Add(open)
	month.Add(open)
	day.CapMicroUSD, day.CapTokens = caps.DayMicroUSD, caps.DayTokens
	month.CapMicroUSD, month.CapTokens = caps.MonthMicroUSD, caps.MonthTokens
	return day, month, nil
}
