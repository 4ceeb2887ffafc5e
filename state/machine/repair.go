package machine

import (
	"fmt"

	"github.com/errand-bot/errand/state"
)

// unread handles a closing block that cannot be parsed. A conclusion that the run reported with a tool replaces it.
// Otherwise the agent is asked to repeat it, and then the result contains the readable parts and a note.
func unread(c *change) {
	if c.e.Kind != state.EventRunEnded || c.e.Result == nil || c.e.Result.Broken == "" || !thisRun(c) {
		return
	}
	res := *c.e.Result
	switch r := c.t.Run; {
	case r.Concluded != nil:
		res.Broken = ""
	case r.Repair != nil || tooMany(c):
		mind(&res, r.Repair != nil)
		res.Broken = ""
	}
	c.e.Result = &res
}

// mind adds a note to the agent's answer about how much of its conclusion is known.
func mind(r *state.RunResult, asked bool) {
	again := ""
	if asked {
		again = ", not even when it was asked for again"
	}
	what := "What became of it is what could still be told of the block."
	if r.Guess {
		what = "errand takes it for a plan to build."
		if r.Outcome == "done" {
			what = "errand takes it for work that is done."
		}
		what += " Look closely whether it is that."
	}
	note := fmt.Sprintf("> **Mind:** the block at the end of the agent's answer, which says what it concluded, could not be read%s. %s", again, what)
	if r.Outcome == "question" || r.Outcome == "blocked" {
		r.Question = sentence(r.Question, r.Text, r.Summary) + "\n\n" + note
		return
	}
	r.Text = sentence(r.Text, r.Summary) + "\n\n" + note
}

// cannotRead reports whether the run's closing block cannot be parsed.
func cannotRead(c *change) bool { return c.e.Result.Broken != "" }

// askAgain launches a run that asks the agent to repeat the closing block. The rest of its answer is stored with that
// run, which also takes over the feedback to answer.
func askAgain(c *change) {
	old, res := *c.t.Run, *c.e.Result
	file(c)
	c.launchRun(old.Kind)
	r := c.t.Run
	r.Repair = &state.Repair{Problem: res.Broken, Block: res.Block, Text: res.Text}
	r.Attempt, r.Repeat = old.Attempt, old.Repeat
	for i := range c.t.Feedback {
		if c.t.Feedback[i].Taken == old.ID {
			c.t.Feedback[i].Taken = r.ID
		}
	}
}

// fileRepair removes the answer that a run repaired, because the run's result contains it.
func fileRepair(c *change, r *state.Run, text string) {
	if r.Repair == nil {
		return
	}
	if n := len(c.t.Runs); n > 0 && text != "" {
		c.t.Runs[n-1].Said = ""
	}
	r.Repair = nil
}
