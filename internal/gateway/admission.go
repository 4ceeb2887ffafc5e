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
	defaultQueueTimeout = 20 * time.Second
	retrySoon           = "2"
)

// denial is why a call is not made. With again it is only for others that go on: the program asks once more, and
// the run does not end for it.
type denial struct {
	message   string
	retryable bool
}

// authorize returns why a call is denied, or nil. A streamed call passes if spend plus the reservations of earlier calls is
// below every cap: it is counted while it passes, and cut. Any other passes if every cap leaves enough for a useful answer,
// and its output is then bounded to what they leave. A call that would fit once earlier calls have finished waits for them,
// but not for long.
func (c *call) authorize(ctx context.Context) (*denial, error) {
	timer := time.NewTimer(c.g.queueTimeout())
	defer timer.Stop()
	for last := false; ; {
		change := c.g.inFlight.changed()
		no, err := c.look(ctx)
		if no == nil || err != nil || !no.retryable || last {
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

func (g *Gateway) queueTimeout() time.Duration {
	if g.cfg.QueueTimeout > 0 {
		return g.cfg.QueueTimeout
	}
	return defaultQueueTimeout
}

// look is admit at this moment, by how the task stands now.
func (c *call) look(ctx context.Context) (*denial, error) {
	s, err := c.stand(ctx)
	switch {
	case err != nil:
		return nil, err
	case s.gone:
		return &denial{message: "only a run that goes on reaches the model"}, nil
	case s.capped != nil:
		return &denial{message: s.capped.Detail}, c.held(ctx, s.capped)
	}
	words, err := c.outOfTurns(ctx)
	switch {
	case err != nil:
		return nil, err
	case words != "":
		return &denial{message: words}, nil
	case c.billable && s.turnsOfRun > 0 && c.g.turns.usedUpByCalls(c.entry.run, c.task.Run.Answers, s.turnsOfRun, c.task.Run.MaxTurns):
		return &denial{message: "the run's last turns are under way", retryable: true}, nil
	case s.full != nil:
		return &denial{message: "what other calls under way may cost leaves nothing for now", retryable: true}, nil
	case s.ofRun >= maxCalls:
		return &denial{message: fmt.Sprintf("a run has at most %d calls under way at once", maxCalls), retryable: true}, nil
	}
	c.g.inFlight.admit(c, c.outputLimit(s.left))
	return nil, nil
}

// standing is how a call stands.
type standing struct {
	gone   bool           // its run does not go on
	capped *state.Waiting // a cap that is reached
	full   *state.Waiting // a cap that would be reached if the calls before it used all that they may
	left   state.Left     // what every cap leaves then
	earlierCalls
}

// stand looks at one moment at what is booked and what is under way.
func (c *call) stand(ctx context.Context) (s standing, err error) {
	o := &c.g.inFlight
	o.ledger.RLock()
	defer o.ledger.RUnlock()
	t, err := c.g.cfg.Tasks.Task(ctx, c.entry.key)
	if err != nil {
		return s, err
	}
	if t == nil || t.Run == nil || t.Run.ID != c.entry.run || t.Run.State == state.RunStopping || t.Run.State == state.RunEnded {
		return standing{gone: true}, nil
	}
	c.task = t
	used, need := o.knownUse(c.entry.key, c.entry.run), c.minimumCost(c.request.Least)
	if s.capped, err = c.reachedCap(ctx, used, need); s.capped != nil || err != nil {
		return s, err
	}
	if s.earlierCalls = o.earlierThan(c); s.count > 0 && c.billable {
		need = c.minimumCost(usualOutput)
		if s.full = t.Capped(s.task, s.run, need, c.free()); s.full == nil {
			s.full, err = c.g.cfg.Ledger.Held(ctx, s.all, need, c.free())
		}
	}
	if s.full != nil || err != nil || !c.billable || c.request.Streams {
		return s, err
	}
	s.left, err = c.g.cfg.Ledger.Left(ctx, s.all, c.free())
	s.left = s.left.Min(t.Left(s.task, s.run, c.free()))
	return s, err
}

// reachedCap returns the cap that a call meets by what is used. One that is reached comes before one that leaves too little for
// the call: where all tasks have to wait for the next day, the task does as well, and does not fail for a smaller lack.
func (c *call) reachedCap(ctx context.Context, used totals, need state.Money) (*state.Waiting, error) {
	for _, need := range []state.Money{{}, need} {
		if why := c.task.Capped(used.task, used.run, need, c.free()); why != nil {
			return why, nil
		}
		if why, err := c.globalCap(ctx, used.all, need); why != nil || err != nil {
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
	return c.g.cfg.Ledger.Spend(ctx, c.entry.key, c.entry.run, "", state.Money{}, why)
}

// denyForNow has the program ask again.
func (c *call) denyForNow(w http.ResponseWriter, words string) {
	w.Header().Set("Retry-After", retrySoon)
	if err := c.up.API.Fail(w, http.StatusTooManyRequests, "rate_limit_error", "errand: "+words); err != nil {
		c.g.cfg.Log.Debug().Err(err).Msg("tether: answer")
	}
}
