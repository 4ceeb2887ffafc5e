package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// cancel cancels the task: a running agent is stopped and its work saved, and the VM is deleted.
func (c *change) cancel(reason string) { c.finish(state.PhaseCancelled, state.End{Reason: reason}) }

// endMerged ends the task after its pull request was merged.
func endMerged(c *change) {
	c.t.PR.State = state.PRMerged
	c.finish(state.PhaseDone, state.End{Reason: fmt.Sprintf("pull request #%d was merged", c.t.PR.Number)})
}

// endWithoutAccess ends the task without a comment, because errand has no access to the repository any more.
func endWithoutAccess(c *change) {
	endUnreachable(c, state.End{Reason: "errand has no access any more", Class: state.ClassAccess}, of[event.AccessLost](c).Lost)
}

// endWithoutIssue ends the task without a comment, because the issue no longer exists there.
func endWithoutIssue(c *change) {
	endUnreachable(c, state.End{Reason: "the issue is gone", Class: state.ClassGone}, of[event.IssueGone](c).Lost)
}

// endUnreachable cancels the task with the reason, to which how is added if it is known.
func endUnreachable(c *change, end state.End, how string) {
	if how != "" {
		end.Reason += ": " + how
	}
	c.finish(state.PhaseCancelled, end)
}

// cannotComment reports whether the task ended in a way after which no comment can be posted.
func cannotComment(t *state.Task) bool {
	return t.End != nil && (t.End.Class == state.ClassGone || t.End.Class == state.ClassAccess)
}

// postAccessRegained posts that the task ended while errand had no access.
func postAccessRegained(c *change) {
	c.t.End.Class = state.ClassBack
	c.t.End.Reason = "errand had no access for a while" + strings.TrimPrefix(c.t.End.Reason, "errand has no access any more")
	storeRepo(c)
	c.enqueuePost("ended", state.Post{Kind: state.PostEnded, OnPR: c.t.PR != nil})
}

// storeRepo stores the repository's current name and the installation that gives access to it.
func storeRepo(c *change) {
	if c.e.Repo != nil && c.e.Repo.Name != "" {
		c.t.Repo = *c.e.Repo
	}
	if c.e.Installation != 0 {
		c.t.Installation = c.e.Installation
	}
}

// finish ends the task. Queued jobs are dropped; claimed ones find the task ended.
func (c *change) finish(phase state.Phase, end state.End) {
	end.At, end.Acted = c.e.Now, timeOfPersonsAction(c)
	saveUnpublished(c, end.Reason)
	noteRound(c)
	unread := unreadRun(c)
	stopping := c.t.Run != nil && c.t.Run.State == state.RunActive
	if stopping {
		c.stopRun(end.Reason)
		c.t.Run.State = state.RunStopping
	} else if c.t.Run != nil {
		c.dropRun(end.Reason)
	}
	c.dropWork = true
	c.enterPhase(phase, end.Reason)
	c.t.End = &end
	scheduleDeletion(c)
	switch { // the VM is deleted when the work is saved
	case stopping || c.t.VM == nil:
	case unread != nil:
		saveEndedRun(c, unread, end.Reason)
	default:
		c.releaseVM(state.VMEndReason(phase))
	}
	if !cannotComment(c.t) && c.t.Outcome != state.OutcomeReport {
		onPR := c.t.PR != nil && c.t.PR.State != state.PRMerged // whoever merged it knows; the issue has the totals
		c.enqueuePost("ended", state.Post{Kind: state.PostEnded, OnPR: onPR, By: c.e.By})
	}
}

// saveEndedRun queues a job that saves the work of a run that has already ended.
func saveEndedRun(c *change, r *state.Run, reason string) {
	j := c.job(state.JobStop, state.LaneControl, "stop-"+r.ID)
	j.Run, j.Priority = r.ID, 2
	j.Args = state.JobArgs{VM: c.t.VM.Name, Reason: reason}
	c.enqueue(j)
}

// releaseVM queues the deletion of the VM.
func (c *change) releaseVM(reason state.VMEndReason) {
	j := c.job(state.JobRelease, state.LaneControl, "release-"+c.t.VM.Name)
	j.Args = state.JobArgs{VM: c.t.VM.Name, Reason: string(reason)}
	c.enqueue(j)
}

// storeRelease stores that the VM is gone, and why.
func storeRelease(c *change, reason state.VMEndReason) {
	vm := *c.t.VM
	vm.EndedAt, vm.EndReason = c.e.Now, reason
	c.t.VMs = append(c.t.VMs, vm)
	c.t.VM = nil
}

// storeSavedWork stores the work of a stopped run; the VM of an ended task is then deleted.
func storeSavedWork(c *change) {
	if work := of[event.WorkSaved](c).Work; work.Ref != "" {
		c.t.Saved = append(c.t.Saved, work)
	}
	if r := c.t.Run; r != nil && r.ID == c.e.Run {
		r.State, r.Ended, r.Status, r.Class, r.Repair = state.RunEnded, c.e.Now, state.StatusInterrupted, state.RunRetryable, nil
		c.t.Runs = append(c.t.Runs, *r)
		c.t.Run = nil
	}
	if c.t.Ended() && c.t.VM != nil {
		c.releaseVM(state.VMEndReason(c.t.Phase))
	}
}

