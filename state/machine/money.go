package machine

import (
	"fmt"

	"github.com/errand-bot/errand/state"
)

// runAsked returns the run that the event is about, active or filed, or nil if the task has none with that ID.
func runAsked(c *change) *state.Run {
	if thisRun(c) {
		return c.t.Run
	}
	for i := range c.t.Runs {
		if c.t.Runs[i].ID == c.e.Run {
			return &c.t.Runs[i]
		}
	}
	return nil
}

// spent adds the cost of a model call. The gateway's count replaces the agent's report.
func spent(c *change) {
	r := runAsked(c)
	if !r.Metered {
		if !thisRun(c) { // filed with its agent's report, which is part of the task's sum
			c.t.Money.InputTokens -= r.Money.InputTokens
			c.t.Money.OutputTokens -= r.Money.OutputTokens
			c.t.Money.MicroUSD -= r.Money.MicroUSD
		}
		r.Metered, r.Money = true, state.Money{}
	}
	if *c.e.Money != (state.Money{}) { // otherwise the call was refused
		r.Answers++
		r.Denied, r.Unfinished = "", nil
	}
	r.Money.Add(*c.e.Money)
	c.t.Money.Add(*c.e.Money)
	switch h := r.Held; {
	case c.e.Waiting != nil && c.e.Waiting.Kind == state.WaitRefused:
		r.Denied = c.e.Waiting.Detail
	case c.e.Waiting != nil && c.e.Waiting.Answer():
		r.Unfinished = c.e.Waiting
	case c.e.Waiting != nil:
		if c.e.Waiting.Kind == state.WaitTurns && !r.RefusedTurns() && thisRun(c) {
			c.due(state.DueTurns, r.ID, c.e.Now.Add(turnsGrace))
		}
		r.Held = c.e.Waiting
	case h != nil && !h.Until.IsZero() && !h.Until.After(c.e.Now):
		r.Held = nil // the limit has ended, and the model answers again
	}
}

// held reports whether the run was refused model calls because of a limit that ends with time: a cap of all tasks
// together, or a limit or a refused key of the model's provider. The limit may have ended by the time that the agent
// ends.
func held(c *change) bool {
	r := c.t.Run
	return r.Held != nil && !r.Held.Until.IsZero() && c.e.Result.Class != "success"
}

// atCap reports whether the run was refused model calls because it, or its task, reached its own cap.
func atCap(c *change) bool {
	r, res := c.t.Run, c.e.Result
	return r.Held != nil && !r.RefusedTurns() && r.Held.Until.IsZero() && res.Class != "success" && res.Status != state.StatusVMLost
}

// wait interrupts the task until the limit that stopped its run has ended. It counts neither as a failure nor as an
// attempt.
func wait(c *change) {
	w := *c.t.Run.Held
	c.t.Run.Attempt--
	file(c)
	if w.Until.Before(c.e.Now) {
		w.Until = c.e.Now
	}
	c.interrupt(w.Detail, w.Until)
	c.t.Waiting.Kind, c.t.Waiting.Hint = w.Kind, w.Hint
	tell(c, w)
}

// tell posts the reason why a task waits, once, if a person must act.
func tell(c *change, w state.Waiting) {
	reason, ok := map[state.WaitKind]string{
		state.WaitBlocked: state.WaitingBlocked, state.WaitConfig: state.WaitingConfig, state.WaitText: state.WaitingText, state.WaitDisabled: state.WaitingDisabled, state.WaitKey: state.WaitingKey, state.WaitPermission: state.WaitingPermission,
	}[w.Kind]
	key := "waiting-" + string(w.Kind) + "-" + state.FreezeHash(w.Detail, "")[:8]
	if w.Kind == state.WaitPermission && c.t.Run != nil { // it may have been granted and withdrawn again
		key += "-" + c.t.Run.ID
		w.Detail = fmt.Sprintf("%s; run %d waits", w.Detail, len(c.t.Runs)+1)
	}
	if ok && c.once(key) {
		c.post(key, state.Post{Kind: state.PostWaiting, Reason: reason, Text: w.Detail, Hint: w.Hint, Items: w.Issues, URL: w.URL})
	}
}

// reported stores the cost that an agent reports for its run, unless the gateway has counted it.
func reported(c *change, r *state.Run, m state.Money) {
	if r.Metered {
		return
	}
	r.Money = m
	c.t.Money.Add(m)
}
