package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// capCheckInterval is how often the caps are checked while a stream sends nothing, because the model may be reasoning.
const capCheckInterval = 2 * time.Second

// A cutOff is the reason why errand ends a call in flight.
type cutOff struct {
	reached   *state.Waiting // the cap
	retryable bool           // the cap is only reached with the reservations of other calls; the program may retry, and its run continues
}

// storedCap returns the cap that is stored with the run, or nil. It may be called on nil.
func (o *cutOff) storedCap() *state.Waiting {
	if o == nil || o.retryable {
		return nil
	}
	return o.reached
}

// budgetReserved is the message for calls that are denied or ended because of the reservations of others.
const budgetReserved = "other calls in flight have reserved the rest of the budget"

// event returns the event that ends a stream.
func (o *cutOff) event(api modelapi.API) []byte {
	if o.retryable {
		return api.FailStream("rate_limit_error", "errand: "+budgetReserved)
	}
	return api.FailStream("permission_error", "errand: "+o.reached.Detail)
}

// answer answers a call that is ended before its answer has begun.
func (o *cutOff) answer(c *call, w http.ResponseWriter) {
	if o.retryable {
		c.answerDenial(w, newTemporaryDenial(budgetReserved))
		return
	}
	c.answerDenial(w, newCapDenial(o.reached.Detail, nil))
}

// passedCap returns the cap that a stream has reached, or nil. It counts booked costs and the usage of calls in flight;
// the cap is retryable if it is only reached with the reservations of calls that cannot be ended at a cap.
func (c *call) passedCap(ctx context.Context) (*cutOff, error) {
	c.g.inFlight.ledger.RLock()
	defer c.g.inFlight.ledger.RUnlock()
	t, err := c.g.cfg.Tasks.Task(ctx, c.task.Key)
	if err != nil || t == nil {
		return nil, err
	}
	for _, reserved := range []bool{false, true} {
		used := c.g.inFlight.capUse(c.task.Key, c.task.Run.ID, reserved)
		if t.Run == nil || t.Run.ID != c.task.Run.ID {
			used.run = state.Money{} // the call's run has ended: only the task's cap counts
		}
		why := t.Capped(used.task, used.run, state.Money{}, c.isFree())
		if why == nil {
			why, err = c.g.cfg.Ledger.CapReached(ctx, used.all, state.Money{}, c.isFree())
		}
		if why != nil || err != nil {
			return &cutOff{reached: why, retryable: reserved}, err
		}
	}
	return nil, nil
}

// capUse adds up the usage of calls in flight, including estimated hidden reasoning. With reserved, calls that are not
// streamed count with their reservations; otherwise they do not count.
func (o *inFlightCalls) capUse(key state.TaskKey, run string, reserved bool) (s totals) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		switch {
		case !c.billable || !c.entry.admitted:
		case c.request.Stream:
			m, _ := c.g.price(c.up, c.usedSoFar())
			s.add(c.entry, m, key, run)
		case reserved:
			s.add(c.entry, c.reservedCost(), key, run)
		}
	}
	s.addUnsettled(o, key, run)
	return s
}

// InFlightCost returns the cost of all calls in flight so far. It is not booked yet.
func (g *Gateway) InFlightCost() state.Money {
	return g.inFlight.capUse(state.TaskKey{}, "", false).all
}

// usedSoFar returns the usage of a stream so far. The caller holds the lock of the calls in flight.
func (c *call) usedSoFar() (u modelapi.Usage) {
	if c.forwardedAt.IsZero() {
		return u
	}
	if counter := c.entry.counter; counter != nil {
		if u = counter.Current(); counter.Final() {
			return u
		}
	}
	if u.Model == "" {
		u.Model = c.estimate.Model
	}
	u.Output = max(u.Output, c.hiddenTokens())
	return u
}

// enforceCaps ends a stream that reaches a cap, even while it sends nothing. The caller calls stop when the stream has
// ended.
func (c *call) enforceCaps(ctx context.Context, cut context.CancelFunc) (stop func()) {
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(capCheckInterval)
		defer ticker.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			reached, err := c.passedCap(ctx)
			if err != nil { // the next check may succeed
				c.g.cfg.Log.Warn().Err(err).Str("task", c.task.Key.String()).Msg("failed to check a stream against the caps; retrying")
			} else if reached != nil {
				c.cut.Store(reached)
				cut()
				return
			}
		}
	}()
	return func() {
		close(stopped)
		<-done
	}
}
