package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/state"
)

// cancel cancels the task: a running agent is stopped and its work saved, and the VM is deleted.
func (c *change) cancel(why string) { c.finish(state.PhaseCancelled, state.End{Reason: why}) }

// merged ends the task after its pull request was merged.
func merged(c *change) {
	c.t.PR.State = "merged"
	c.finish(state.PhaseDone, state.End{Reason: fmt.Sprintf("pull request #%d was merged", c.t.PR.Number)})
}

// gone ends the task without a comment, because none can be posted any more. Detail describes the event.
func gone(c *change) {
	end := state.End{Reason: "errand has no access any more", Class: state.ClassAccess}
	if c.e.Kind == state.EventIssueGone {
		end.Class, end.Reason = state.ClassGone, "the issue is gone"
	}
	if c.e.Lost != "" {
		end.Reason += ": " + c.e.Lost
	}
	c.finish(state.PhaseCancelled, end)
}

// mute reports whether the task ended in a way after which no comment can be posted.
func mute(t *state.Task) bool {
	return t.End != nil && (t.End.Class == state.ClassGone || t.End.Class == state.ClassAccess)
}

// back posts that the task ended while errand had no access.
func back(c *change) {
	c.t.End.Class = state.ClassBack
	c.t.End.Reason = "errand had no access for a while" + strings.TrimPrefix(c.t.End.Reason, "errand has no access any more")
	moveTo(c)
	c.post("ended", state.Post{Kind: state.PostEnded, OnPR: c.t.PR != nil})
}

// moveTo stores the repository's current name and the installation that gives access to it.
func moveTo(c *change) {
	if c.e.Repo != nil && c.e.Repo.Name != "" {
		c.t.Repo = *c.e.Repo
	}
	if c.e.Installation != 0 {
		c.t.Installation = c.e.Installation
	}
}

// finish ends the task. Queued jobs are dropped; claimed ones find the task ended.
func (c *change) finish(phase state.Phase, end state.End) {
	end.At, end.Acted = c.e.Now, acted(c)
	saveUnpublished(c, end.Reason)
	unread := unreadRun(c)
	if c.t.PR != nil && c.e.Kind == state.EventPRClosed && !c.e.Merged {
		c.t.PR.State = "closed" // a canceled task leaves its pull request to people
	}
	stopping := c.t.Run != nil && c.t.Run.State == state.RunActive
	if stopping {
		c.stopRun(end.Reason)
		c.t.Run.State = state.RunStopping
	} else if c.t.Run != nil {
		c.dropRun(end.Reason)
	}
	c.drop = true
	c.to(phase, end.Reason)
	c.t.End = &end
	forgetLater(c)
	switch { // the VM is deleted when the work is saved
	case stopping || c.t.VM == nil:
	case unread != nil:
		saveLeft(c, unread, end.Reason)
	default:
		c.release(string(phase))
	}
	if !mute(c.t) && c.t.Outcome != state.OutcomeReport {
		c.post("ended", state.Post{Kind: state.PostEnded, OnPR: c.t.PR != nil, By: c.e.By})
	}
}

// saveLeft queues a job that saves the work of a run that has already ended.
func saveLeft(c *change, r *state.Run, why string) {
	j := c.job(state.JobStop, state.LaneControl, "stop-"+r.ID)
	j.Run, j.Priority = r.ID, 2
	j.Args = map[string]string{"why": why, "vm": c.t.VM.Name}
	c.add(j)
}

// release queues the deletion of the VM.
func (c *change) release(why string) {
	j := c.job(state.JobRelease, state.LaneControl, "release-"+c.t.VM.Name)
	j.Args = map[string]string{"vm": c.t.VM.Name, "why": why}
	c.add(j)
}

// released stores that the VM is gone, and why.
func released(c *change, why string) {
	vm := *c.t.VM
	vm.EndedAt, vm.Why = c.e.Now, why
	c.t.VMs = append(c.t.VMs, vm)
	c.t.VM = nil
}

// saved stores the work of a stopped run; the VM of an ended task is then deleted.
func saved(c *change) {
	if c.e.Saved != nil && c.e.Saved.Ref != "" {
		c.t.Saved = append(c.t.Saved, *c.e.Saved)
	}
	if r := c.t.Run; r != nil && r.ID == c.e.Run {
		r.State, r.Ended, r.Status, r.Class, r.Repair = state.RunEnded, c.e.Now, "interrupted", "retryable", nil
		c.t.Runs = append(c.t.Runs, *r)
		c.t.Run = nil
	}
	if c.t.Ended() && c.t.VM != nil {
		c.release(string(c.t.Phase))
	}
}

