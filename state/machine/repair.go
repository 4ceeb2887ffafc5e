package machine

import (
	"fmt"

	"github.com/errand-bot/errand/state"
)

// handleUnreadableBlock handles a closing block that cannot be parsed. A conclusion that the run reported with a tool replaces it.
// Otherwise the agent is asked to repeat it, and then the result contains the readable parts and a note.
func handleUnreadableBlock(c *change) {
	if c.result == nil || c.result.Broken == "" || !isActiveRun(c) {
		return
	}
	res := c.result
	switch r := c.t.Run; {
	case r.Conclusion != nil:
		res.Broken = ""
	case r.Repair != nil || reachedRunLimit(c):
		addUnreadableNote(res, r.Repair != nil)
		res.Broken = ""
	}
}

// addUnreadableNote adds a note to the agent's answer about how much of its conclusion is known.
func addUnreadableNote(r *state.RunResult, repaired bool) {
	again := ""
	if repaired {
		again = ", even after errand asked for it again"
	}
	treatment := "The outcome below is taken from its readable parts."
	if r.Guess {
		treatment = "errand treats the answer as a plan to build."
		if r.Outcome == "done" {
			treatment = "errand treats the work as finished."
		}
		treatment += " Please check whether that is right."
	}
	note := fmt.Sprintf("> **Note:** the block at the end of the agent's answer, which states its outcome, could not be read%s. %s", again, treatment)
	if r.Outcome == state.OutcomeQuestion || r.Outcome == state.OutcomeBlocked {
		r.Question = firstNonEmpty(r.Question, r.Text, r.Summary) + "\n\n" + note
		return
	}
	r.Text = firstNonEmpty(r.Text, r.Summary) + "\n\n" + note
}

// hasUnreadableBlock reports whether the run's closing block cannot be parsed.
func hasUnreadableBlock(c *change) bool { return c.result.Broken != "" }

// launchRepair launches a run that asks the agent to repeat the closing block. The rest of its answer is stored with that
// run, which also takes over the feedback to answer.
func launchRepair(c *change) {
	old, res := *c.t.Run, *c.result
	closeRun(c)
	c.launchRun(old.Kind)
	r := c.t.Run
	r.Repair = &state.Repair{Problem: res.Broken, Block: res.Block, Text: res.Text}
	r.Attempt, r.Repeat = old.Attempt, old.Repeat
	for i := range c.t.Feedback {
		if c.t.Feedback[i].TakenBy == old.ID {
			c.t.Feedback[i].TakenBy = r.ID
		}
	}
}

// dropRepairedText removes the answer that a run repaired, because the run's result contains it.
func dropRepairedText(c *change, r *state.Run, text string) {
	if r.Repair == nil {
		return
	}
	if n := len(c.t.Runs); n > 0 && text != "" {
		c.t.Runs[n-1].LastMessage = ""
	}
	r.Repair = nil
}
