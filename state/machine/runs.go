package machine

import (
	"cmp"
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// runOfPhase returns the kind of run of a phase.
func runOfPhase(p state.Phase) state.RunKind {
	switch p {
	case state.PhasePreliminaryPlanning:
		return state.RunPreliminary
	case state.PhasePlanning:
		return state.RunPlan
	case state.PhaseAddressingReview:
		return state.RunReview
	}
	return state.RunImplement
}

// launchRun creates a run and enqueues its launch. Attempts continue from an unfinished run of the same kind.
func (c *change) launchRun(kind state.RunKind) {
	attempt, repeat := 1, ""
	if n := len(c.t.Runs); n > 0 {
		if last := c.t.Runs[n-1]; last.Kind == kind && last.Class != state.RunSucceeded && last.State == state.RunEnded {
			attempt, repeat = last.Attempt+1, last.Message
		}
	}
	c.t.UnattendedLaunches++
	c.t.Run = &state.Run{
		Kind: kind, State: state.RunLaunching,
		RunLaunch: state.RunLaunch{Session: session(c, kind), Round: c.t.Round, Attempt: attempt, Repeat: repeat},
	}
	c.t.SetRunSeq(max(c.t.RunSeq, c.p.UsedRuns) + 1)
	if a := c.t.Approval; a != nil {
		c.t.Run.Plan = a.Hash
	}
	c.t.Waiting = nil
	c.enqueueStep(state.JobLaunch)
}

// session returns the agent's session that a new run continues, or "".
func session(c *change, kind state.RunKind) string {
	if c.t.Fresh || kind == state.RunCheck {
		return ""
	}
	for i := len(c.t.Runs) - 1; i >= 0; i-- {
		if r := &c.t.Runs[i]; r.Session != "" {
			if r.Status == state.StatusContextOverflow {
				return "" // it is too long to continue
			}
			return r.Session
		}
	}
	return ""
}

// activateRun stores that the run is active.
func activateRun(c *change) {
	l, r := of[event.Launched](c).Launch, c.t.Run
	c.storeLaunch(&l)
	if !l.IsRepair {
		r.Repair = nil
	}
	if !l.Resumed {
		r.Session = ""
	}
	c.t.Fresh, c.t.Waiting, c.t.Turns, c.t.IgnoreLimits = false, nil, 0, false
	r.Notes = l.Notes
	if l.Saved != nil {
		c.t.Saved = append(c.t.Saved, *l.Saved)
	}
	c.t.Branch.BaseAt = time.Time{}
	c.takeFeedback(l.FeedbackIDs)
	c.storeAttachments(l)
	c.t.Step = state.StepRun
}

// storeLaunch stores that the run is active, and where.
func (c *change) storeLaunch(l *state.Launch) {
	r := c.t.Run
	r.State, r.VM, r.Adapter, r.Model, r.Started, r.LastActivity = state.RunActive, l.VM.Name, l.Adapter, l.Model, l.Started, c.e.Now
	r.MaxTurns, r.TurnLimit, r.Prompt = l.MaxTurns, l.TurnLimit, l.Prompt
	c.storeVM(*l)
	if l.VMHead != "" {
		c.t.Branch.VMHead = l.VMHead
	}
	if l.Root != "" {
		c.t.Branch.Root = l.Root
	}
	if l.BaseSHA != "" && c.t.Branch.Head == "" {
		c.t.Branch.BaseSHA = l.BaseSHA
	}
}

// stopLateRun stops a launched run that is obsolete.
func stopLateRun(c *change) {
	l := of[event.Launched](c).Launch
	if c.t.Run != nil && c.t.Run.ID == l.Run {
		return // reported twice
	}
	vm := l.VM
	if c.t.VM == nil {
		c.t.VM = &vm
	}
	j := c.job(state.JobStop, state.LaneControl, "stop-"+l.Run)
	j.Run, j.Priority = l.Run, 2
	j.Args = state.JobArgs{VM: l.VM.Name, Reason: "the task changed course before the launch"}
	c.enqueue(j)
}

// storeProgress stores the run's last activity.
func storeProgress(c *change) {
	p, r := of[event.Progress](c), c.t.Run
	r.LastSeq, r.Doing, r.Turns, r.LastActivity = p.LastSeq, p.Doing, p.Turns, p.LastActivity
	if !r.Metered {
		r.Money = p.Money
	}
	if p.Session != "" {
		r.Session = p.Session
	}
}

// closeRun closes the active run with its result.
func closeRun(c *change) {
	r, res := c.t.Run, c.result
	r.State, r.Ended, r.LastSeq, r.Turns, r.Refused = state.RunEnded, res.Ended, res.LastSeq, res.Turns, res.Refused
	if r.Ended.After(c.e.Now) || r.Ended.Before(r.Started) { // the VM's clock may be wrong
		r.Ended = c.e.Now
	}
	r.Status, r.Class, r.Message, r.Used, r.Reported = res.Status, res.Class, res.Message, res.Used, true
	if res.Session != "" {
		r.Session = res.Session
	}
	if r.Kind == state.RunCheck && res.Class == state.RunSucceeded {
		r.CheckSummary = state.SummarizeChecks(res.Checks)
	}
	r.Doing, r.Calls, r.Conclusion, r.Steering = "", nil, nil, nil
	if res.Class == state.RunSucceeded && res.Broken == "" && r.Kind != state.RunCheck {
		c.t.Asked = nil
		c.releaseKept()
	}
	dropRepairedText(c, r, res.Text)
	storeReportedCost(c, r, res.Money)
	if !r.Started.IsZero() && r.Ended.After(r.Started) {
		c.t.Active += r.Ended.Sub(r.Started)
	}
	c.t.Runs = append(c.t.Runs, *r)
	c.t.Run = nil
	storeLastMessage(c, res.Text)
	if res.Status == state.StatusVMLost && c.t.VM != nil {
		reason := cmp.Or(res.VMEndReason, state.VMEndVanished)
		c.releaseVM(reason)
		storeRelease(c, reason)
	}
}

// repeatWithoutSession repeats the run without the session that did not exist: the prompt then contains the conversation so far.
func repeatWithoutSession(c *change) {
	kind := c.t.Run.Kind
	closeRun(c)
	for i := range c.t.Runs {
		c.t.Runs[i].Session = ""
	}
	c.launchRun(kind)
	c.t.Run.Repeat = "the agent's session no longer existed"
}

// dropRun files a run whose result is obsolete. An active run is stopped.
func (c *change) dropRun(reason string) {
	r := c.t.Run
	if r == nil {
		return
	}
	if r.State == state.RunActive {
		c.stopRun(reason)
	}
	c.fileRun(reason)
	c.dropWork = true
}

// stopRun enqueues stopping the active run and saving its work, before other queued jobs.
func (c *change) stopRun(reason string) {
	j := c.job(state.JobStop, state.LaneControl, "stop-"+c.t.Run.ID)
	j.Run, j.Priority = c.t.Run.ID, 2
	j.Args = state.JobArgs{VM: c.t.Run.VM, Reason: reason}
	c.enqueue(j)
}

// droppedRun returns the run that the event is about if it was filed before its result was known, and the result has
// not arrived since.
func droppedRun(c *change) *state.Run {
	for i := range c.t.Runs {
		if r := &c.t.Runs[i]; r.ID == c.e.Run && (r.Status == state.StatusInterrupted || r.Status == state.StatusMaxTurns) && !r.Reported {
			return r
		}
	}
	return nil
}

// storeDroppedResult adds the cost of a stopped run.
func storeDroppedResult(c *change) {
	r := droppedRun(c)
	r.Turns, r.Refused, r.LastSeq, r.Used, r.Reported = c.result.Turns, c.result.Refused, c.result.LastSeq, c.result.Used, true
	if r.Session == "" {
		r.Session = c.result.Session
	}
	storeReportedCost(c, r, c.result.Money)
}

// retryRunLater retries the run automatically after a while, a limited number of times.
func retryRunLater(c *change) {
	attempt, res := c.t.Run.Attempt, *c.result
	closeRun(c)
	if attempt >= c.p.MaxAttempts {
		hint := ""
		if res.Status == state.StatusCrashed {
			hint = programOutputHint
		}
		c.fail(state.End{Reason: firstNonEmpty(res.Message, "the agent's run ended without a result ("+string(res.Status)+")"),
			Hint: hint + "errand tried it " + fmt.Sprint(attempt) + " times. Comment `retry` to try again.", Class: state.ClassAgent})
		return
	}
	at := c.e.Now.Add(backoff(c, attempt))
	if res.RetryAt.After(at) { // by the VM, too
		at = res.RetryAt
		if latest := c.e.Now.Add(maxWait); at.After(latest) {
			at = latest
		}
	}
	c.interrupt(firstNonEmpty(res.Message, string(res.Status)), at)
}

// maxUnattendedLaunches is the maximum number of runs without a person's action. One action leads to about ten runs if every check
// fails; more suggest an endless loop, which costs money.
const maxUnattendedLaunches = 20

// reachedRunLimit reports whether no run may be launched before people act.
func reachedRunLimit(c *change) bool { return c.t.UnattendedLaunches >= maxUnattendedLaunches }

// failAtRunLimit stops a task that would otherwise continue endlessly.
func failAtRunLimit(c *change) {
	phase := c.t.Phase
	if phase == state.PhaseInterrupted {
		phase = c.t.Resume
	}
	c.fail(state.End{Reason: fmt.Sprintf("%d runs since the last comment by a person did not finish the work", c.t.UnattendedLaunches),
		Hint: "Review the last runs, then comment `retry` to continue.", Class: state.ClassLimit})
	c.t.Resume = phase
}

// maxWait is the longest wait for a limit of a model provider; the longest limits last a week.
const maxWait = 8 * 24 * time.Hour

// interrupt interrupts the task until a time.
func (c *change) interrupt(reason string, at time.Time) {
	c.t.Resume = c.t.Phase
	step := c.t.Step
	c.enterPhase(state.PhaseInterrupted, reason)
	c.t.Step = step
	c.t.Waiting = &state.Waiting{Kind: state.WaitLimit, Detail: reason, Since: c.e.Now, Until: at}
	c.scheduleDue(state.DueResume, fmt.Sprint(c.t.Version), at)
}

// backoff returns the delay, which doubles with each attempt up to a limit.
func backoff(c *change, attempt int) time.Duration {
	d := c.p.Backoff
	for range min(attempt-1, 20) {
		d = min(2*d, c.p.BackoffMax)
	}
	return min(d, c.p.BackoffMax)
}

// failRun saves the work and posts the reason.
func failRun(c *change) {
	res := *c.result
	var denial *state.Waiting
	if isAtCap(c) {
		denial = c.t.Run.RunDenial
	}
	c.stopRun("failed") // the run has ended; this saves the work
	closeRun(c)
	end := state.End{Reason: firstNonEmpty(res.Message, res.Status.Clause()), Hint: failureHint(c, res.Status), Class: state.ClassAgent}
	m := c.t.Money
	if n := len(c.t.Runs); n > 0 && c.t.Runs[n-1].Money.Free() {
		m.CapMicroUSD = 0 // it did not count for this run
	}
	switch {
	case m.AtCap():
		end = state.End{Reason: m.CapReached(), Hint: m.Hint(), Class: state.ClassBudget}
	case denial != nil:
		end = state.End{Reason: denial.Detail, Hint: denial.Hint, Class: state.ClassBudget}
	}
	c.fail(end)
}

// firstNonEmpty returns the first text that is not empty.
func firstNonEmpty(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

// resumeInterrupted continues an interrupted task.
func resumeInterrupted(c *change) {
	c.resumePhase("tried again")
}

// resumePhase leaves failed, interrupted or awaiting_answer for the phase before, and repeats its step.
func (c *change) resumePhase(reason string) {
	phase, step := c.t.Resume, c.t.Step
	if phase == "" {
		phase = state.PhaseQueued
	}
	c.t.Resume, c.t.Waiting = "", nil
	c.enterPhase(phase, reason)
	c.t.Step = step
	repeatStep(c)
}

// repeatStep enqueues the task's current step again.
func repeatStep(c *change) {
	switch {
	case c.t.Step == state.JobReopen:
		c.enqueueStep(state.JobReopen)
		return
	case c.t.Phase == state.PhaseQueued: // whatever the step, nothing is planned yet
		c.enqueueStep(state.JobStart)
		return
	case c.t.Phase.AwaitsApproval():
		c.postPlan()
		return
	case c.t.Phase == state.PhasePRClosed:
		c.enqueueStep(state.JobReopen)
		return
	}
	switch c.t.Step {
	case state.JobStart: // the cause of the wait is checked again before a launch
		c.enqueueStep(state.JobStart)
	case state.JobShow, state.JobCommit, state.JobMove, state.JobOpenPR, state.JobAnswer, state.JobRebase, state.JobCollect, state.JobGather:
		c.enqueueStep(c.t.Step)
	default: // launch, run
		c.launchRun(runKindToRepeat(c))
	}
}

// runKindToRepeat returns the kind of run that continues an interrupted one: checks whose work is still on the VM need no
// agent.
func runKindToRepeat(c *change) state.RunKind {
	if n := len(c.t.Runs); n > 0 && c.t.Step == state.StepRun && c.t.Work != nil && !c.t.Fresh {
		if last := c.t.Runs[n-1]; last.Kind == state.RunCheck && last.Class == state.RunRetryable && hasWorkOf(c, last.VM) {
			return state.RunCheck
		}
	}
	return runOfPhase(c.t.Phase)
}

// hasWorkOf reports whether the work done on a VM is on the task's VM, or saved.
func hasWorkOf(c *change, vm string) bool {
	if c.t.VM != nil {
		return c.t.VM.Contains(vm)
	}
	a := c.t.WorkToRestore()
	return a != nil && a.Contains(vm)
}

// recheckWaiting checks again whether a waiting task can continue. A pause is no longer shown, unless the step finds it again.
func recheckWaiting(c *change) {
	switch c.t.Waiting.Kind {
	case state.WaitEdit:
		return
	case state.WaitPaused:
		c.t.Waiting = nil
	}
	c.resumeWaiting()
}

// resumeWaiting enqueues the step that had to wait.
func (c *change) resumeWaiting() {
	switch {
	case c.t.Phase.AwaitsApproval():
	case c.t.Step == state.JobLaunch && c.t.Run != nil:
		c.enqueueStep(state.JobLaunch)
	case c.t.Step == state.StepRun:
	default:
		repeatStep(c)
	}
}
