package gateway

import (
	"context"
	"time"

	"github.com/errand-bot/errand/state"
)

// maxCalls is the maximum number of model calls of one run in flight. One more waits.
const maxCalls = 16

// defaultQueueTimeout is how long a call waits for earlier ones, unless it is configured.
const defaultQueueTimeout = 20 * time.Second

// authorize admits the call, or returns why it is denied.
//
// A streamed call is admitted if spend plus the reservations of earlier calls in flight is below every cap: it is
// counted while it passes, and ended at a cap. Any other call is admitted if every cap leaves enough for a useful
// answer, and its output is limited to that. A call that would fit once earlier calls have finished waits for them up
// to the queue timeout, and is then denied temporarily.
func (c *call) authorize(ctx context.Context) (*denial, error) {
	timer := time.NewTimer(c.g.queueTimeout())
	defer timer.Stop()
	for last := false; ; {
		change := c.g.inFlight.nextChange()
		s, err := c.readStanding(ctx)
		if err != nil {
			return nil, err
		}
		d := firstDenial(admissionRules, s)
		if d == nil {
			c.g.inFlight.markAdmitted(c, c.outputLimit(s.left))
			return nil, nil
		}
		if !d.isTemporary() || last {
			return d, nil
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

// A standing is everything that the admission of a call depends on, read at one moment.
type standing struct {
	run            *state.Run      // nil if it has ended or is being stopped; the other fields are not set then
	cap            *state.Waiting  // a cap that is reached, or leaves less than the call's minimum; the following fields are not set then
	turns          int             // answers of the model to the run
	turnsInFlight  int             // earlier calls that may become turns; 0 if this call is not billable
	callsInFlight  int             // earlier calls of the run
	budgetReserved bool            // earlier calls of all runs may use up a cap
	left           state.Remaining // the budget that every cap leaves, with earlier calls at their reservations
}

// readStanding reads the standing of the call.
func (c *call) readStanding(ctx context.Context) (*standing, error) {
	o := &c.g.inFlight
	o.ledger.RLock()
	defer o.ledger.RUnlock()
	t, err := c.g.cfg.Tasks.Task(ctx, c.entry.key)
	if err != nil {
		return nil, err
	}
	if t == nil || t.Run == nil || t.Run.ID != c.entry.run || t.Run.State == state.RunStopping || t.Run.State == state.RunEnded {
		return &standing{}, nil
	}
	c.task = t
	s := &standing{run: t.Run}
	known, least := o.knownUse(c.entry.key, c.entry.run), c.minimumCost(c.request.MinOutput)
	if s.cap, err = c.reachedCap(ctx, known, least); s.cap != nil || err != nil {
		return s, err
	}
	earlier := o.earlierThan(c)
	s.callsInFlight = earlier.ofRun
	if c.billable {
		s.turnsInFlight = earlier.turnsOfRun
	}
	s.turns = c.g.turns.count(c.entry.run, t.Run.Answers)
	if s.budgetReserved, err = c.reservedByOthers(ctx, earlier); s.budgetReserved || err != nil {
		return s, err
	}
	s.left, err = c.budgetLeft(ctx, earlier)
	return s, err
}

// reachedCap returns a cap that is reached, or else one that leaves less than need. The caps of all tasks are checked
// for the former before any is for the latter: if all tasks have to wait for the next day, this one waits, too, and
// does not fail.
func (c *call) reachedCap(ctx context.Context, used totals, need state.Money) (*state.Waiting, error) {
	for _, need := range []state.Money{{}, need} {
		if why := c.task.Capped(used.task, used.run, need, c.isFree()); why != nil {
			return why, nil
		}
		if why, err := c.globalCap(ctx, used.all, need); why != nil || err != nil {
			return why, err
		}
	}
	return nil, nil
}

// globalCap returns why no task may make calls, or nil: a cap of all together, or a key that the provider refuses. A
// known limit of the provider does not: it may concern another model, and the provider's own answer describes it best.
func (c *call) globalCap(ctx context.Context, used, need state.Money) (*state.Waiting, error) {
	reached, err := c.g.cfg.Ledger.CapReached(ctx, used, need, c.isFree())
	if err != nil || reached != nil || c.g.cfg.ProviderStates == nil {
		return reached, err
	}
	if c.knownState, err = c.g.cfg.ProviderStates.Get(ctx, c.provider); err != nil {
		return nil, err
	}
	if u := c.knownState; u != nil && u.Kind == state.WaitKey && u.Until.After(c.g.now()) {
		return u.Waiting(), nil
	}
	return nil, nil
}

// reservedByOthers reports whether earlier calls may leave less than the call needs for a usual answer.
func (c *call) reservedByOthers(ctx context.Context, earlier earlierCalls) (bool, error) {
	if earlier.count == 0 || !c.billable {
		return false, nil
	}
	need := c.minimumCost(usualOutput)
	if c.task.Capped(earlier.task, earlier.run, need, c.isFree()) != nil {
		return true, nil
	}
	reached, err := c.g.cfg.Ledger.CapReached(ctx, earlier.all, need, c.isFree())
	return reached != nil, err
}

// budgetLeft returns the budget that every cap leaves for a call that is not streamed, whose output is limited to it.
func (c *call) budgetLeft(ctx context.Context, earlier earlierCalls) (state.Remaining, error) {
	if !c.billable || c.request.Stream {
		return state.Remaining{}, nil
	}
	left, err := c.g.cfg.Ledger.Left(ctx, earlier.all, c.isFree())
	return left.Min(c.task.Remaining(earlier.task, earlier.run, c.isFree())), err
}
