package walk

import (
	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// books compares errand's records of runs with the runs: the cost of the gateway's answers, and the end of each run.
type books struct {
	w     *world
	spent map[string]int64 // in millionths of a dollar, by run: accepted by the store
	filed map[string]bool  // runs whose end the store accepted
}

func newBooks(w *world) *books {
	return &books{w: w, spent: map[string]int64{}, filed: map[string]bool{}}
}

// applied records an event that the store accepted.
func (b *books) applied(before, after *state.Task, e event.Event) {
	switch e.Kind() {
	case event.KindModelCalled:
		b.spent[e.Run] += event.Of[event.ModelCalled](e).Money.MicroUSD
	case event.KindRunEnded:
		if before != nil && before.Run != nil && before.Run.ID == e.Run && (after.Run == nil || after.Run.ID != e.Run) {
			b.ended(e)
		}
	default:
		return
	}
	if after != nil {
		b.checkSums(after)
	}
}

// checkSums checks that each answer is booked once, for its run and for the task. The cost of a run without booked
// answers is the agent's report.
func (b *books) checkSums(t *state.Task) {
	runs, sum := t.Runs, int64(0)
	if t.Run != nil && t.Run.Metered { // otherwise the task is charged at its end
		runs = append(runs[:len(runs):len(runs)], *t.Run)
	}
	for _, r := range runs {
		sum += r.Money.MicroUSD
		if want := b.spent[r.ID]; want > 0 && r.Money.MicroUSD != want {
			b.w.complain("books: the answers of run %s cost $%.6f, but errand booked $%.6f", r.ID, float64(want)/usd, float64(r.Money.MicroUSD)/usd)
		}
	}
	if t.Money.MicroUSD != sum {
		b.w.complain("books: the runs of task %s cost $%.6f, but the task $%.6f", t.Key, float64(sum)/usd, float64(t.Money.MicroUSD)/usd)
	}
}

// ended checks that a run's end is recorded once, and with the right status.
func (b *books) ended(e event.Event) {
	if b.filed[e.Run] {
		b.w.complain("ending: the end of run %s was recorded twice", e.Run)
	}
	b.filed[e.Run] = true
	r, res := b.w.machines.byRun(e.Run), event.Of[event.RunEnded](e).Result
	if r == nil || r.exit == nil || r.step == "check" {
		return
	}
	if r.exit.Cause != runlog.CauseExited && r.exit.Cause != runlog.CauseStalled {
		return // stopped by errand, or by the VM's end
	}
	if r.on.ended || !r.on.deaf.IsZero() || b.w.down == "follow" || b.w.slow.After(r.started) || b.w.lostSight.After(r.started) { // it may have been abandoned before errand could read its end
		return
	}
	switch want := r.wanted(); {
	case r.repairs() && !maySucceedLater(want): // the work was done earlier: its answer counts, and a comment says that its block was unreadable
		if res.Status != state.StatusOK || want != agent.StatusOK && res.Broken == "" {
			b.w.complain("ending: run %s, which repairs an answer, ended as %q (%s), but is recorded as %s, broken: %q", e.Run, r.mood, want, res.Status, res.Broken)
		}
	case res.Status != state.RunStatus(want):
		b.w.complain("ending: run %s ended as %q (%s), but is recorded as %s", e.Run, r.mood, want, res.Status)
	}
	if res.LastSeq != r.exit.LastSeq {
		b.w.complain("ending: run %s wrote %d lines, but its end is recorded after line %d", e.Run, r.exit.LastSeq, res.LastSeq)
	}
}

// maySucceedLater reports whether a run with a status may succeed later or with more budget.
func maySucceedLater(s agent.Status) bool {
	return s == agent.StatusRateLimited || s == agent.StatusAuth || s == agent.StatusBudget
}

// wanted returns the expected status of a run that failed by its mood.
func (r *run) wanted() agent.Status {
	switch r.mood {
	case "no_op":
		return agent.StatusNoOp
	case "turns":
		return agent.StatusMaxTurns
	case "crash":
		return agent.StatusCrashed
	case "stall":
		return agent.StatusStalled
	case "limit":
		return agent.StatusRateLimited
	case "auth":
		return agent.StatusAuth
	case "dear":
		return agent.StatusBudget
	case "no_session":
		if r.resumed() {
			return agent.StatusNoSession
		}
	}
	return agent.StatusOK
}

// may checks that the task has budget left when an agent starts.
func (b *books) may(t *state.Task, r *run) {
	if r.step == "check" {
		return
	}
	if limit := settings.Default().Limits.MicroUSD + b.w.model.caps[r.on.owner]; t.Money.MicroUSD >= limit {
		b.w.complain("books: run %s begins although task %s has spent $%.2f of $%.2f", r.spec.ID, t.Key, float64(t.Money.MicroUSD)/usd, float64(limit)/usd)
	}
}

// byRun finds a run that is, or was, on one of the machines.
func (m *machines) byRun(id string) *run {
	for _, o := range m.list {
		if r := o.run(id); r != nil {
			return r
		}
	}
	return nil
}

// quiet checks that no other run is active on a machine while work is started, read or changed there; a restarted run
// is the same run. It ignores a call that outlasted its lease, because the program on the VM ends with its connection.
func (m *machines) quiet(o *walkVM, op, id string) {
	for _, r := range o.runs {
		if !m.w.late && r.exit == nil && r.spec.ID != id {
			m.w.complain("quiet: %s on VM %s while run %s is active", op, o.name, r.spec.ID)
		}
	}
}