// stopByHand stops the run and waits for people; VM and session stay.
func stopByHand(c *change) {
	phase := c.t.Phase
	if phase == state.PhaseInterrupted {
		phase = c.t.Resume
	}
	c.dropRun("stopped by @" + c.e.By.Login)
	c.drop = true
	c.to(state.PhaseAwaitingAnswer, "@"+c.e.By.Login+" stopped it")
	c.t.Resume, c.t.Waiting = phase, nil
	c.t.Question = &state.Question{Kind: state.AskStopped, Asked: c.e.Now, Text: "stopped by @" + c.e.By.Login}
	c.post(fmt.Sprintf("stopped-%d", c.t.Version+1), state.Post{Kind: state.PostQuestion, Reason: state.AskStopped, By: c.e.By})
}

// fail stops the task with a reason and a hint; `retry` continues from here.
func (c *change) fail(end state.End) {
	end.At = c.e.Now
	phase, step := c.t.Phase, c.t.Step
	c.to(state.PhaseFailed, end.Reason)
	c.t.Resume, c.t.Step, c.t.Waiting, c.t.End = phase, step, nil, &end
	c.post(fmt.Sprintf("failed-%d", c.t.Version+1), state.Post{Kind: state.PostFailed, Text: end.Reason, Hint: end.Hint, By: c.asker()})
}

// stepFailed stops the task because a job failed permanently.
func stepFailed(c *change) {
	f := c.e.Failure
	dropUnlaunched(c, f.Reason)
	c.t.Step = f.Job
	c.fail(state.End{Reason: f.Reason, Hint: f.Hint, Class: f.Class})
}

// besideFailed notes the failure of a job that the task does not wait for. If work could not be saved, that is retried
// later.
func besideFailed(c *change) {
	c.note = c.e.Failure.Reason
	if c.e.Failure.Job == state.JobSleep {
		c.lookAgain()
	}
}

// stepInterrupted interrupts the task because waiting helps, a limited number of times.
func stepInterrupted(c *change) {
	f := c.e.Failure
	c.t.Outages++
	if c.t.Outages > c.p.MaxAttempts {
		c.t.Outages = 0
		stepFailed(c)
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

// steps reports whether the event is the success of a step, which ends an outage.
func steps(c *change) bool {
	switch c.e.Kind {
	case state.EventStarted, state.EventLaunched, state.EventCollected, state.EventCommitted, state.EventMoved, state.EventPROpened, state.EventAnswered, state.EventGathered:
		return true
	}
	return false
}

// dropUnlaunched files a run that never began.
func dropUnlaunched(c *change, why string) {
	if c.t.Run != nil && c.t.Run.State == state.RunLaunching {
		c.dropRun(why)
		c.drop = false
	}
}

// retry continues where the task stopped.
func retry(c *change) {
	c.react("eyes")
	c.t.Active, c.t.Insist = 0, true
	if c.o.Turns > 0 {
		c.t.Turns = c.o.Turns
	}
	if c.o.Fresh {
		c.t.Fresh = true
		c.t.Step = state.StepRun
		if c.t.VM != nil {
			c.release("fresh")
		}
	}
	if n := len(c.t.Runs); n > 0 { // a person's command resets the number of attempts
		c.t.Runs[n-1].Attempt = 0
	}
	switch q := c.t.Question; {
	case q == nil:
	case q.Kind == state.AskRefused && !c.o.Fresh: // the same commits are checked again, with the current settings
		c.t.Step = state.JobCollect
		c.t.Feedback = slices.DeleteFunc(c.t.Feedback, func(f state.Feedback) bool { return f.Kind == feedbackRefusal && f.Taken == "" })
	case q.Kind == state.AskRefused || q.Kind == state.AskNoChange:
		c.t.Step = state.StepRun
	}
	why := ""
	if unreadable(c) {
		c.t.Step, why = state.StepRun, c.t.End.Reason
	}
	c.goOn("@" + c.e.By.Login + " said retry")
	if why != "" && c.t.Run != nil {
		c.t.Run.Repeat = why
	}
}

// unreadable reports whether the task failed because the work could not be read from its VM. Reading it again would
// fail again, so the agent must fix it.
func unreadable(c *change) bool {
	if c.t.Phase != state.PhaseFailed || c.t.End == nil || c.t.Step != state.JobCollect && c.t.Step != state.JobRebase {
		return false
	}
	return c.t.End.Class == state.ClassVM || c.t.End.Class == state.ClassInternal
}

// budget raises the cap; a task that stopped at it continues. A subscription has no cap in dollars.
func budget(c *change) {
	if c.o.MicroUSD > 0 && c.t.Money.Free() {
		c.reply(state.ReplyNoBudget)
		return
	}
	c.t.Money.CapMicroUSD += c.o.MicroUSD
	if m := &c.t.Money; m.CapTokens > 0 { // otherwise there is no cap to raise
		m.CapTokens += c.o.Tokens
	}
	c.reply(state.ReplyBudgetRaised)
	n := len(c.t.Runs)
	atCap := c.t.End != nil && c.t.End.Class == state.ClassBudget || n > 0 && c.t.Runs[n-1].Status == "budget"
	if c.t.Phase == state.PhaseFailed && atCap {
		c.goOn("@" + c.e.By.Login + " raised the cap")
	}
}
