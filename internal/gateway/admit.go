package gateway

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/errand-bot/errand/state"
)

// maxCalls is how many calls of models one run may have under way. One more waits.
const maxCalls = 16

// How long a call waits for those that came before it, unless it is configured, and after how many seconds its
// program is told to ask again then: soon, for each attempt waits as long anew.
const (
	defaultWait = 20 * time.Second
	askSoon     = "2"
)

// denial is why a call is not made. With again it is only for others that go on: the program asks once more, and
// the run does not end for it.
type denial struct {
	words string
	again bool
}

// admit returns why a call is denied, or nil. A streamed call passes if spend plus the reservations of earlier calls is
// below every cap: it is counted while it passes, and cut. Any other passes if every cap leaves enough for a useful answer,
// and its output is then bounded to what they leave. A call that would fit once earlier calls have finished waits for them,
// but not for long.
func (c *call) admit(ctx context.Context) (*denial, error) {
	timer := time.NewTimer(c.g.wait())
	defer timer.Stop()
	for last := false; ; {
		change := c.g.open.change()
		no, err := c.look(ctx)
		if no == nil || err != nil || !no.again || last {
			return no, err
		}
		select {
		case <-change:
		case <-timer.C:
			last = true
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (g *Gateway) wait() time.Duration {
	if g.cfg.Wait > 0 {
		return g.cfg.Wait
	}
	return defaultWait
}

// look is admit at this moment, by how the task stands now.
func (c *call) look(ctx context.Context) (*denial, error) {
	s, err := c.stand(ctx)
	switch {
	case err != nil:
		return nil, err
	case s.gone:
		return &denial{words: "only a run that goes on reaches the model"}, nil
	case s.capped != nil:
		return &denial{words: s.capped.Detail}, c.held(ctx, s.capped)
	}
	words, err := c.outOfTurns(ctx)
	switch {
	case err != nil:
		return nil, err
	case words != "":
		return &denial{words: words}, nil
	case c.bills && s.turns > 0 && c.g.turns.usedUpWith(c.place.run, c.task.Run.Answers, s.turns, c.task.Run.MaxTurns):
		return &denial{words: "the run's last turns are under way", again: true}, nil
	case s.full != nil:
		return &denial{words: "what other calls under way may cost leaves nothing for now", again: true}, nil
	case s.calls >= maxCalls:
		return &denial{words: fmt.Sprintf("a run has at most %d calls under way at once", maxCalls), again: true}, nil
	}
	c.g.open.admitted(c, c.lower(s.left))
	return nil, nil
}

// standing is how a call stands.
type standing struct {
	gone   bool           // its run does not go on
	capped *state.Waiting // a cap that is reached
	full   *state.Waiting // a cap that would be reached if the calls before it used all that they may
	left   state.Left     // what every cap leaves then
	before
}

// stand looks at one moment at what is booked and what is under way.
func (c *call) stand(ctx context.Context) (s standing, err error) {
	o := &c.g.open
	o.books.RLock()
	defer o.books.RUnlock()
	t, err := c.g.cfg.Tasks.Task(ctx, c.place.key)
	if err != nil {
		return s, err
	}
	if t == nil || t.Run == nil || t.Run.ID != c.place.run || t.Run.State == state.RunStopping || t.Run.State == state.RunEnded {
		return standing{gone: true}, nil
	}
	c.task = t
	used, need := o.used(c.place.key, c.place.run), c.needs(c.ask.Least)
	if s.capped, err = c.capped(ctx, used, need); s.capped != nil || err != nil {
		return s, err
	}
	if s.before = o.before(c); s.any > 0 && c.bills {
		need = c.needs(usual)
		if s.full = t.Capped(s.task, s.run, need, c.free()); s.full == nil {
			s.full, err = c.g.cfg.Ledger.Held(ctx, s.all, need, c.free())
		}
	}
	if s.full != nil || err != nil || !c.bills || c.ask.Streams {
		return s, err
	}
	s.left, err = c.g.cfg.Ledger.Left(ctx, s.all, c.free())
	s.left = s.left.Min(t.Left(s.task, s.run, c.free()))
	return s, err
}

// capped returns the cap that a call meets by what is used. One that is reached comes before one that leaves too little for
// the call: where all tasks have to wait for the next day, the task does as well, and does not fail for a smaller lack.
func (c *call) capped(ctx context.Context, used sums, need state.Money) (*state.Waiting, error) {
	for _, need := range []state.Money{{}, need} {
		if why := c.task.Capped(used.task, used.run, need, c.free()); why != nil {
			return why, nil
		}
		if why, err := c.heldByAll(ctx, used.all, need); why != nil || err != nil {
			return why, err
		}
	}
	return nil, nil
}

// held has the run remember what it is refused for.
func (c *call) held(ctx context.Context, why *state.Waiting) error {
	if h := c.task.Run.Held; h != nil && h.Kind == why.Kind && h.Until.Equal(why.Until) {
		return nil // it knows
	}
	return c.g.cfg.Ledger.Spend(ctx, c.place.key, c.place.run, "", state.Money{}, why)
}

// sayAgain has the program ask again.
func (c *call) sayAgain(w http.ResponseWriter, words string) {
	w.Header().Set("Retry-After", askSoon)
	if err := c.up.API.Fail(w, http.StatusTooManyRequests, "rate_limit_error", "errand: "+words); err != nil {
		c.g.cfg.Log.Debug().Err(err).Msg("tether: answer")
	}
}
