// Package budget applies the operator's limits on the cost and tokens of models to all tasks together.
//
// Start with Budget.CapReached. The limits of single tasks and runs are Task.Capped of package state, which the gateway
// applies.
package budget

import (
	"context"
	"time"

	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// A Budget is the limits of all tasks together, and their spending in the store.
type Budget struct {
	Store *store.Store
	Caps  store.Caps
	Now   func() time.Time
}

// Record stores a usage record in the run and its task.
func (b Budget) Record(ctx context.Context, u gateway.UsageRecord) error {
	spent := event.Event{Task: u.Task, Run: u.Run, Payload: event.ModelCalled{Money: u.Cost, Waiting: u.Wait}}
	_, err := b.Store.Apply(ctx, spent, store.Ack{Call: u.Reservation})
	return err
}

// CapReached returns the limit that all tasks wait for, or nil: it is reached, or leaves less than need. Open is the
// cost of calls in flight. If calls are free, only limits on tokens apply.
func (b Budget) CapReached(ctx context.Context, open, need state.Money, free bool) (*state.Waiting, error) {
	return b.Store.Spending.CapReached(ctx, b.caps(free), open, need, b.Now())
}

// Left returns the amounts that the limits leave for further calls.
func (b Budget) Left(ctx context.Context, open state.Money, free bool) (state.Remaining, error) {
	return b.Store.Spending.Left(ctx, b.caps(free), open, b.Now())
}

// Spent returns the spending of today and of this month, with their limits.
func (b Budget) Spent(ctx context.Context) (day, month state.Money, err error) {
	day, month, err = b.Store.Spending.Spent(ctx, b.Now())
	day.CapMicroUSD, month.CapMicroUSD = b.Caps.DayMicroUSD, b.Caps.MonthMicroUSD
	return day, month, err
}

func (b Budget) caps(free bool) store.Caps {
	caps := b.Caps
	if free {
		caps.DayMicroUSD, caps.MonthMicroUSD = 0, 0
	}
	return caps
}

// A Starter decides whether a run may start.
type Starter struct {
	Budget Budget
	// Models knows the calls in flight and the state of each provider of models.
	Models interface {
		InFlightCost() state.Money
		ProviderWait(ctx context.Context, provider string) (*state.Waiting, error)
	}
	// Subscribed names the providers that are paid by subscription, so that calls are free.
	Subscribed map[string]bool
}

// MayStart returns the wait of a run that would call a provider of models, or nil if it may start.
func (s Starter) MayStart(ctx context.Context, provider string) (*state.Waiting, error) {
	if w, err := s.Budget.CapReached(ctx, s.Models.InFlightCost(), state.Money{}, s.Subscribed[provider]); w != nil || err != nil {
		return w, err
	}
	return s.Models.ProviderWait(ctx, provider)
}
