package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

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
	unsaved := unreadRun(c)
	if phase == state.PhaseCancelled {
		end.Phase, end.Step = resumption(c)
		end.KeptUntil = c.e.Now.Add(c.p.KeepAfterEnd)
		unsaved = unpublishedRun(c)
	}
	saveUnpublished(c, end.Reason)
	noteRound(c)
	stopping := c.t.Run != nil && c.t.Run.State == state.RunActive
	if stopping {
		end.Saving = phase == state.PhaseCancelled && !slices.Contains(planning, end.Phase)
		c.stopRun(end.Reason)
		c.t.Run.State = state.RunStopping
	} else if c.t.Run != nil {
		c.dropRun(end.Reason)
	}
	c.dropWork = true
	c.enterPhase(phase, end.Reason)
	c.t.End = &end
	c.t.Visible++ // a next life that the same comment begins knows that the status comment does not show the end
	scheduleDeletion(c)
	switch { // the VM is deleted when the work is saved
	case stopping || c.t.VM == nil:
	case unsaved != nil:
		c.t.End.Saving = phase == state.PhaseCancelled
		saveEndedRun(c, unsaved, end.Reason)
	default:
		c.releaseVM(state.VMEndReason(phase))
	}
	c.postEnd()
	c.postUnconfirmed()
}

// savingTime is how long the last comment waits for the work to be saved, so that it can tell whether it is.
const savingTime = 2 * time.Minute

// postEnd posts the last comment, once.
func (c *change) postEnd() {
	posted := func(p state.Posted) bool { return p.Key == fmt.Sprintf("%d.ended", c.t.Gen) }
	if cannotComment(c.t) || c.t.Outcome == state.OutcomeReport || slices.ContainsFunc(c.t.Posted, posted) {
		return
	}
	onPR := c.t.PR != nil && c.t.PR.State != state.PRMerged // whoever merged it knows; the issue has the totals
	c.enqueuePost("ended", state.Post{Kind: state.PostEnded, OnPR: onPR, By: c.e.By})
	if c.t.End.Saving {
		j := &c.jobs[len(c.jobs)-1]
		j.NotBefore, j.Post.Reason = c.e.Now.Add(savingTime), state.EndSaving
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
	e := of[event.WorkSaved](c)
	if e.Work.Ref != "" {
		c.t.Saved = append(c.t.Saved, e.Work)
	}
	if a := e.Archive; a != nil && c.t.VM != nil && c.t.VM.Name == a.VM {
		storeSuspended(c, *a)
	} else if a != nil && (c.t.Suspended == nil || c.t.Suspended.Ref != a.Ref) { // the task began again without it
		c.deleteSaved(a.Mode, a.Ref)
	}
	if r := c.t.Run; r != nil && r.ID == c.e.Run {
		r.State, r.Ended, r.Status, r.Class, r.Repair = state.RunEnded, c.e.Now, state.StatusInterrupted, state.RunRetryable, nil
		c.t.Runs = append(c.t.Runs, *r)
		c.t.Run = nil
	}
	if !c.t.Ended() || e.Continues { // of a task that ended meanwhile, another job saves the work
		return
	}
	if c.t.VM != nil {
		c.releaseVM(state.VMEndReason(c.t.Phase))
	}
	if c.t.End.Saving {
		c.t.End.Saving = false
		c.postEnd()
	}
}

// stopByHand stops the run and waits for people; VM and session stay.
func stopByHand(c *change) {
	phase := c.t.Phase
	if phase == state.PhaseInterrupted {
		phase = c.t.Resume
	}
	c.dropRun("stopped by " + c.e.By.Handle())
	c.dropWork = true
	c.enterPhase(state.PhaseAwaitingAnswer, c.e.By.Handle()+" stopped it")
	c.t.Resume, c.t.Waiting = phase, nil
	c.t.Question = &state.Question{Kind: state.AskStopped, AskedAt: c.e.Now, Text: "stopped by " + c.e.By.Handle()}
	c.enqueuePost(fmt.Sprintf("stopped-%d", c.t.Version+1), state.Post{Kind: state.PostQuestion, Reason: state.AskStopped, By: c.e.By})
}

// fail stops the task with a reason and a hint; `retry` continues from here.
func (c *change) fail(end state.End) {
	end.At = c.e.Now
	phase, step := c.t.Phase, c.t.Step
	c.enterPhase(state.PhaseFailed, end.Reason)
	c.t.Resume, c.t.Step, c.t.Waiting, c.t.End = phase, step, nil, &end
	c.enqueuePost(fmt.Sprintf("failed-%d", c.t.Version+1), state.Post{Kind: state.PostFailed, Text: end.Reason, Hint: end.Hint,
		By: c.personToNotify()})
}

// failStep stops the task because a job failed permanently.
func failStep(c *change) {
	f := of[event.StepFailed](c).Failure
	dropUnlaunched(c, f.Reason)
	c.t.Step = f.Job
	c.fail(state.End{Reason: f.Reason, Hint: f.Hint, Class: f.Class})
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
	case event.KindStarted, event.KindLaunched, event.KindCollected, event.KindCommitted, event.KindBranchMoved,
		event.KindPROpened, event.KindPRFound, event.KindThreadsAnswered, event.KindAnswersFound, event.KindGathered:
		return true
	}
	return false
}

