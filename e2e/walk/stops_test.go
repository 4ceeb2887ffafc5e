package walk

import (
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// A run that its task no longer waits for must end, and its result must not count for another run; likewise for VMs.
// Both are checked when the store accepts the results.

// checkTurn checks that an event only affects the run and the VM that it is about.
func (m *model) checkTurn(before, after *state.Task, e event.Event) {
	if before == nil || after == nil {
		return
	}
	switch e.Kind() {
	case event.KindRunEnded:
		if r := before.Run; r != nil && r.ID != e.Run && (after.Run == nil || after.Run.ID != r.ID) {
			m.w.complain("ending: the end of run %s of task %s counts as that of run %s", e.Run, e.Task, r.ID)
		}
	case event.KindReleased:
		if vm := before.VM; vm != nil && event.Of[event.Released](e).VM != "" && vm.Name != event.Of[event.Released](e).VM && (after.VM == nil || after.VM.Name != vm.Name) {
			m.w.complain("ending: the end of VM %s of task %s counts as that of VM %s", event.Of[event.Released](e).VM, e.Task, vm.Name)
		}
	case event.KindLaunched:
		m.wanted(after, e)
	}
}

// wanted checks that a run that has begun belongs to the task, or is stopped.
func (m *model) wanted(t *state.Task, e event.Event) {
	r := m.w.machines.byRun(e.Run)
	if t.Run != nil && t.Run.ID == e.Run || r == nil || r.exit != nil {
		return
	}
	if !m.w.jobs.queued(t, func(j *state.Job) bool { return j.Kind == state.JobStop && j.Run == e.Run }) {
		m.w.complain("quiet: run %s has begun, but task %s (%s) does not wait for it, and nothing stops it", e.Run, t.Key, t.Phase)
	}
}

// checkStopped checks the end of a job that stops a run: the run has ended, or three attempts to stop it have failed.
func (m *model) checkStopped(j *record, e event.Event) {
	if j.Kind != state.JobStop || e.Kind() != event.KindWorkSaved {
		return
	}
	r := m.w.machines.byRun(e.Run)
	if r == nil {
		return
	}
	if j.errors >= 2 && event.Of[event.WorkSaved](e).Work.Ref == "" {
		m.w.works.permitLoss(r.on, "a VM on which a run cannot be stopped, or its work read, is given up")
	}
	if r.exit == nil && j.errors < 2 && !j.unsure && j.Args.VM == r.on.name {
		m.w.complain("quiet: run %s of task %s is still active, but the job that stops it is done after %d errors", e.Run, e.Task, j.errors)
	}
}

// checkReachable checks that a run on an unreachable VM is given up after ten minutes, counted again when errand
// restarts or cannot store it.
func (m *model) checkReachable(t *state.Task) {
	if t.Run == nil || t.Run.State != state.RunActive {
		return
	}
	for _, o := range m.w.machines.list {
		if o.name != t.Run.VM || o.ended || !m.w.now.Before(o.deaf) {
			continue
		}
		since := later(later(o.deafSince, t.Run.Started), later(m.w.trouble, m.w.errand.born))
		if m.w.errand.up() && m.w.now.After(since.Add(13*time.Minute+2*m.w.coarse)) {
			m.w.fatalf("moves: VM %s has been unreachable since %s, but task %s still waits for run %s there", o.name, sub(o.deafSince), t.Key, t.Run.ID)
		}
	}
}
