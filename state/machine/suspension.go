package machine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// scheduleIdleCheck schedules a check of an idle VM for the time at which it should be suspended.
func scheduleIdleCheck(c *change) {
	if c.t.VM.Paid > 0 || c.p.IdleVM > 0 {
		c.scheduleDue(state.DueIdle, c.t.VM.Name, suspendAt(c))
	}
}

// suspendAt returns the time at which the task's idle VM is suspended: just before the paid span ends, or after a while
// if nothing is paid. If the task's wait ends soon after that, it is suspended later.
func suspendAt(c *change) time.Time {
	vm, at := c.t.VM, c.t.IdleSince().Add(c.p.IdleVM)
	margin := c.p.IdleVM
	if vm.Paid > 0 {
		margin = c.suspendMargin()
		at = vm.PaidUntil(c.e.Now).Add(-margin)
	}
	if w := c.t.Waiting; c.t.Phase == state.PhaseInterrupted && w != nil && w.Until.After(at) && w.Until.Before(at.Add(margin)) {
		at = w.Until.Add(time.Second)
	}
	return at
}

// suspendBefore returns how long before the end of a span of that length a VM is suspended.
func (p Policy) suspendBefore(span time.Duration) time.Duration { return min(p.SleepBefore, span/4) }

// suspendMargin returns how long before the end of its paid span the task's VM is suspended: according to the policy, or
// earlier if saving its work has taken longer, so that it does not reach into another span. It is at most a third of a
// span.
func (c *change) suspendMargin() time.Duration {
	vm := c.t.VM
	m := c.p.suspendBefore(vm.Paid)
	if vm.SuspendDuration > 0 {
		m = max(m, min(vm.SuspendDuration+vm.Paid/60, vm.Paid/3))
	}
	return m
}

// isIdle reports whether the VM of the event is still the task's, and still idle.
func isIdle(c *change) bool {
	return c.t.VM != nil && c.t.VM.Name == of[event.Due](c).VM && c.t.HasIdleVM()
}

// suspendVM enqueues saving the work, so that the VM can be deleted. The job is in the work lane: people's requests in
// the meantime come after it.
func suspendVM(c *change) {
	if at := suspendAt(c); c.e.Now.Before(at) { // it has been at work meanwhile
		c.scheduleDue(state.DueIdle, c.t.VM.Name, at)
		return
	}
	if c.e.VMNeeded {
		c.checkIdleAgain()
		return
	}
	if vm := c.t.VM; of[event.Due](c).Insured && vm.Paid > 0 {
		margin := c.suspendMargin()
		c.scheduleDue(state.DueIdle, vm.Name, vm.PaidUntil(c.e.Now.Add(2*margin)).Add(-margin))
		return
	}
	enqueueSuspend(c)
}

// canYield reports whether the VM of the event is still the task's, and the task neither needs it nor is about to.
func canYield(c *change) bool {
	return c.t.CanYieldVM() && c.t.VM.Name == of[event.VMWanted](c).VM && !c.e.VMNeeded
}

// yieldVM suspends the task's VM for another task.
func yieldVM(c *change) {
	c.t.VM.WantedAt = c.e.Now
	enqueueSuspend(c)
}

// enqueueSuspend enqueues saving the work on the task's VM, after which the VM is deleted.
func enqueueSuspend(c *change) {
	j := c.job(state.JobSuspend, state.LaneWork, "sleep-"+c.t.VM.Name)
	j.Args.VM = c.t.VM.Name
	c.enqueue(j)
}

// isTaskVM reports whether the event is about the task's present VM.
func isTaskVM(c *change) bool { return c.t.VM != nil && c.t.VM.Name == of[event.Suspended](c).VM }

