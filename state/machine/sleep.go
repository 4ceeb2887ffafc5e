package machine

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
)

// park has an idle VM looked at when it is due to sleep.
func park(c *change) {
	if c.t.VM.Paid > 0 || c.p.IdleVM > 0 {
		c.due(state.DueIdle, c.t.VM.Name, sleepAt(c))
	}
}

// sleepAt is when the task's VM sleeps if nobody needs it before: just before the span that is paid for
// ends, or after a while where nothing is paid. A wait that ends soon is waited for.
func sleepAt(c *change) time.Time {
	vm, at := c.t.VM, c.t.RestedSince().Add(c.p.IdleVM)
	margin := c.p.IdleVM
	if vm.Paid > 0 {
		margin = c.margin()
		at = vm.PaidUntil(c.e.Now).Add(-margin)
	}
	if w := c.t.Waiting; c.t.Phase == state.PhaseInterrupted && w != nil && w.Until.After(at) && w.Until.Before(at.Add(margin)) {
		at = w.Until.Add(time.Second)
	}
	return at
}

// sleepBefore is how long before the end of a span of that length a VM is put to sleep.
func (p Policy) sleepBefore(span time.Duration) time.Duration { return min(p.SleepBefore, span/4) }

// margin is how long before the end of its paid span the task's VM is put to sleep: as the policy says, and
// sooner if putting it away has taken longer than that, so that it does not reach into another span. A third of
// a span is the most: what takes longer would leave too little of it.
func (c *change) margin() time.Duration {
	vm := c.t.VM
	m := c.p.sleepBefore(vm.Paid)
	if vm.PutAway > 0 {
		m = max(m, min(vm.PutAway+vm.Paid/60, vm.Paid/3))
	}
	return m
}

// idles reports whether a VM that may be due is still the task's, and still idle.
func idles(c *change) bool {
	return c.t.VM != nil && c.t.VM.Name == c.e.Due.VM && c.t.Resting()
}

// goToSleep has the work put away, so that the VM can go. Like all work of a task it is serial: what
// people want meanwhile comes after it.
func goToSleep(c *change) {
	if at := sleepAt(c); c.e.Now.Before(at) { // it has been at work meanwhile
		c.due(state.DueIdle, c.t.VM.Name, at)
		return
	}
	if c.e.Wanted {
		c.lookAgain()
		return
	}
	if vm := c.t.VM; c.e.Due.Insured && vm.Paid > 0 {
		margin := c.margin()
		c.due(state.DueIdle, vm.Name, vm.PaidUntil(c.e.Now.Add(2*margin)).Add(-margin))
		return
	}
	j := c.job(state.JobSleep, state.LaneWork, "sleep-"+c.t.VM.Name)
	j.Args = map[string]string{"vm": c.t.VM.Name}
	c.add(j)
}

// sameVM reports whether the event is about the task's present VM.
func sameVM(c *change) bool { return c.t.VM != nil && c.t.VM.Name == c.e.Slept.VM }

// slept lets the VM go whose work is put away, unless somebody wants it by now. Without Asleep nothing
// could be put away, and Failure says why.
func slept(c *change) {
	a := c.e.Slept.Asleep
	if a != nil {
		putAway(c, *a)
	}
	if s := c.e.Saved; s != nil && s.Ref != "" {
		c.t.Saved = append(c.t.Saved, *s)
	}
	if wanted := c.e.Wanted || !c.t.Resting(); c.t.Ended() || wanted && a != nil && a.Mode == state.SleepArchive {
		c.lookAgain() // it goes, or stays, as it would have
		return
	}
	why := "asleep"
	if a == nil {
		why = sentence(c.e.Slept.Why, "vanished")
		c.post("slept-"+c.t.VM.Name, state.Post{Kind: state.PostVM, Reason: state.VMNotSaved, Text: c.e.Slept.Failure, By: c.asker()})
	}
	c.release(why)
	released(c, why)
}

// lookAgain has a VM that was kept because somebody may want it looked at in a while: it may be that nobody did.
func (c *change) lookAgain() {
	if !c.t.Resting() {
		return
	}
	pause := c.p.IdleVM / 2
	if c.t.VM.Paid > 0 {
		pause = c.margin() / 4
	}
	c.due(state.DueIdle, c.t.VM.Name, c.e.Now.Add(pause))
}

// sleptLate deletes what was put away of a VM that the task does not have any more.
func sleptLate(c *change) {
	if a := c.e.Slept.Asleep; a != nil && (c.t.Asleep == nil || c.t.Asleep.Ref != a.Ref) {
		c.forget(a.Mode, a.Ref)
	}
}

// putAway stores where the work is, in place of what was put away before.
func putAway(c *change, a state.Asleep) {
	if old := c.t.Asleep; old != nil && old.Ref != a.Ref {
		c.forget(old.Mode, old.Ref)
	}
	a.At, a.Session, a.Gen = c.e.Now, session(c, state.RunReview), c.t.VM.Gen
	a.Carries = c.t.VM.Carries
	c.t.Asleep = &a
	if c.t.Ended() {
		forgetLater(c)
		return
	}
	c.due(state.DueUnused, "", c.e.Now.Add(c.p.KeepAsleep))
}

