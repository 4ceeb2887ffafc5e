package machine

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
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
		if last := c.t.Runs[n-1]; last.Kind == kind && last.Class != "success" && last.State == state.RunEnded {
			attempt, repeat = last.Attempt+1, last.Message
		}
	}
	c.t.RunSeq++
	c.t.Unasked++
	c.t.Run = &state.Run{
		ID:    fmt.Sprintf("%d-%d-%d", c.t.Key.Repo, c.t.Key.Issue, c.t.RunSeq),
		Kind:  kind,
		State: state.RunLaunching,
		Seq:   c.t.RunSeq,
		RunLaunch: state.RunLaunch{
			Session: session(c, kind),
			Round:   c.t.Round,
			Attempt: attempt,
			Repeat:  repeat,
		},
	}
	if a := c.t.Approval; a != nil {
		c.t.Run.Plan = a.Hash
	}
	c.t.Waiting = nil
	c.work(state.JobLaunch)
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

// launched stores that the run is active.
func launched(c *change) {
	l, r := c.e.Launch, c.t.Run
	r.State, r.VM, r.Adapter, r.Model, r.Started, r.Sign = state.RunActive, l.VM.Name, l.Adapter, l.Model, l.Started, c.e.Now
	r.MaxTurns, r.TurnLimit = l.MaxTurns, l.TurnLimit
	if !l.Repairs {
		r.Repair = nil
	}
	if !l.Resumed {
		r.Session = ""
	}
	c.haveVM(l)
	c.t.Fresh, c.t.Waiting, c.t.Turns, c.t.Insist = false, nil, 0, false
	r.Notes = l.Notes
	c.t.Branch.BaseAt = time.Time{}
	if l.VMHead != "" {
		c.t.Branch.VMHead = l.VMHead
	}
	if l.Root != "" {
		c.t.Branch.Root = l.Root
	}
	if l.BaseSHA != "" && c.t.Branch.Head == "" {
		c.t.Branch.BaseSHA = l.BaseSHA
	}
	for _, id := range l.Taken {
		for i := range c.t.Feedback {
			if c.t.Feedback[i].ID == id {
				c.t.Feedback[i].Taken = r.ID
			}
		}
	}
	c.t.Step = state.StepRun
}

// launchedLate stops a launched run that is obsolete.
func launchedLate(c *change) {
	l := c.e.Launch
	if c.t.Run != nil && c.t.Run.ID == l.Run {
		return // reported twice
	}
	vm := l.VM
	if c.t.VM == nil {
		c.t.VM = &vm
	}
	j := c.job(state.JobStop, state.LaneControl, "stop-"+l.Run)
	j.Run, j.Priority = l.Run, 2
	j.Args = map[string]string{"why": "the task turned away before it was launched", "vm": l.VM.Name}
	c.add(j)
}

// progress stores the run's last activity.
func progress(c *change) {
	p, r := c.e.Progress, c.t.Run
	r.LastSeq, r.Doing, r.Turns, r.Sign = p.LastSeq, p.Doing, p.Turns, p.Sign
	if !r.Metered {
		r.Money = p.Money
	}
	if p.Session != "" {
		r.Session = p.Session
	}
}

// file closes the active run with its result.
func file(c *change) {
	r, res := c.t.Run, c.e.Result
	r.State, r.Ended, r.LastSeq, r.Turns, r.Refused = state.RunEnded, res.Ended, res.LastSeq, res.Turns, res.Refused
	if r.Ended.After(c.e.Now) || r.Ended.Before(r.Started) { // the VM's clock may be wrong
		r.Ended = c.e.Now
	}
	r.Status, r.Class, r.Message, r.Used, r.Told = res.Status, res.Class, res.Message, res.Used, true
	if res.Session != "" {
		r.Session = res.Session
	}
	if r.Kind == state.RunCheck && res.Class == "success" {
		r.Checked = state.SumChecks(res.Checks)
	}
	r.Doing, r.Calls, r.Concluded = "", nil, nil
	fileRepair(c, r, res.Text)
	reported(c, r, res.Money)
	if !r.Started.IsZero() && r.Ended.After(r.Started) {
		c.t.Active += r.Ended.Sub(r.Started)
	}
	c.t.Runs = append(c.t.Runs, *r)
	c.t.Run = nil
	keepLastWords(c, res.Text)
	if res.Status == state.StatusVMLost && c.t.VM != nil {
		why := sentence(res.VMEnd, "vanished")
		c.release(why)
		released(c, why)
	}
}