// dropUnlaunched files a run that could not be launched. If it may have begun all the same, it is stopped, and its work continued.
func dropUnlaunched(c *change, reason string) {
	if c.t.Run != nil && c.t.Run.State == state.RunLaunching {
		if l := of[event.StepFailed](c).Launch; l != nil && l.Run == c.t.Run.ID {
			c.storeLaunch(l)
			c.t.Run.Uncertain = true
		}
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
	case q.Kind == state.AskRefused && !c.o.Fresh && c.t.KeepsWork(): // the same commits are checked again, with the current settings
		c.t.Step = state.JobCollect
		c.dropRefusals()
	case q.Kind == state.AskRefused || q.Kind == state.AskNoChange:
		c.t.Step = state.StepRun
	case q.Kind == state.AskExisting:
		c.t.Context.Cleared = true
	}
	reason := ""
	if isWorkUnreadable(c) {
		c.t.Step, reason = state.StepRun, c.t.End.Reason
	}
	c.resumePhase(c.e.By.Handle() + " said retry")
	if reason != "" && c.t.Run != nil {
		c.t.Run.Repeat = reason
	}
}

// retryCanceled begins the next life of a canceled task: it continues the pull request, or where the task ended.
func retryCanceled(c *change) {
	if isAdoptable(c) {
		adopt(c)
		c.t.Fresh, c.t.Turns, c.t.IgnoreLimits, c.t.Active = c.o.Fresh, c.o.Turns, true, 0
		return
	}
	old, edited, reason := c.t, !c.e.By.Operator && !isTextUnchanged(c), c.e.By.Handle()+" said retry"
	c.t = nextLife(c)
	foldEndedLife(c, old)
	c.t.History, c.t.Feedback = old.History, slices.Clone(old.Feedback)
	c.t.Fresh, c.t.Turns, c.t.IgnoreLimits, c.t.Active = c.o.Fresh || old.Fresh, c.o.Turns, true, 0
	if n := len(c.t.Runs); n > 0 {
		last := &c.t.Runs[n-1]
		if last.Attempt = 0; last.Status == state.StatusInterrupted { // the agent is told
			last.Message = old.End.Reason
		}
	}
	storeRepo(c)
	c.react(state.ReactionEyes)
	closeReplaced(c)
	if a := c.t.Suspended; a != nil {
		c.scheduleDue(state.DueUnused, "", a.At.Add(c.p.KeepAsleep))
	}
	c.t.Frozen.Changed = nil
	if edited {
		refreeze(c)
	}
	switch phase := old.End.Phase; {
	case edited && newestOfPlans(c) != nil:
		c.planAgain("the issue was edited before " + reason)
	case phase.AwaitsApproval():
		awaitAgain(c, phase, reason)
	default:
		c.t.Resume, c.t.Step = phase, stepAgain(c, old.End)
		c.resumePhase(reason)
	}
}

// stepAgain returns the step with which a task continues that was canceled in a phase in which errand or an agent works.
func stepAgain(c *change, end *state.End) state.JobKind {
	switch step := end.Step; {
	case slices.Contains(planning, end.Phase):
		return state.JobStart // settings and discussion may have changed
	case c.t.Fresh:
		return state.StepRun
	case step == state.JobCollect || step == state.JobRebase:
		if c.t.VM == nil && c.t.WorkToRestore() == nil {
			return state.StepRun
		}
		c.dropRefusals()
		return step
	default:
		return step
	}
}

// awaitAgain waits for the approval of the newest revision again, or makes another one if that one can no longer be approved.
func awaitAgain(c *change, phase state.Phase, reason string) {
	p := c.t.NewestPlan()
	if p.Posted() && p.CommentURL == "" {
		p.Stale = cmp.Or(p.Stale, state.StaleDeleted)
	}
	switch {
	case p.Kind == state.PlanPublish && p.Stale != "" && !c.t.Fresh:
		c.enterPhase(c.buildingPhase(), reason)
		c.enqueueStep(state.JobShow)
		return
	case p.Stale != "" || p.Kind == state.PlanPublish && c.t.Fresh:
		c.startRevision(reason)
		return
	}
	c.enterPhase(phase, reason)
	switch {
	case !p.Posted():
		c.postPlan()
		return
	case len(c.t.PendingFeedback()) > 0:
		extendGathering(c)
	default:
		releaseHeld(c)
	}
	reprocessThumbs(c) // the check of one may have ended with the task
	scheduleReminders(c, p.Hash)
}

// isWorkUnreadable reports whether the task failed because the work could not be read from its VM. Reading it again would
// fail again, so the agent must fix it.
func isWorkUnreadable(c *change) bool {
	if c.t.Phase != state.PhaseFailed || c.t.End == nil || c.t.Step != state.JobCollect && c.t.Step != state.JobRebase {
		return false
	}
	return c.t.End.Class == state.ClassVM || c.t.End.Class == state.ClassInternal
}
