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
	writesAtOnce  = 1000
	writesASecond = 200
)

// settlement is what becomes of a call's reservation: the cost is booked, or the call was free and nothing is.
type settlement struct {
	place
	reservation string
	free        bool
	cost        state.Money
	held        *state.Waiting
}

// reserve stores that the call is about to be passed on. A call that cannot be stored is not passed on.
func (c *call) reserve(ctx context.Context) error {
	if !c.bills || c.g.cfg.Journal == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, spendTimeout)
	defer cancel()
	c.reservation = rand.Text() // from here on: after an error it may be stored all the same
	return c.g.cfg.Journal.Reserve(ctx, store.Reservation{
		ID: c.reservation, Task: c.place.key, Run: c.place.run, At: c.g.now().UTC(),
		Provider: c.name, Model: c.guess.Model, Input: c.guess.Input, Output: c.most,
	})
}

// settle ends a call in flight. What the store does not take counts on, and is tried again (see Run).
func (c *call) settle(ctx context.Context, s settlement) {
	o := &c.g.open
	if !s.free { // the cost goes from the calls in flight to the books, or to what is owed
		o.books.Lock()
		defer o.books.Unlock()
	}
	defer o.drop(c)
	s.place, s.reservation, c.reservation = c.place, c.reservation, ""
	if s.free && s.reservation == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spendTimeout)
	defer cancel()
	if err := c.g.store(ctx, s); err != nil {
		o.owe(s)
		c.g.cfg.Log.Error().Err(err).Str("task", s.key.String()).Str("run", s.run).Int64("micro_usd", s.cost.MicroUSD).
			Msg("tether: failed to book a call of a model; retrying")
	}
}

// store writes a settlement. It may be repeated: a reservation is booked once.
func (g *Gateway) store(ctx context.Context, s settlement) error {
	if s.free {
		return g.cfg.Journal.Release(ctx, s.reservation)
	}
	err := g.cfg.Ledger.Spend(ctx, s.key, s.run, s.reservation, s.cost, s.held)
	if s.reservation != "" && errors.Is(err, store.ErrSpent) {
		return nil // by an attempt whose success was not reported
	}
	return err
}

// owe keeps what the store did not take.
func (o *open) owe(s settlement) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owed = append(o.owed, &s)
	o.tell()
}

// owes returns what the store has not taken.
func (o *open) owes() []*settlement {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.owed)
}

// paid forgets a settlement.
func (o *open) paid(s *settlement) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owed = slices.DeleteFunc(o.owed, func(other *settlement) bool { return other == s })
	o.tell()
}

// settleOwed books what the store did not take before, or returns why it still does not.
func (g *Gateway) settleOwed(ctx context.Context) error {
	var errs []error
	for _, s := range g.open.owes() {
		errs = append(errs, g.settleAgain(ctx, s))
	}
	return errors.Join(errs...)
}

func (g *Gateway) settleAgain(ctx context.Context, s *settlement) error {
	g.open.books.Lock()
	defer g.open.books.Unlock()
	ctx, cancel := context.WithTimeout(ctx, spendTimeout)
	defer cancel()
	if err := g.store(ctx, *s); err != nil {
		return err
	}
	g.open.paid(s)
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
		c := &call{g: g, name: r.Provider, up: g.cfg.Models[r.Provider], place: place{key: r.Task, run: r.Run}}
		s := settlement{place: c.place, reservation: r.ID, cost: c.cost(lost(r, g.now()))}
		g.open.owe(s)
		g.cfg.Log.Warn().Str("task", s.key.String()).Str("run", s.run).Str("model", r.Model).Int64("micro_usd", s.cost.MicroUSD).
			Msg("tether: a call of a model was in flight when errand ended; booking its estimated cost")
	}
	if err := g.settleOwed(ctx); err != nil {
		g.cfg.Log.Error().Err(err).Msg("tether: failed to book calls that were in flight when errand ended; retrying")
	}
	return nil
}

// lost estimates what a call has used that errand's end cut off: the input by its length, the output by the time.
func lost(r store.Reservation, now time.Time) modelapi.Usage {
	output := r.Output
	if took := now.Sub(r.At); took >= 0 { // else the clock was set
		output = min(output, writesAtOnce+int64(took.Seconds()*writesASecond))
	}
	return modelapi.Usage{Model: r.Model, Input: r.Input, Output: output}
}

// Run retries what the store did not take, until ctx ends. Then it waits for the calls in flight, which end with their
// connections, to be booked.
func (g *Gateway) Run(ctx context.Context) error {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 100*time.Millisecond, 10*time.Second
	for ctx.Err() == nil {
		change := g.open.change()
		if len(g.open.owes()) == 0 {
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
			_ = g.settleOwed(ctx) // it was logged when it failed first
		}
		timer.Stop()
	}
	g.finish(context.WithoutCancel(ctx))
	return nil
}

// finish waits a moment for the calls in flight to end, and settles what is owed. What is left is booked at the next start.
func (g *Gateway) finish(ctx context.Context) {
	timer := time.NewTimer(spendTimeout)
	defer timer.Stop()
	for {
		change := g.open.change()
		if g.open.count() == 0 {
			break
		}
		select {
		case <-change:
		case <-timer.C:
			return
		}
	}
	if err := g.settleOwed(ctx); err != nil {
		g.cfg.Log.Warn().Err(err).Msg("tether: failed to book calls of models; they are booked at the next start")
	}
}

// count returns how many calls are in flight.
func (o *open) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all)
}