// releaseSuspended deletes the VM whose work was saved, unless the VM is needed by now and no other task waits for it.
// Without Suspended.Work nothing could be saved, and Failure has the reason.
func releaseSuspended(c *change) {
	a := of[event.Suspended](c).Work
	if a != nil {
		storeSuspended(c, *a)
	}
	if s := of[event.Suspended](c).Saved; s.Ref != "" {
		c.t.Saved = append(c.t.Saved, s)
	}
	needed := (c.e.VMNeeded || !c.t.HasIdleVM()) && !owesVM(c)
	if c.t.Ended() || needed && a != nil && a.Mode == settings.SleepArchive {
		c.checkIdleAgain() // it is deleted, or kept, as without suspending
		return
	}
	reason := state.VMEndAsleep
	if a == nil {
		reason = cmp.Or(of[event.Suspended](c).EndReason, state.VMEndVanished)
		c.enqueuePost("slept-"+c.t.VM.Name, state.Post{Kind: state.PostVM, Reason: state.VMNotSaved, Text: of[event.Suspended](c).Failure,
			By: c.personToNotify()})
	}
	c.releaseVM(reason)
	storeRelease(c, reason)
}

// owesVM reports whether the VM was promised to another task: a person who answered while the work was saved waits for
// the next one. No run is on it.
func owesVM(c *change) bool {
	return !c.t.VM.WantedAt.IsZero() && (c.t.Run == nil || c.t.Run.State == state.RunLaunching)
}

// checkIdleAgain schedules another check of a VM that was kept because it might be needed.
func (c *change) checkIdleAgain() {
	if !c.t.HasIdleVM() {
		return
	}
	pause := c.p.IdleVM / 2
	if c.t.VM.Paid > 0 {
		pause = c.suspendMargin() / 4
	}
	c.scheduleDue(state.DueIdle, c.t.VM.Name, c.e.Now.Add(pause))
}

// deleteObsoleteSave deletes the saved work of a VM that is no longer the task's.
func deleteObsoleteSave(c *change) {
	if a := of[event.Suspended](c).Work; a != nil && (c.t.Suspended == nil || c.t.Suspended.Ref != a.Ref) {
		c.deleteSaved(a.Mode, a.Ref)
	}
}

// storeSuspended stores the location of the saved work, and deletes the previous one.
func storeSuspended(c *change, a state.SuspendedWork) {
	if old := c.t.Suspended; old != nil && old.Ref != a.Ref {
		c.deleteSaved(old.Mode, old.Ref)
	}
	a.At, a.Session, a.Gen = c.e.Now, session(c, state.RunReview), c.t.VM.Gen
	a.RestoredFrom = c.t.VM.RestoredFrom
	c.t.Suspended = &a
	if c.t.Ended() {
		scheduleDeletion(c)
		return
	}
	c.scheduleDue(state.DueUnused, "", c.e.Now.Add(c.p.KeepAsleep))
}

// deleteSaved enqueues the deletion of saved work.
func (c *change) deleteSaved(mode settings.SleepMode, ref string) {
	j := c.job(state.JobForget, state.LaneControl, "forget-"+ref)
	j.Args.Mode, j.Args.Ref = mode, ref
	c.enqueue(j)
}

// scheduleDeletion schedules the deletion of an ended task's saved work.
func scheduleDeletion(c *change) {
	if a := c.t.Suspended; a != nil {
		c.scheduleDue(state.DueForget, string(a.Mode)+":"+a.Ref, c.t.End.At.Add(c.p.KeepAfterEnd))
	}
}

// deleteExpiredSave deletes an ended task's saved work. The task may have started again meanwhile, and ended once more.
func deleteExpiredSave(c *change) {
	ref := of[event.Due](c).Ref
	if a := c.t.Suspended; a != nil && a.Ref == ref && (!c.t.Ended() || c.e.Now.Before(c.t.End.At.Add(c.p.KeepAfterEnd))) {
		return // the next life continues it, or can
	}
	c.deleteSaved(of[event.Due](c).Mode, ref)
	if a := c.t.Suspended; a != nil && a.Ref == ref {
		c.t.Suspended = nil
	}
}

