package machine

import "github.com/errand-bot/errand/state"

// setModel sets the model of the next runs, if it is available.
func setModel(c *change) {
	if m := c.p.Models; m != nil && !m.Offers(c.o.Arg) {
		c.reply(state.ReplyModelUnknown)
		return
	}
	c.t.Model = c.o.Arg
	c.reply(state.ReplyModelSet)
}

// storeLastMessage stores the last message of the last run's agent for a run in another session. The result of a planning
// run is in the plan.
func storeLastMessage(c *change, text string) {
	last := &c.t.Runs[len(c.t.Runs)-1]
	if text == "" || last.Kind != state.RunImplement && last.Kind != state.RunReview && last.Status != state.StatusContextOverflow {
		return
	}
	if r := []rune(text); len(r) > maxMessageLength {
		text = "… " + string(r[len(r)-maxMessageLength:])
	}
	last.LastMessage = text
	kept := 0
	for i := len(c.t.Runs) - 1; i >= 0; i-- {
		if c.t.Runs[i].LastMessage == "" {
			continue
		}
		if kept++; kept > maxMessageRuns {
			c.t.Runs[i].LastMessage = ""
		}
	}
}

// isFirstOverflow reports whether the run's conversation became too long for the first time in this work: a new session
// begins with less context, so it may succeed.
func isFirstOverflow(c *change) bool {
	if c.result.Status != state.StatusContextOverflow || reachedRunLimit(c) {
		return false
	}
	for i := len(c.t.Runs) - 1; i >= 0; i-- {
		r := &c.t.Runs[i]
		if r.Kind != c.t.Run.Kind || r.Class == state.RunSucceeded {
			return true
		}
		if r.Status == state.StatusContextOverflow {
			return false
		}
	}
	return true
}

// restartSession repeats the run in a new session, whose prompt contains the conversation so far.
func restartSession(c *change) {
	kind, lastMessage := c.t.Run.Kind, c.result.Summary
	closeRun(c)
	storeLastMessage(c, lastMessage)
	c.launchRun(kind)
	c.t.Run.Repeat = "its conversation became too long for the model, so this is a new one. Its changes are still in the checkout: review them with git status, git diff and git log before you continue"
}

// How much of the agents' last messages is stored with a task: characters per run, and runs.
const (
	maxMessageLength = 2000
	maxMessageRuns   = 6
)