// noSession repeats the run without the session that did not exist: the prompt then contains the conversation so far.
func noSession(c *change) {
	kind := c.t.Run.Kind
	file(c)
	for i := range c.t.Runs {
		c.t.Runs[i].Session = ""
	}
	c.launchRun(kind)
	c.t.Run.Repeat = "the agent's session was not there any more"
}

// dropRun files a run whose result is obsolete. An active run is stopped.
func (c *change) dropRun(why string) {
	r := c.t.Run
	if r == nil {
		return
	}
	if r.State == state.RunActive {
		c.stopRun(why)
		c.t.Active += max(c.e.Now.Sub(r.Started), 0)
	}
	r.State, r.Ended, r.Message, r.Class, r.Status = state.RunEnded, c.e.Now, why, "retryable", "interrupted"
	r.Calls, r.Concluded, r.Repair = nil, nil, nil
	c.t.Runs = append(c.t.Runs, *r)
	c.t.Run = nil
	c.drop = true
}

// stopRun enqueues stopping the active run and saving its work, before other queued jobs.
func (c *change) stopRun(why string) {
	j := c.job(state.JobStop, state.LaneControl, "stop-"+c.t.Run.ID)
	j.Run, j.Priority = c.t.Run.ID, 2
	j.Args = map[string]string{"why": why, "vm": c.t.Run.VM}
	c.add(j)
}

// droppedRun returns the run that the event is about if it was filed before its result was known, and the result has
// not arrived since.
func droppedRun(c *change) *state.Run {
	for i := range c.t.Runs {
		if r := &c.t.Runs[i]; r.ID == c.e.Run && (r.Status == "interrupted" || r.Status == state.StatusMaxTurns) && !r.Told {
			return r
		}
	}
	return nil
}

// countDropped adds the cost of a stopped run.
func countDropped(c *change) {
	r := droppedRun(c)
	r.Turns, r.Refused, r.LastSeq, r.Used, r.Told = c.e.Result.Turns, c.e.Result.Refused, c.e.Result.LastSeq, c.e.Result.Used, true
	if r.Session == "" {
		r.Session = c.e.Result.Session
	}
	reported(c, r, c.e.Result.Money)
}

// interrupted retries the run automatically after a while, a limited number of times.
func interrupted(c *change) {
	attempt, res := c.t.Run.Attempt, *c.e.Result
	file(c)
	if attempt >= c.p.MaxAttempts {
		hint := ""
		if res.Status == "crashed" {
			hint = hintProgram
		}
		c.fail(state.End{Reason: sentence(res.Message, "the agent's run ended without a result ("+res.Status+")"),
			Hint: hint + "It was tried " + fmt.Sprint(attempt) + " times. Comment `retry` to try again.", Class: "agent"})
		return
	}
	at := c.e.Now.Add(backoff(c, attempt))
	if res.RetryAt.After(at) { // by the VM, too
		at = res.RetryAt
		if most := c.e.Now.Add(maxWait); at.After(most) {
			at = most
		}
	}
	c.interrupt(sentence(res.Message, res.Status), at)
}

// maxUnasked is the maximum number of runs without a person's action. One action leads to about ten runs if every check
// fails; more suggest an endless loop, which costs money.
const maxUnasked = 20

// tooMany reports whether no run may be launched before people act.
func tooMany(c *change) bool { return c.t.Unasked >= maxUnasked }

// tooManyRuns stops a task that would otherwise continue endlessly.
func tooManyRuns(c *change) {
	phase := c.t.Phase
	if phase == state.PhaseInterrupted {
		phase = c.t.Resume
	}
	c.fail(state.End{Reason: fmt.Sprintf("%d runs were launched since somebody last said something, and it is not done", c.t.Unasked),
		Hint: "Look at what the last runs did, then comment `retry` to go on.", Class: "limit"})
	c.t.Resume = phase
}

// maxWait is the longest wait for a limit of a model provider; the longest limits last a week.
const maxWait = 8 * 24 * time.Hour

