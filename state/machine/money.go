package machine

import (
	"fmt"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// runOfEvent returns the run that the event is about, active or filed, or nil if the task has none with that ID.
func runOfEvent(c *change) *state.Run {
	if isActiveRun(c) {
		return c.t.Run
	}
	for i := range c.t.Runs {
		if c.t.Runs[i].ID == c.e.Run {
			return &c.t.Runs[i]
		}
	}
	return nil
}

// addCost adds the cost of a model call. The gateway's count replaces the agent's report.
func addCost(c *change) {
	r := runOfEvent(c)
	if !r.Metered {
		if !isActiveRun(c) { // filed with its agent's report, which is part of the task's sum
			c.t.Money.InputTokens -= r.Money.InputTokens
			c.t.Money.OutputTokens -= r.Money.OutputTokens
			c.t.Money.MicroUSD -= r.Money.MicroUSD
		}
		r.Metered, r.Money = true, state.Money{}
	}
	spent := of[event.ModelCalled](c)
	if spent.Money != (state.Money{}) { // otherwise the call was refused
		r.Answers++
		r.CallDenial, r.Unfinished = "", nil
	}
	r.Money.Add(spent.Money)
	c.t.Money.Add(spent.Money)
	switch h, w := r.RunDenial, spent.Waiting; {
	case w != nil && w.Kind == state.WaitRefused:
		r.CallDenial = w.Detail
	case w != nil && w.IsAboutAnswer():
		r.Unfinished = w
	case w != nil:
		if w.Kind == state.WaitTurns && !r.IsOutOfTurns() && isActiveRun(c) {
			c.scheduleDue(state.DueTurns, r.ID, c.e.Now.Add(turnsGrace))
		}
		r.RunDenial = w
	case h != nil && !h.Until.IsZero() && !h.Until.After(c.e.Now):
		r.RunDenial = nil // the limit has ended, and the model answers again
	}
}

// hasTemporaryDenial reports whether the run was refused model calls because of a limit that ends with time: a cap of all tasks
// together, or a limit or a refused key of the model's provider. The limit may have ended by the time that the agent
// ends.
func hasTemporaryDenial(c *change) bool {
	r := c.t.Run
	return r.RunDenial != nil && !r.RunDenial.Until.IsZero() && c.result.Class != state.RunSucceeded
}

// isAtCap reports whether the run was refused model calls because it, or its task, reached its own cap.
func isAtCap(c *change) bool {
	r, res := c.t.Run, c.result
	return r.RunDenial != nil && !r.IsOutOfTurns() && r.RunDenial.Until.IsZero() && res.Class != state.RunSucceeded &&
		res.Status != state.StatusVMLost
}

// waitForLimit interrupts the task until the limit that stopped its run has ended. It counts neither as a failure nor as an
// attempt.
func waitForLimit(c *change) {
	w := *c.t.Run.RunDenial
	c.t.Run.Attempt--
	closeRun(c)
	if w.Until.Before(c.e.Now) {
		w.Until = c.e.Now
	}
	c.interrupt(w.Detail, w.Until)
	c.t.Waiting.Kind, c.t.Waiting.Hint = w.Kind, w.Hint
	postWaitReason(c, w)
}

// postWaitReason posts the reason why a task waits, once, if a person must act.
func postWaitReason(c *change, w state.Waiting) {
	reason, ok := map[state.WaitKind]string{
		state.WaitBlocked: state.WaitingBlocked, state.WaitConfig: state.WaitingConfig, state.WaitText: state.WaitingText, state.WaitDisabled: state.WaitingDisabled, state.WaitKey: state.WaitingKey, state.WaitPermission: state.WaitingPermission,
	}[w.Kind]
	key := "waiting-" + string(w.Kind) + "-" + state.FreezeHash(w.Detail, "")[:8]
	if w.Kind == state.WaitPermission && c.t.Run != nil { // it may have been granted and withdrawn again
		key += "-" + c.t.Run.ID
		w.Detail = fmt.Sprintf("%s; run %d waits", w.Detail, len(c.t.Runs)+1)
	}
	if ok && c.markOnce(key) {
		c.enqueuePost(key, state.Post{Kind: state.PostWaiting, Reason: reason, Text: w.Detail, Hint: w.Hint, Items: w.Issues, URL: w.URL})
	}
}

// storeReportedCost stores the cost that an agent reports for its run, unless the gateway has counted it.
func storeReportedCost(c *change, r *state.Run, m state.Money) {
	if r.Metered {
		return
	}
	r.Money = m
	c.t.Money.Add(m)
}

// raiseBudget raises the cap; a task that stopped at it continues. A subscription has no cap in dollars, and not each task one on tokens.
func raiseBudget(c *change) {
	if c.o.MicroUSD > 0 && c.t.Money.Free() {
		c.reply(state.ReplyNoBudget)
		return
	}
	if c.o.Tokens > 0 && c.t.Money.CapTokens == 0 {
		c.reply(state.ReplyNoTokenCap)
		return
	}
	c.t.Money.CapMicroUSD += c.o.MicroUSD
	c.t.Money.CapTokens += c.o.Tokens
	c.t.MoreVMHours += c.o.VMHours
	c.reply(state.ReplyBudgetRaised)
	if c.t.Phase == state.PhaseFailed && endedAtCap(c) {
		c.resumePhase(c.e.By.Handle() + " raised the cap")
	}
}

// endedAtCap reports whether the task failed at the cap that a command raises.
func endedAtCap(c *change) bool {
	if c.o.VMHours > 0 {
		return c.t.End != nil && c.t.End.Class == state.ClassVMHours
	}
	n := len(c.t.Runs)
	return c.t.End != nil && c.t.End.Class == state.ClassBudget || n > 0 && c.t.Runs[n-1].Status == state.StatusBudget
}
