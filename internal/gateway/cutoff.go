package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// capCheckInterval is how often a stream that says nothing is held against the caps: its model may think.
const capCheckInterval = 2 * time.Second

// cutOff is why errand ends a call in flight. With soon, other calls in flight may come to use what is left: the program
// may ask again, and its run does not end for it.
type cutOff struct {
	reached   *state.Waiting
	retryable bool
}

// storedCap is what the call's run is to remember. It may be called on nil.
func (o *cutOff) storedCap() *state.Waiting {
	if o == nil || o.retryable {
		return nil
	}
	return o.reached
}

// budgetReserved is what a program is told whose call is cut for others in flight.
const budgetReserved = "what other calls under way may cost leaves nothing for now"

// event ends a stream.
func (o *cutOff) event(api modelapi.API) []byte {
	if o.retryable {
		return api.FailStream("rate_limit_error", "errand: "+budgetReserved)
	}
	return api.FailStream("permission_error", "errand: "+o.reached.Detail)
}

// answer is for a call that is cut before its answer has begun.
func (o *cutOff) answer(c *call, w http.ResponseWriter) {
	if o.retryable {
		c.answerDenial(w, notNow(budgetReserved))
		return
	}
	c.answerDenial(w, overBudget(o.reached.Detail, nil))
}

// passedCap returns the cap that a stream has come to, by what is booked now and what calls in flight have used; with soon,
// by what those in flight may use that cannot be cut. It is nil if there is none.
func (c *call) passedCap(ctx context.Context) (*cutOff, error) {
	c.g.inFlight.ledger.RLock()
	defer c.g.inFlight.ledger.RUnlock()
	t, err := c.g.cfg.Tasks.Task(ctx, c.task.Key)
	if err != nil || t == nil {
		return nil, err
	}
	for _, soon := range []bool{false, true} {
		used := c.g.inFlight.capUse(c.task.Key, c.task.Run.ID, soon)
		if t.Run == nil || t.Run.ID != c.task.Run.ID {
			used.run = state.Money{} // of a run that has ended: the task's cap counts
		}
		why := t.Capped(used.task, used.run, state.Money{}, c.free())
		if why == nil {
			why, err = c.g.cfg.Ledger.CapReached(ctx, used.all, state.Money{}, c.free())
		}
		if why != nil || err != nil {
			return &cutOff{reached: why, retryable: soon}, err
		}
	}
	return nil, nil
}

// capUse adds up what calls in flight have used, what their models may have thought unseen included; with whole also what
// those may come to use that cannot be cut.
func (o *inFlightCalls) capUse(key state.TaskKey, run string, whole bool) (s totals) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		switch {
		case !c.billable || !c.entry.admitted:
		case c.request.Stream:
			m, _ := c.g.price(c.up, c.usedSoFar())
			s.add(c.entry, m, key, run)
		case whole:
			s.add(c.entry, c.reservedCost(), key, run)
		}
	}
	s.addUnsettled(o, key, run)
	return s
}

// InFlightCost returns what calls in flight, of all tasks, have used beside what is booked.
func (g *Gateway) InFlightCost() state.Money {
	return g.inFlight.capUse(state.TaskKey{}, "", false).all
}

// usedSoFar is what a stream has used by now. The lock of open is held.
func (c *call) usedSoFar() (u modelapi.Usage) {
	if c.forwardedAt.IsZero() {
		return u
	}
	if by := c.entry.counter; by != nil {
		if u = by.Current(); by.Final() {
			return u
		}
	}
	if u.Model == "" {
		u.Model = c.estimate.Model
	}
	u.Output = max(u.Output, c.hiddenTokens())
	return u
}

// enforceCaps cuts a stream off that reaches a cap, also while it says nothing. It ends with what it returns.
func (c *call) enforceCaps(ctx context.Context, cut context.CancelFunc) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		every := time.NewTicker(capCheckInterval)
		defer every.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ctx.Done():
				return
			case <-every.C:
			}
			over, err := c.passedCap(ctx)
			if err != nil { // the next look may succeed
				c.g.cfg.Log.Warn().Err(err).Str("task", c.task.Key.String()).Msg("tether: look up what was spent")
			} else if over != nil {
				c.cut.Store(over)
				cut()
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}