// interrupt interrupts the task until a time.
func (c *change) interrupt(why string, at time.Time) {
	c.t.Resume = c.t.Phase
	step := c.t.Step
	c.to(state.PhaseInterrupted, why)
	c.t.Step = step
	c.t.Waiting = &state.Waiting{Kind: state.WaitLimit, Detail: why, Since: c.e.Now, Until: at}
	c.due(state.DueResume, fmt.Sprint(c.t.Version), at)
}

// backoff returns the delay, which doubles with each attempt up to a limit.
func backoff(c *change, attempt int) time.Duration {
	d := c.p.Backoff
	for range min(attempt-1, 20) {
		d = min(2*d, c.p.BackoffMax)
	}
	return min(d, c.p.BackoffMax)
}

// runFailed saves the work and posts the reason.
func runFailed(c *change) {
	res := *c.e.Result
	var capped *state.Waiting
	if atCap(c) {
		capped = c.t.Run.Held
	}
	c.stopRun("failed") // the run has ended; this saves the work
	file(c)
	end := state.End{Reason: sentence(res.Message, "the agent's run ended as "+res.Status), Hint: failureHint(c, res.Status), Class: "agent"}
	m := c.t.Money
	if n := len(c.t.Runs); n > 0 && c.t.Runs[n-1].Money.Free() {
		m.CapMicroUSD = 0 // it did not count for this run
	}
	switch {
	case m.AtCap():
		end = state.End{Reason: m.CapReached(), Hint: m.Hint(), Class: state.ClassBudget}
	case capped != nil:
		end = state.End{Reason: capped.Detail, Hint: capped.Hint, Class: state.ClassBudget}
	}
	c.fail(end)
}

// sentence returns the first text that is not empty.
func sentence(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

// resume continues an interrupted task.
func resume(c *change) {
	c.goOn("tried again")
}

// goOn leaves failed, interrupted or awaiting_answer for the phase before, and repeats its step.
func (c *change) goOn(why string) {
	phase, step := c.t.Resume, c.t.Step
	if phase == "" {
		phase = state.PhaseQueued
	}
	c.t.Resume, c.t.Waiting = "", nil
	c.to(phase, why)
	c.t.Step = step
	takeStep(c)
}

// takeStep enqueues the task's current step again.
func takeStep(c *change) {
	switch {
	case c.t.Phase == state.PhaseQueued: // whatever the step, nothing is planned yet
		c.work(state.JobStart)
		return
	case c.t.Phase.AwaitsApproval():
		c.postPlan()
		return
	}
	switch c.t.Step {
	case state.JobStart: // the cause of the wait is checked again before a launch
		c.work(state.JobStart)
	case state.JobShow, state.JobCommit, state.JobMove, state.JobOpenPR, state.JobAnswer, state.JobRebase, state.JobCollect, state.JobGather:
		c.work(c.t.Step)
	default: // launch, run
		c.launchRun(runAgain(c))
	}
}

// runAgain returns the kind of run that continues an interrupted one: checks whose work is still on the VM need no
// agent.
func runAgain(c *change) state.RunKind {
	if n := len(c.t.Runs); n > 0 && c.t.Step == state.StepRun && c.t.Work != nil && !c.t.Fresh {
		if last := c.t.Runs[n-1]; last.Kind == state.RunCheck && last.Class == "retryable" && has(c, last.VM) {
			return state.RunCheck
		}
	}
	return runOfPhase(c.t.Phase)
}

// has reports whether the work done on a VM is on the task's VM, or saved.
func has(c *change, vm string) bool {
	if c.t.VM != nil {
		return c.t.VM.Holds(vm)
	}
	a := c.t.Wakes()
	return a != nil && a.Holds(vm)
}

// again checks again whether a waiting task can continue.
func again(c *change) {
	if w := c.t.Waiting; w.Kind == state.WaitEdit {
		return
	}
	c.resumeWaiting()
}

// resumeWaiting enqueues the step that had to wait.
func (c *change) resumeWaiting() {
	switch {
	case c.t.Phase.AwaitsApproval():
	case c.t.Step == state.JobLaunch && c.t.Run != nil:
		c.work(state.JobLaunch)
	case c.t.Step == state.StepRun:
	default:
		takeStep(c)
	}
}
