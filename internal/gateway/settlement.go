package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// How many tokens of an answer a model has written by the time at which errand is back, if errand died meanwhile: so many
// at once, and so many a second, up to the output limit of the request. Nothing is known of that answer, so this is more
// than models write.
const (
	lostOutputBase      = 1000
	lostOutputPerSecond = 200
)

// settlement is what becomes of a call's reservation: the cost is booked, or the call was free and nothing is.
type settlement struct {
	entry
	reservation string
	free        bool
	cost        state.Money
	held        *state.Waiting
}

// reserve stores that the call is about to be passed on. A call that cannot be stored is not passed on.
func (c *call) reserve(ctx context.Context) error {
	if !c.billable || c.g.cfg.Journal == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	c.reservation = rand.Text() // from here on: after an error it may be stored all the same
	return c.g.cfg.Journal.Reserve(ctx, store.Reservation{
		ID: c.reservation, Task: c.entry.key, Run: c.entry.run, At: c.g.now().UTC(),
		Provider: c.provider, Model: c.estimate.Model, Input: c.estimate.Input, Output: c.maxOutput,
	})
}

// settle ends a call in flight. What the store does not take counts on, and is tried again (see Run).
func (c *call) settle(ctx context.Context, s settlement) {
	o := &c.g.inFlight
	if !s.free { // the cost goes from the calls in flight to the books, or to what is owed
		o.ledger.Lock()
		defer o.ledger.Unlock()
	}
	defer o.remove(c)
	s.entry, s.reservation, c.reservation = c.entry, c.reservation, ""
	if s.free && s.reservation == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := c.g.storeSettlement(ctx, s); err != nil {
		o.addUnsettled(s)
		c.g.cfg.Log.Error().Err(err).Str("task", s.key.String()).Str("run", s.run).Int64("micro_usd", s.cost.MicroUSD).
			Msg("tether: failed to book a call of a model; retrying")
	}
}

// storeSettlement writes a settlement. It may be repeated: a reservation is booked once.
func (g *Gateway) storeSettlement(ctx context.Context, s settlement) error {
	if s.free {
		return g.cfg.Journal.Release(ctx, s.reservation)
	}
	err := g.cfg.Ledger.Record(ctx, UsageRecord{Task: s.key, Run: s.run, Reservation: s.reservation, Cost: s.cost, Wait: s.held})
	if s.reservation != "" && errors.Is(err, store.ErrSpent) {
		return nil // by an attempt whose success was not reported
	}
	return err
}

// addUnsettled keeps what the store did not take.
func (o *inFlightCalls) addUnsettled(s settlement) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unsettled = append(o.unsettled, &s)
	o.notify()
}

// unsettledCalls returns what the store has not taken.
func (o *inFlightCalls) unsettledCalls() []*settlement {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.unsettled)
}

// settled forgets a settlement.
func (o *inFlightCalls) settled(s *settlement) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unsettled = slices.DeleteFunc(o.unsettled, func(other *settlement) bool { return other == s })
	o.notify()
}

// settlePending books what the store did not take before, or returns why it still does not.
func (g *Gateway) settlePending(ctx context.Context) error {
	var errs []error
	for _, s := range g.inFlight.unsettledCalls() {
		errs = append(errs, g.retrySettlement(ctx, s))
	}
	return errors.Join(errs...)
}

func (g *Gateway) retrySettlement(ctx context.Context, s *settlement) error {
	g.inFlight.ledger.Lock()
	defer g.inFlight.ledger.Unlock()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := g.storeSettlement(ctx, *s); err != nil {
		return err
	}
	g.inFlight.settled(s)
	return nil
}

// Recover books the calls that were in flight when errand last ended without booking them. What they cost is not known:
// it is estimated. Call it before the first call of a model comes in. What cannot be booked yet is tried again (see Run).
func (g *Gateway) Recover(ctx context.Context) error {
	if g.cfg.Journal == nil {
		return nil
	}
	rows, err := g.cfg.Journal.Reservations(ctx)
	if err != nil {
		return err
	}
	for _, r := range rows {
		c := &call{g: g, provider: r.Provider, up: g.cfg.Providers[r.Provider], entry: entry{key: r.Task, run: r.Run}}
		s := settlement{entry: c.entry, reservation: r.ID, cost: c.cost(lostUsage(r, g.now()))}
		g.inFlight.addUnsettled(s)
		g.cfg.Log.Warn().Str("task", s.key.String()).Str("run", s.run).Str("model", r.Model).Int64("micro_usd", s.cost.MicroUSD).
			Msg("tether: a call of a model was in flight when errand ended; booking its estimated cost")
	}
	if err := g.settlePending(ctx); err != nil {
		g.cfg.Log.Error().Err(err).Msg("tether: failed to book calls that were in flight when errand ended; retrying")
	}
	return nil
}

// lostUsage estimates what a call has used that errand's end cut off: the input by its length, the output by the time.
func lostUsage(r store.Reservation, now time.Time) modelapi.Usage {
	output := r.Output
	if took := now.Sub(r.At); took >= 0 { // else the clock was set
		output = min(output, lostOutputBase+int64(took.Seconds()*lostOutputPerSecond))
	}
	return modelapi.Usage{Model: r.Model, Input: r.Input, Output: output}
}

// Run retries what the store did not take, until ctx ends. Then it waits for the calls in flight, which end with their
// connections, to be booked.
func (g *Gateway) Run(ctx context.Context) error {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 100*time.Millisecond, 10*time.Second
	for ctx.Err() == nil {
		change := g.inFlight.changed()
		if len(g.inFlight.unsettledCalls()) == 0 {
			b.Reset()
			select {
			case <-ctx.Done():
			case <-change:
			}
			continue
		}
		timer := time.NewTimer(b.NextBackOff())
		select {
		case <-ctx.Done():
		case <-timer.C:
			_ = g.settlePending(ctx) // it was logged when it failed first
		}
		timer.Stop()
	}
	g.drain(context.WithoutCancel(ctx))
	return nil
}

// drain waits a moment for the calls in flight to end, and settles what is owed. What is left is booked at the next start.
func (g *Gateway) drain(ctx context.Context) {
	timer := time.NewTimer(storeTimeout)
	defer timer.Stop()
	for {
		change := g.inFlight.changed()
		if g.inFlight.count() == 0 {
			break
		}
		select {
		case <-change:
		case <-timer.C:
			return
		}
	}
	if err := g.settlePending(ctx); err != nil {
		g.cfg.Log.Warn().Err(err).Msg("tether: failed to book calls of models; they are booked at the next start")
	}
}

// count returns how many calls are in flight.
func (o *inFlightCalls) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all)
}
