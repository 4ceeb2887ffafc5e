package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// watchEvery is how often a stream that says nothing is held against the caps: its model may think.
const watchEvery = 2 * time.Second

// cutOff is why errand ends a call in flight. With soon, other calls in flight may come to use what is left: the program
// may ask again, and its run does not end for it.
type cutOff struct {
	why  *state.Waiting
	soon bool
}

// held is what the call's run is to remember. It may be called on nil.
func (o *cutOff) held() *state.Waiting {
	if o == nil || o.soon {
		return nil
	}
	return o.why
}

// soonAgain is what a program is told whose call is cut for others in flight.
const soonAgain = "what other calls under way may cost leaves nothing for now"

// event ends a stream.
func (o *cutOff) event(api modelapi.API) []byte {
	if o.soon {
		return api.FailStream("rate_limit_error", "errand: "+soonAgain)
	}
	return api.FailStream("permission_error", "errand: "+o.why.Detail)
}

// answer is for a call that is cut before its answer has begun.
func (o *cutOff) answer(c *call, w http.ResponseWriter) {
	if o.soon {
		c.sayAgain(w, soonAgain)
		return
	}
	if err := c.up.API.Refuse(w, "permission_error", "errand: "+o.why.Detail); err != nil {
		c.g.cfg.Log.Debug().Err(err).Msg("tether: answer")
	}
}

// overCap returns the cap that a stream has come to, by what is booked now and what calls in flight have used; with soon,
// by what those in flight may use that cannot be cut. It is nil if there is none.
func (c *call) overCap(ctx context.Context) (*cutOff, error) {
	c.g.open.books.RLock()
	defer c.g.open.books.RUnlock()
	t, err := c.g.cfg.Tasks.Task(ctx, c.task.Key)
	if err != nil || t == nil {
		return nil, err
	}
	for _, soon := range []bool{false, true} {
		used := c.g.open.taken(c.task.Key, c.task.Run.ID, soon)
		if t.Run == nil || t.Run.ID != c.task.Run.ID {
			used.run = state.Money{} // of a run that has ended: the task's cap counts
		}
		why := t.Capped(used.task, used.run, state.Money{}, c.free())
		if why == nil {
			why, err = c.g.cfg.Ledger.Held(ctx, used.all, state.Money{}, c.free())
		}
		if why != nil || err != nil {
			return &cutOff{why: why, soon: soon}, err
		}
	}
	return nil, nil
}

// taken adds up what calls in flight have used, what their models may have thought unseen included; with whole also what
// those may come to use that cannot be cut.
func (o *open) taken(key state.TaskKey, run string, whole bool) (s sums) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		switch {
		case !c.bills || !c.place.admitted:
		case c.ask.Streams:
			m, _ := c.g.price(c.up, c.soFar())
			s.add(c.place, m, key, run)
		case whole:
			s.add(c.place, c.reserved(), key, run)
		}
	}
	s.addOwed(o, key, run)
	return s
}

// InFlight returns what calls in flight, of all tasks, have used beside what is booked.
func (g *Gateway) InFlight() state.Money { return g.open.taken(state.TaskKey{}, "", false).all }

// soFar is what a stream has used by now. The lock of open is held.
func (c *call) soFar() (u modelapi.Usage) {
	if c.asks.IsZero() {
		return u
	}
	if by := c.place.counter; by != nil {
		if u = by.Running(); by.Over() {
			return u
		}
	}
	if u.Model == "" {
		u.Model = c.guess.Model
	}
	u.Output = max(u.Output, c.unseen())
	return u
}

// watch cuts a stream off that reaches a cap, also while it says nothing. It ends with what it returns.
func (c *call) watch(ctx context.Context, cut context.CancelFunc) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		every := time.NewTicker(watchEvery)
		defer every.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ctx.Done():
				return
			case <-every.C:
			}
			over, err := c.overCap(ctx)
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