// deleteUnusedSave deletes saved work that was not needed for long, and posts that once.
func deleteUnusedSave(c *change) {
	a := c.t.Suspended
	if at := a.At.Add(c.p.KeepAsleep); c.e.Now.Before(at) { // saved again meanwhile
		c.scheduleDue(state.DueUnused, "", at)
		return
	}
	if hasPR(c) && c.e.Now.Before(c.t.PR.KeptUntil) {
		c.scheduleDue(state.DueUnused, "", c.t.PR.KeptUntil)
		return
	}
	if willRestore(c) { // somebody wants it, and it is on no VM yet
		c.scheduleDue(state.DueUnused, "", c.e.Now.Add(restoreGrace))
		return
	}
	if c.t.VM == nil && c.t.WorkToRestore() != nil {
		c.enqueuePost("forgotten-"+a.VM, state.Post{Kind: state.PostVM, Reason: state.VMExpired, Items: []string{string(a.Mode)},
			By: c.personToNotify()})
	}
	c.deleteSaved(a.Mode, a.Ref)
	c.t.Suspended = nil
}

// restoreGrace is how much longer saved work is kept while a VM is about to restore it.
const restoreGrace = time.Hour

// willRestore reports whether the next VM of the task restores the saved work without further action by people.
func willRestore(c *change) bool {
	return c.t.VM == nil && c.t.WorkToRestore() != nil &&
		(c.t.Phase.Working() || c.t.Phase == state.PhaseInterrupted || c.t.Gathering != nil)
}

// continueRestored stores the VM to which the work was restored, and continues the step that needed it. Work that could not be
// restored is lost.
func continueRestored(c *change) {
	l := of[event.Restored](c).Launch
	c.storeVM(l)
	if w := c.t.Waiting; w != nil && (w.Kind == state.WaitVM || w.Kind == state.WaitMoney) { // it was for this VM
		c.t.Waiting = nil
	}
	if reason := l.RestoreFailure; reason != "" {
		c.fail(state.End{Reason: "the work is lost: " + reason, Hint: "Comment `retry` to do the work again.", Class: state.ClassVM})
		return
	}
	if c.t.Step == state.JobRebase && c.t.Suspended != nil {
		c.t.Suspended.Stale = true
	}
	c.enqueueStep(c.t.Step)
}

// storeObsoleteVM deletes, or keeps for the next run, a VM that was started for an obsolete step.
func storeObsoleteVM(c *change) {
	c.storeVM(of[event.Restored](c).Launch)
	if c.t.Ended() {
		c.releaseVM(state.VMEndReason(c.t.Phase))
	}
}

// storeVM stores the task's VM and reports work that could not be restored to it.
func (c *change) storeVM(l state.Launch) {
	vm := l.VM
	defer scheduleSpanCheck(c)
	if old := c.t.VM; old != nil && old.Name != vm.Name {
		gone := *old
		gone.EndedAt, gone.EndReason = c.e.Now, state.VMEndReplaced
		c.t.VMs = append(c.t.VMs, gone)
	}
	c.t.VM = &vm
	if l.RestoreFailure == "" || c.t.Suspended == nil {
		return
	}
	c.enqueuePost("not-woken-"+vm.Name, state.Post{Kind: state.PostVM, Reason: state.VMNotRestored, Text: l.RestoreFailure, By: c.personToNotify()})
	c.deleteSaved(c.t.Suspended.Mode, c.t.Suspended.Ref)
	c.t.Suspended = nil
}

// scheduleSpanCheck schedules a check whether another span of the task's VM may begin, early enough to save the work before the
// current one ends.
func scheduleSpanCheck(c *change) {
	if vm := c.t.VM; vm != nil && vm.Paid > 0 {
		c.scheduleDue(state.DueSpan, vm.Name, vm.PaidUntil(c.e.Now.Add(3*c.suspendMargin())).Add(-2*c.suspendMargin()))
	}
}

// checkNextSpan stops the run of a task whose VM may not have another span: its hours are used up, or Waiting says that the
// money for VMs is. The VM is suspended next.
func checkNextSpan(c *change) {
	used, w, most := c.t.VMUse(c.e.Now).Hours, c.e.Waiting(), c.t.VMTime(c.p.VMHours)
	exceeded := most > 0 && used+c.t.VM.Paid > most
	if !exceeded && w == nil || c.t.Run == nil || c.t.Run.State != state.RunActive {
		scheduleSpanCheck(c)
		return
	}
	if exceeded {
		c.dropRun("the task's VM hours are used up")
		c.fail(state.End{Reason: fmt.Sprintf("the task's VM hours are used up (%s of %s)", state.DurationText(used), state.DurationText(most)), Hint: state.HintVMHours,
			Class: state.ClassVMHours})
		return
	}
	c.dropRun(w.Detail)
	c.interrupt(w.Detail, w.Until)
	c.t.Waiting.Kind = state.WaitMoney
}

