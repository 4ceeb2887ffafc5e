package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// Estimated output tokens of a call that was in flight when errand ended, at the start and per second. Nothing is known
// about the answer, so the estimate is higher than any model's rate; the request's output limit bounds it.
const (
	lostOutputBase      = 1000
	lostOutputPerSecond = 200
)

// A settlement ends a call: its cost is booked, or it was free; its reservation is deleted in both cases.
type settlement struct {
	entry
	reservation string // its ID; empty if there is none
	free        bool
	cost        state.Money
	wait        *state.Waiting // why the answer is incomplete; nil for a complete one
}

// reserve stores the call's reservation. A call whose reservation cannot be stored is not forwarded.
func (c *call) reserve(ctx context.Context) error {
	if !c.billable || c.g.cfg.Journal == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	c.reservation = rand.Text() // set before it is stored: it may be stored even if that returns an error
	return c.g.cfg.Journal.Reserve(ctx, store.Reservation{
		ID: c.reservation, Task: c.entry.key, Run: c.entry.run, At: c.g.now().UTC(),
		Provider: c.provider, Model: c.estimate.Model, Input: c.estimate.Input, Output: c.maxOutput,
	})
}

// settle ends a call in flight. A settlement that cannot be stored keeps counting, and is retried by Run.
func (c *call) settle(ctx context.Context, s settlement) {
	o := &c.g.inFlight
	if !s.free { // the cost moves from the calls in flight to the ledger, or to the unsettled calls
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
			Msg("failed to book a model call; retrying")
	}
}

// storeSettlement stores a settlement. It may be repeated: a reservation is booked once.
func (g *Gateway) storeSettlement(ctx context.Context, s settlement) error {
	if s.free {
		return g.cfg.Journal.Release(ctx, s.reservation)
	}
	err := g.cfg.Ledger.Record(ctx, UsageRecord{Task: s.key, Run: s.run, Reservation: s.reservation, Cost: s.cost, Wait: s.wait})
	if s.reservation != "" && errors.Is(err, store.ErrSpent) {
		return nil // an earlier attempt succeeded without reporting it
	}
	return err
}

// addUnsettled keeps a settlement that could not be stored.
func (o *inFlightCalls) addUnsettled(s settlement) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unsettled = append(o.unsettled, &s)
	o.notify()
}

// unsettledCalls returns the settlements that are not stored yet.
func (o *inFlightCalls) unsettledCalls() []*settlement {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.unsettled)
}

// removeSettlement removes a settlement that was stored.
func (o *inFlightCalls) removeSettlement(s *settlement) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unsettled = slices.DeleteFunc(o.unsettled, func(other *settlement) bool { return other == s })
	o.notify()
}

// settlePending retries all settlements that are not stored yet.
func (g *Gateway) settlePending(ctx context.Context) error {
	var errs []error
	for _, s := range g.inFlight.unsettledCalls() {
		errs = append(errs, g.retrySettlement(ctx, s))
	}
	return errors.Join(errs...)
}

// retrySettlement retries one settlement.
func (g *Gateway) retrySettlement(ctx context.Context, s *settlement) error {
	g.inFlight.ledger.Lock()
	defer g.inFlight.ledger.Unlock()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := g.storeSettlement(ctx, *s); err != nil {
		return err
	}
	g.inFlight.removeSettlement(s)
	return nil
}

// Recover books the estimated cost of the calls that were in flight when errand last ended. Call it before the first
// call of Serve. Run retries those that cannot be booked yet.
func (g *Gateway) Recover(ctx context.Context) error {
	if g.cfg.Journal == nil {
		return nil
	}
	rows, err := g.cfg.Journal.All(ctx)
	if err != nil {
		return err
	}
	for _, r := range rows {
		c := &call{g: g, provider: r.Provider, up: g.cfg.Providers[r.Provider], entry: entry{key: r.Task, run: r.Run}}
		s := settlement{entry: c.entry, reservation: r.ID, cost: c.cost(lostUsage(r, g.now()))}
		g.inFlight.addUnsettled(s)
		g.cfg.Log.Warn().Str("task", s.key.String()).Str("run", s.run).Str("model", r.Model).Int64("micro_usd", s.cost.MicroUSD).
			Msg("a model call was in flight when errand ended; booking its estimated cost")
	}
	if err := g.settlePending(ctx); err != nil {
		g.cfg.Log.Error().Err(err).Msg("failed to book model calls that were in flight when errand ended; retrying")
	}
	return nil
}

// lostUsage estimates the usage of a call that was in flight when errand ended: the input by its length, the output by
// the time.
func lostUsage(r store.Reservation, now time.Time) modelapi.Usage {
	output := r.Output
	if took := now.Sub(r.At); took >= 0 { // otherwise the clock was set back
		output = min(output, lostOutputBase+int64(took.Seconds()*lostOutputPerSecond))
	}
	return modelapi.Usage{Model: r.Model, Input: r.Input, Output: output}
}

// Run retries settlements that could not be stored, until ctx ends. Then it waits until the calls in flight, which end
// with their connections, are booked.
func (g *Gateway) Run(ctx context.Context) error {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 100*time.Millisecond, 10*time.Second
	for ctx.Err() == nil {
		change := g.inFlight.nextChange()
		if len(g.inFlight.unsettledCalls()) == 0 {
			b.Reset()
			select {
			case <-ctx.Done():
			case <-change:
			}
			continue
		}
		if clock.Sleep(ctx, b.NextBackOff()) == nil {
			_ = g.settlePending(ctx) // logged when it failed for the first time
		}
	}
	g.drain(context.WithoutCancel(ctx))
	return nil
}

// drain waits up to storeTimeout for the calls in flight to end, and stores the settlements. The rest is booked at the
// next start.
func (g *Gateway) drain(ctx context.Context) {
	timer := time.NewTimer(storeTimeout)
	defer timer.Stop()
	for {
		change := g.inFlight.nextChange()
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
		g.cfg.Log.Warn().Err(err).Msg("failed to book model calls; they will be booked at the next start")
	}
}

// count returns the number of calls in flight.
func (o *inFlightCalls) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all)
}