// stopByHand stops the run and waits for people; VM and session stay.
func stopByHand(c *change) {
	phase := c.t.Phase
	if phase == state.PhaseInterrupted {
		phase = c.t.Resume
	}
	c.dropRun("stopped by @" + c.e.By.Login)
	c.dropWork = true
	c.enterPhase(state.PhaseAwaitingAnswer, "@"+c.e.By.Login+" stopped it")
	c.t.Resume, c.t.Waiting = phase, nil
	c.t.Question = &state.Question{Kind: state.AskStopped, AskedAt: c.e.Now, Text: "stopped by @" + c.e.By.Login}
	c.enqueuePost(fmt.Sprintf("stopped-%d", c.t.Version+1), state.Post{Kind: state.PostQuestion, Reason: state.AskStopped, By: c.e.By})
}

// fail stops the task with a reason and a hint; `retry` continues from here.
func (c *change) fail(end state.End) {
	end.At = c.e.Now
	phase, step := c.t.Phase, c.t.Step
	c.enterPhase(state.PhaseFailed, end.Reason)
	c.t.Resume, c.t.Step, c.t.Waiting, c.t.End = phase, step, nil, &end
	c.enqueuePost(fmt.Sprintf("failed-%d", c.t.Version+1), state.Post{Kind: state.PostFailed, Text: end.Reason, Hint: end.Hint, By: c.personToNotify()})
}

// failStep stops the task because a job failed permanently.
func failStep(c *change) {
	f := of[event.StepFailed](c).Failure
	dropUnlaunched(c, f.Reason)
	c.t.Step = f.Job
	c.fail(state.End{Reason: f.Reason, Hint: f.Hint, Class: f.Class})
}

// noteFailure notes the failure of a job that the task does not wait for. If work could not be saved, that is retried
// later.
func noteFailure(c *change) {
	c.note = of[event.StepFailed](c).Failure.Reason
	if of[event.StepFailed](c).Failure.Job == state.JobSuspend {
		c.checkIdleAgain()
	}
}

// interruptStep interrupts the task because waiting helps, a limited number of times.
func interruptStep(c *change) {
	f := of[event.StepFailed](c).Failure
	c.t.Outages++
	if c.t.Outages > c.p.MaxAttempts {
		c.t.Outages = 0
		failStep(c)
		return
	}
	dropUnlaunched(c, f.Reason)
	c.t.Step = f.Job
	at := c.e.Now.Add(backoff(c, c.t.Outages))
	if f.RetryAt.After(at) {
		at = f.RetryAt
	}
	c.interrupt(f.Reason, at)
}

// isStepSuccess reports whether the event is the success of a step, which ends an outage.
func isStepSuccess(c *change) bool {
	switch c.e.Kind() {
	case event.KindStarted, event.KindLaunched, event.KindCollected, event.KindCommitted, event.KindBranchMoved, event.KindPROpened, event.KindThreadsAnswered, event.KindGathered:
		return true
	}
	return false
}

// dropUnlaunched files a run that never began.
func dropUnlaunched(c *change, reason string) {
	if c.t.Run != nil && c.t.Run.State == state.RunLaunching {
		c.dropRun(reason)
		c.dropWork = false
	}
}

// retry continues where the task stopped.
func retry(c *change) {
	c.react(state.ReactionEyes)
	c.t.Active, c.t.IgnoreLimits = 0, true
	if c.o.Turns > 0 {
		c.t.Turns = c.o.Turns
	}
	if c.o.Fresh {
		c.t.Fresh = true
		c.t.Step = state.StepRun
		if c.t.VM != nil {
			c.releaseVM(state.VMEndFresh)
		}
	}
	if n := len(c.t.Runs); n > 0 { // a person's command resets the number of attempts
		c.t.Runs[n-1].Attempt = 0
	}
	switch q := c.t.Question; {
	case q == nil:
	case q.Kind == state.AskRefused && !c.o.Fresh: // the same commits are checked again, with the current settings
		c.t.Step = state.JobCollect
		c.t.Feedback = slices.DeleteFunc(c.t.Feedback, func(f state.Feedback) bool { return f.Kind == state.FeedbackRefusal && f.TakenBy == "" })
	case q.Kind == state.AskRefused || q.Kind == state.AskNoChange:
		c.t.Step = state.StepRun
	}
	reason := ""
	if isWorkUnreadable(c) {
		c.t.Step, reason = state.StepRun, c.t.End.Reason
	}
	c.resumePhase("@" + c.e.By.Login + " said retry")
	if reason != "" && c.t.Run != nil {
		c.t.Run.Repeat = reason
	}
}

// isWorkUnreadable reports whether the task failed because the work could not be read from its VM. Reading it again would
// fail again, so the agent must fix it.
func isWorkUnreadable(c *change) bool {
	if c.t.Phase != state.PhaseFailed || c.t.End == nil || c.t.Step != state.JobCollect && c.t.Step != state.JobRebase {
		return false
	}
	return c.t.End.Class == state.ClassVM || c.t.End.Class == state.ClassInternal
}

// raiseBudget raises the cap; a task that stopped at it continues. A subscription has no cap in dollars.
func raiseBudget(c *change) {
	if c.o.MicroUSD > 0 && c.t.Money.Free() {
		c.reply(state.ReplyNoBudget)
		return
	}
	c.t.Money.CapMicroUSD += c.o.MicroUSD
	if m := &c.t.Money; m.CapTokens > 0 { // otherwise there is no cap to raise
		m.CapTokens += c.o.Tokens
	}
	c.t.MoreVMHours += c.o.VMHours
	c.reply(state.ReplyBudgetRaised)
	if c.t.Phase == state.PhaseFailed && endedAtCap(c) {
		c.resumePhase("@" + c.e.By.Login + " raised the cap")
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