// forget has what was put away deleted at once.
func (c *change) forget(mode state.SleepMode, ref string) {
	j := c.job(state.JobForget, state.LaneControl, "forget-"+ref)
	j.Args = map[string]string{"mode": string(mode), "ref": ref}
	c.add(j)
}

// forgetLater has what an ended task put away deleted a while after its end.
func forgetLater(c *change) {
	if a := c.t.Asleep; a != nil {
		c.due(state.DueForget, string(a.Mode)+":"+a.Ref, c.t.End.At.Add(c.p.KeepAfterEnd))
	}
}

// forgetDue deletes what an ended task put away. The issue may have begun anew meanwhile.
func forgetDue(c *change) {
	ref := c.e.Due.Ref
	c.forget(c.e.Due.Mode, ref)
	if a := c.t.Asleep; a != nil && a.Ref == ref {
		c.t.Asleep = nil
	}
}

// unused deletes what nobody has wanted for long, and says so once.
func unused(c *change) {
	a := c.t.Asleep
	if at := a.At.Add(c.p.KeepAsleep); c.e.Now.Before(at) { // put away anew meanwhile
		c.due(state.DueUnused, "", at)
		return
	}
	if wakes(c) { // somebody wants it, and it is on no VM yet
		c.due(state.DueUnused, "", c.e.Now.Add(wantedFor))
		return
	}
	if c.t.VM == nil && c.t.Wakes() != nil {
		c.post("forgotten-"+a.VM, state.Post{Kind: state.PostVM, Reason: state.VMForgotten, Items: []string{string(a.Mode)}, By: c.asker()})
	}
	c.forget(a.Mode, a.Ref)
	c.t.Asleep = nil
}

// wantedFor is how long what was put away stays at least while a VM is to take it over.
const wantedFor = time.Hour

// wakes reports whether the next VM of the task takes over what was put away, and people need not do anything for that.
func wakes(c *change) bool {
	return c.t.VM == nil && c.t.Wakes() != nil && (c.t.Phase.Working() || c.t.Phase == state.PhaseInterrupted)
}

// woken stores the VM on which the work is again, and takes the step for which it was woken. Work that could
// not be brought back is lost.
func woken(c *change) {
	c.haveVM(c.e.Launch)
	if why := c.e.Launch.NotWoken; why != "" {
		c.fail(state.End{Reason: "the work is lost: " + why, Hint: "Comment `retry` to do the work again.", Class: state.ClassVM})
		return
	}
	if c.t.Step == state.JobRebase && c.t.Asleep != nil {
		c.t.Asleep.Stale = true
	}
	c.work(c.t.Step)
}

// wokenLate gives the VM back that was brought up for a step that nobody takes any more.
func wokenLate(c *change) {
	c.haveVM(c.e.Launch)
	if c.t.Ended() {
		c.release(string(c.t.Phase))
	}
}

// haveVM stores the task's VM, and what could not be brought onto it.
func (c *change) haveVM(l *state.Launch) {
	vm := l.VM
	defer boundSpan(c)
	if old := c.t.VM; old != nil && old.Name != vm.Name {
		gone := *old
		gone.EndedAt, gone.Why = c.e.Now, "replaced"
		c.t.VMs = append(c.t.VMs, gone)
	}
	c.t.VM = &vm
	if l.NotWoken == "" || c.t.Asleep == nil {
		return
	}
	c.post("not-woken-"+vm.Name, state.Post{Kind: state.PostVM, Reason: state.VMNotWoken, Text: l.NotWoken, By: c.asker()})
	c.forget(c.t.Asleep.Mode, c.t.Asleep.Ref)
	c.t.Asleep = nil
}

// boundSpan has it looked whether another span of the task's VM may begin, before the present one ends and early
// enough for the work to be put away.
func boundSpan(c *change) {
	if vm := c.t.VM; vm != nil && vm.Paid > 0 {
		c.due(state.DueSpan, vm.Name, vm.PaidUntil(c.e.Now.Add(3*c.margin())).Add(-2*c.margin()))
	}
}

// spanEnds stops the run of a task whose VM may not have another span: its hours are used up, or Waiting says
// that the money for VMs is. The VM sleeps next.
func spanEnds(c *change) {
	used, w := c.t.VMUse(c.e.Now).Hours, c.e.Waiting
	over := c.p.VMHours > 0 && used+c.t.VM.Paid > c.p.VMHours
	if !over && w == nil || c.t.Run == nil || c.t.Run.State != state.RunActive {
		boundSpan(c)
		return
	}
	if over {
		c.dropRun("the task's VM hours are used up")
		c.fail(state.End{Reason: fmt.Sprintf("the task's VM hours are used up (%s of %s)", state.FormatHours(used), state.FormatHours(c.p.VMHours)), Hint: state.HintVMHours, Class: state.ClassVMHours})
		return
	}
	c.dropRun(w.Detail)
	c.interrupt(w.Detail, w.Until)
	c.t.Waiting.Kind = state.WaitMoney
}
