package machine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Limits on the messages that interrupt runs. Conditions of a plan are in every prompt and are never shortened.
const (
	MaxMessages     = 20      // that are stored with the task
	MaxMessageBytes = 8 << 10 // of one of them
)

// steers reports whether a comment is a message that interrupts the agent. While the task is paused, no run may begin.
func steers(c *change) bool {
	r := c.t.Run
	return isMention(c) && !c.o.After && r != nil && r.Kind != state.RunCheck &&
		(r.State == state.RunLaunching || r.State == state.RunActive && c.t.Waiting == nil)
}

// steer stores a message for the agent and arranges that its run is interrupted. While a plan is implemented, the message is a
// condition of the plan.
func steer(c *change) {
	c.react(state.ReactionEyes)
	if reason := messageRefusal(c); reason != "" {
		c.keepForEnd()
		c.reply(reason)
		return
	}
	f := commentFeedback(c)
	f.Steers = true
	if c.t.Phase == state.PhaseImplementing {
		f.Kind = state.FeedbackCondition
	}
	c.feedback(f)
	c.extendSteering()
}

// messageRefusal returns the reason why a message waits for the run's end instead of interrupting it, or "".
func messageRefusal(c *change) string {
	n := 0
	for _, f := range c.t.Feedback {
		if f.Steers {
			n++
		}
	}
	switch {
	case n >= MaxMessages:
		return state.ReplyMessagesFull
	case len(commandText(c)) > MaxMessageBytes:
		return state.ReplyMessageLong
	}
	return ""
}

// keepForEnd stores a comment that no run receives before the present one has ended by itself.
func (c *change) keepForEnd() {
	f := commentFeedback(c)
	f.After = true
	c.feedback(f)
}

// releaseKept lets the next run receive the messages that waited for a run's end.
func (c *change) releaseKept() {
	for i := range c.t.Feedback {
		c.t.Feedback[i].After = false
	}
}

// gatherSteering is the time in which more messages to a working agent are gathered, and latestSteering that after the first of
// them within which its run is interrupted, whether or not a tool is being executed.
func (p Policy) gatherSteering() time.Duration { return p.GatherTalk / 6 }
func (p Policy) latestSteering() time.Duration { return p.GatherTalk }

// extendSteering waits for further messages to the active run. Messages to a run that is being launched are in its prompt, or
// found by takeFeedback.
func (c *change) extendSteering() {
	r := c.t.Run
	if r.State != state.RunActive || r.Steering != nil && r.Steering.Ready {
		return
	}
	s := state.Steering{Since: c.e.Now}
	if r.Steering != nil {
		s.Since = r.Steering.Since
	}
	s.Until = c.e.Now.Add(c.p.gatherSteering())
	if latest := s.Since.Add(c.p.latestSteering()); s.Until.After(latest) {
		s.Until = latest
	}
	r.Steering = &s
	c.scheduleDue(state.DueSteer, r.ID, s.Until) // one at a time; an early one is scheduled again
}

// isSteering reports whether a delayed job is about messages to the active run.
func isSteering(c *change) bool {
	return isDue(state.DueSteer)(c) && c.t.Run != nil && c.t.Run.ID == of[event.Due](c).Run && c.t.Run.Steering != nil
}

// readMessages takes the messages as they are now, and lets the run be interrupted when its agent executes no tool. If that takes
// too long, it is interrupted in any case. Messages that wait while the task is paused are kept.
func readMessages(c *change) {
	s := c.t.Run.Steering
	latest := s.Since.Add(c.p.latestSteering())
	if c.e.Now.Before(s.Until) {
		c.scheduleDue(state.DueSteer, c.t.Run.ID, s.Until)
		return
	}
	applyReread(c)
	switch {
	case len(c.t.Undelivered()) == 0 || c.t.Waiting != nil:
		c.t.Run.Steering = nil
	case c.e.Now.Before(latest):
		s.Ready = true
		c.scheduleDue(state.DueSteer, c.t.Run.ID, latest)
	default:
		interruptForMessages(c)
	}
}

