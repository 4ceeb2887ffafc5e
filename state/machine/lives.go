package machine

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// isPRClosed reports whether the task waits because its pull request is closed, perhaps after a failed attempt to reopen it.
func isPRClosed(c *change) bool {
	stopped := c.t.Phase == state.PhaseFailed || c.t.Phase == state.PhaseInterrupted
	return hasPR(c) && (c.t.Phase == state.PhasePRClosed || stopped && c.t.Resume == state.PhasePRClosed)
}

// isCloseOutdated reports whether the pull request was reopened after it was closed: the webhook about the closing came late.
func isCloseOutdated(c *change) bool {
	return !c.e.At.IsZero() && c.e.At.Before(c.t.PR.ReopenedAt.Truncate(time.Second))
}

// isReopenOutdated reports whether the pull request was closed after it was reopened: the webhook about the reopening came
// late.
func isReopenOutdated(c *change) bool {
	return !c.e.At.IsZero() && c.e.At.Before(c.t.PR.ClosedAt.Truncate(time.Second))
}

// isTaskPR reports whether the event is about the task's present pull request.
func isTaskPR(c *change) bool {
	n := of[event.PRReopened](c).Number
	return hasPR(c) && (n == 0 || n == c.t.PR.Number)
}

// eventTime returns the time of the event by GitHub's clock, or by errand's if GitHub did not report it.
func eventTime(c *change) time.Time {
	if c.e.At.IsZero() {
		return c.e.Now
	}
	return c.e.At
}

// park stops the work on a pull request that was closed without a merge, and keeps the result for Policy.KeepAsleep.
// A pull request that is reopened soon, as people do to start checks again, keeps its VM and gets no comment.
func park(c *change) {
	reason := fmt.Sprintf("pull request #%d was closed without a merge%s", c.t.PR.Number, byPerson(c.e.By))
	saveUnpublished(c, reason)
	unread := unreadRun(c)
	c.dropRun(reason)
	c.dropWork = true
	if unread != nil {
		saveEndedRun(c, unread, reason)
	}
	for i := range c.t.Feedback { // the next round answers it
		if f := &c.t.Feedback[i]; f.Kind != "condition" {
			f.TakenBy = ""
		}
	}
	c.t.PR.State, c.t.PR.ClosedAt, c.t.PR.KeptUntil = "closed", eventTime(c), c.e.Now.Add(c.p.KeepAsleep)
	c.t.PR.Ready, c.t.PR.ReadyBy = false, ""
	c.enterPhase(state.PhasePRClosed, reason)
	c.t.Resume = ""
	c.scheduleDue(state.DuePRClosed, "", c.e.Now.Add(c.p.Gather))
	c.scheduleDue(state.DueParked, "", c.t.PR.KeptUntil)
}

// announceClosed suspends the VM of a closed pull request, and posts how to continue.
func announceClosed(c *change) {
	if at := c.t.Since.Add(c.p.Gather); c.e.Now.Before(at) { // it was reopened and closed again
		c.scheduleDue(state.DuePRClosed, "", at)
		return
	}
	if c.t.VM != nil {
		enqueueSuspend(c)
	}
	if c.t.Step == "" {
		c.enqueuePost(fmt.Sprintf("pr-closed-%d", c.t.Version+1), state.Post{Kind: state.PostPRClosed, OnPR: true})
	}
}

// expireClosed cancels the task whose pull request nobody reopened.
func expireClosed(c *change) {
	if at := c.t.PR.KeptUntil; c.e.Now.Before(at) {
		c.scheduleDue(state.DueParked, "", at)
		return
	}
	c.cancel(fmt.Sprintf("pull request #%d stayed closed for %s", c.t.PR.Number, state.FormatDuration(c.p.KeepAsleep)))
}

// requestReopening enqueues reopening the closed pull request, once.
func requestReopening(c *change) {
	c.react("eyes")
	if c.o.Turns > 0 {
		c.t.Turns = c.o.Turns
	}
	if c.o.Fresh {
		c.t.Fresh = true
	}
	if c.t.Step != state.JobReopen {
		c.enqueueStep(state.JobReopen)
	}
}

// keepAndReopen keeps a message for the next round, and reopens the pull request for it.
func keepAndReopen(c *change) {
	keepComment(c)
	requestReopening(c)
}

// isSaidBeforeClosing reports whether a person acted before the pull request was closed, so that the event came late.
func isSaidBeforeClosing(c *change) bool {
	return !c.e.At.IsZero() && c.e.At.Before(c.t.PR.ClosedAt.Truncate(time.Second))
}

// resumeReopened continues the task whose pull request is open again. Feedback that was not answered, or that arrived
// meanwhile, begins a round.
func resumeReopened(c *change) {
	storeReopened(c)
	if head := of[event.PRReopened](c).Head; head != "" && head != c.t.Branch.Head { // it moved while nothing was done here
		c.t.Branch.Head, c.t.Branch.Tree = head, ""
	}
	c.t.Work, c.t.Resume = nil, ""
	c.dropWork = true
	c.enterPhase(state.PhasePROpen, fmt.Sprintf("pull request #%d was reopened%s", c.t.PR.Number, byPerson(c.e.By)))
	c.enqueueGather(c.e.Now.Add(c.p.Gather))
}

// storeReopened stores that the pull request is open.
func storeReopened(c *change) {
	c.t.PR.State, c.t.PR.ReopenedAt, c.t.PR.KeptUntil = "open", eventTime(c), time.Time{}
}