// hasWorkspace reports whether the task has a VM or saved work.
func hasWorkspace(c *change) bool { return c.t.VM != nil || c.t.Suspended != nil }

// isWorkspaceInUse reports whether the task uses its VM or its saved work now, or is about to.
func isWorkspaceInUse(c *change) bool {
	t := c.t
	switch {
	case t.Ended():
		return t.End != nil && t.End.Saving || t.Run != nil || c.e.Stopping
	case c.e.VMNeeded || t.Gathering != nil || t.Run != nil && t.Run.State != state.RunLaunching:
		return true
	}
	return t.Phase.Working() && t.Waiting == nil
}

// destroyWorkspace deletes the task's VM and its saved work. The task continues on a new VM.
func destroyWorkspace(c *change) {
	c.deleteWorkspace("the operator deleted the VM and its saved work")
}

// deleteWorkspace deletes the VM and the saved work. A comment has the reason if work is lost, which is reported.
func (c *change) deleteWorkspace(reason string) (lost bool) {
	reads := c.t.Step == state.JobCollect || c.t.Step == state.JobRebase // they need the commits of the VM
	lost = c.t.KeepsWork() && (c.t.Work == nil || c.t.Work.Ref == "" || reads)
	if a := c.t.Suspended; a != nil {
		c.deleteSaved(a.Mode, a.Ref)
		c.t.Suspended = nil
	}
	if vm := c.t.VM; vm != nil {
		c.releaseVM(state.VMEndOperator)
		storeRelease(c, state.VMEndOperator)
	}
	if reads {
		c.t.Step = state.StepRun
		if c.t.Work != nil {
			c.t.Work.Ref = "" // outdated if it is there: people have pushed since
		}
		if c.t.Phase.Working() && c.t.Run == nil { // it waited for this step
			repeatStep(c)
		}
	}
	if lost && !c.t.Ended() {
		c.postLostWork(reason)
	}
	return lost
}

func (c *change) postLostWork(reason string) {
	c.enqueuePost(fmt.Sprintf("destroyed-%d", c.t.Version+1), state.Post{Kind: state.PostVM, Reason: state.VMNotSaved, Text: reason,
		By: c.personToNotify()})
}

// destroyByForce is destroyWorkspace for a task that is at work: it is stopped first, as by the command stop.
func destroyByForce(c *change) {
	stops := !c.t.Ended() && (c.t.Phase.Working() || c.t.Phase == state.PhaseInterrupted)
	if !stops {
		saving := c.t.End != nil && c.t.End.Saving
		if saving {
			c.t.End.Saving = false
		}
		destroyWorkspace(c)
		if saving {
			c.postEnd() // it waits for the work to be saved
		}
		return
	}
	plans := slices.Contains(planning, c.t.Phase) || c.t.Phase == state.PhaseInterrupted && slices.Contains(planning, c.t.Resume)
	stopByHand(c)
	const reason = "the operator stopped the task, and deleted the VM and its saved work"
	lost := c.deleteWorkspace(reason)
	if !lost && !plans {
		return // what the comment of the stop calls saved is with errand, or on the branch
	}
	c.jobs = slices.DeleteFunc(c.jobs, func(j state.Job) bool { // that comment says that the work is saved
		return j.Kind == state.JobPost && j.Post.Kind == state.PostQuestion
	})
	if !lost { // a plan's agent has changed nothing, but its session is lost
		c.postLostWork(reason)
	}
}

// resumption returns the phase and the step to which `retry` returns a task that is about to be canceled.
func resumption(c *change) (state.Phase, state.JobKind) {
	phase, step := c.t.Phase, c.t.Step
	if slices.Contains(resumable, phase) {
		phase = cmp.Or(c.t.Resume, state.PhaseQueued)
	}
	switch q := c.t.Question; {
	case q != nil && q.Kind == state.AskRefused:
		step = state.JobCollect
	case q != nil && q.Kind == state.AskNoChange:
		step = state.StepRun
	}
	return phase, step
}