// isBetweenTools reports whether messages wait for the active run, and its agent executes no tool.
func isBetweenTools(c *change) bool {
	s := c.t.Run.Steering
	return of[event.Progress](c).Between && s != nil && s.Ready && c.t.Waiting == nil && len(c.t.Undelivered()) > 0
}

// interruptBetweenTools interrupts the active run after its progress has been stored.
func interruptBetweenTools(c *change) {
	storeProgress(c)
	interruptForMessages(c)
}

// leastTurns is the number of turns that a run has at least after an interruption.
const leastTurns = 5

// interruptForMessages stops the active run and continues its session with the messages. That is no failure: attempts, turns,
// money and time count on.
func interruptForMessages(c *change) {
	old, by := *c.t.Run, c.t.Undelivered()[0].By
	c.stopRun("a message by @" + by.Login)
	stop := &c.jobs[len(c.jobs)-1]
	stop.Args.Continues = true
	stop.Key += "-to-continue" // if the task ends meanwhile, a job of its own saves the work
	c.fileRun("interrupted for a message by @" + by.Login)
	c.launchRun(old.Kind)
	c.t.Run.Attempt, c.t.Run.Repeat = old.Attempt, old.Repeat
	if old.TurnLimit > 0 && old.Repair == nil {
		c.t.Turns = max(old.TurnLimit-cmp.Or(old.Answers, old.Turns), leastTurns)
	}
}

// missesMessages reports whether a run succeeded before it could be interrupted for messages.
func missesMessages(c *change) bool {
	return c.result.Class == state.RunSucceeded && c.t.Waiting == nil && len(c.t.Undelivered()) > 0
}

// continueWithMessages continues a run that has ended with the messages that came too late to interrupt it.
func continueWithMessages(c *change) {
	kind, asked := c.t.Run.Kind, c.t.Asked
	closeRun(c)
	c.t.Asked = asked
	c.launchRun(kind)
}

// fileRun files the present run as interrupted. Its result may still arrive.
func (c *change) fileRun(reason string) {
	r := c.t.Run
	if r.State == state.RunActive {
		c.t.Active += max(c.e.Now.Sub(r.Started), 0)
	}
	r.State, r.Ended, r.Message, r.Class, r.Status = state.RunEnded, c.e.Now, reason, state.RunRetryable, state.StatusInterrupted
	r.Calls, r.Conclusion, r.Repair, r.Steering = nil, nil, nil, nil
	c.t.Runs = append(c.t.Runs, *r)
	c.t.Run = nil
}

// takeFeedback stores which feedback is in the prompt of the run that was launched. 👀 on a delivered message becomes 👍; messages
// that came after the prompt was written interrupt the run.
func (c *change) takeFeedback(ids []string) {
	for i := range c.t.Feedback {
		f := &c.t.Feedback[i]
		if !slices.Contains(ids, f.ID) {
			continue
		}
		if id, ok := strings.CutPrefix(f.ID, "comment:"); ok && f.Steers && f.TakenBy == "" {
			c.approveComment(id)
		}
		f.TakenBy = c.t.Run.ID
	}
	if len(c.t.Undelivered()) > 0 {
		c.extendSteering()
	}
}

// pendingComment returns the index of the feedback of a comment, if no run has received it yet, else -1.
func pendingComment(c *change, comment int64) int {
	return slices.IndexFunc(c.t.Feedback, func(f state.Feedback) bool { return f.TakenBy == "" && f.ID == commentID(comment) })
}

// releaseConditions turns the messages that were conditions of an approved plan into comments on the next one.
func releaseConditions(c *change) {
	for i := range c.t.Feedback {
		if f := &c.t.Feedback[i]; f.Kind == state.FeedbackCondition && f.Steers {
			f.Kind, f.Steers, f.TakenBy = state.FeedbackComment, false, ""
		}
	}
}
