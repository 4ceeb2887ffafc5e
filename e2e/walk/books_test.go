package walk

import (
	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// books holds what errand has written of runs against what they did: what the answers cost that the gateway gave them,
// and how they ended.
type books struct {
	w     *world
	spent map[string]int64 // in millionths of a dollar, by run: what the store took
	filed map[string]bool  // runs whose end the store took
}

func newBooks(w *world) *books {
	return &books{w: w, spent: map[string]int64{}, filed: map[string]bool{}}
}

// applied follows what the store took.
func (b *books) applied(before, after *state.Task, e event.Event) {
	switch e.Kind() {
	case event.KindSpent:
		b.spent[e.Run] += event.Of[event.Spent](e).Money.MicroUSD
	case event.KindRunEnded:
		if before != nil && before.Run != nil && before.Run.ID == e.Run && (after.Run == nil || after.Run.ID != e.Run) {
			b.ended(e)
		}
	default:
		return
	}
	if after != nil {
		b.sums(after)
	}
}

// sums wants each answer to be counted once: with its run and with the task. A run of which the gateway counted nothing
// costs what its agent says.
func (b *books) sums(t *state.Task) {
	runs, sum := t.Runs, int64(0)
	if t.Run != nil && t.Run.Metered { // else the task is told at its end
		runs = append(runs[:len(runs):len(runs)], *t.Run)
	}
	for _, r := range runs {
		sum += r.Money.MicroUSD
		if want := b.spent[r.ID]; want > 0 && r.Money.MicroUSD != want {
			b.w.complain("books: the answers that run %s got cost $%.6f, and errand counts $%.6f", r.ID, float64(want)/usd, float64(r.Money.MicroUSD)/usd)
		}
	}
	if t.Money.MicroUSD != sum {
		b.w.complain("books: the runs of task %s cost $%.6f, and the task $%.6f", t.Key, float64(sum)/usd, float64(t.Money.MicroUSD)/usd)
	}
}

// ended holds how a run's end is filed against how it was: once, and as it ended.
func (b *books) ended(e event.Event) {
	if b.filed[e.Run] {
		b.w.complain("ending: the end of run %s counts twice", e.Run)
	}
	b.filed[e.Run] = true
	r, res := b.w.machines.byRun(e.Run), event.Of[event.RunEnded](e).Result
	if r == nil || r.exit == nil || r.step == "check" {
		return
	}
	if r.exit.Cause != runlog.CauseExited && r.exit.Cause != runlog.CauseStalled {
		return // errand, or the VM's end, has stopped it
	}
	if r.on.ended || !r.on.deaf.IsZero() || b.w.down == "follow" || b.w.slow.After(r.started) || b.w.lostSight.After(r.started) { // it may have been given up before its end could be read
		return
	}
	switch want := r.wanted(); {
	case r.repairs() && !maySucceedLater(want): // the work was done before: its answer counts, and people are told that its block could not be read
		if res.Status != state.StatusOK || want != agent.StatusOK && res.Broken == "" {
			b.w.complain("ending: run %s, which repairs an answer, ended as %q (%s), and is filed as %s, broken: %q", e.Run, r.mood, want, res.Status, res.Broken)
		}
	case res.Status != state.RunStatus(want):
		b.w.complain("ending: run %s ended as %q (%s), and is filed as %s", e.Run, r.mood, want, res.Status)
	}
	if res.LastSeq != r.exit.LastSeq {
		b.w.complain("ending: run %s has said %d lines, and its end is filed after line %d", e.Run, r.exit.LastSeq, res.LastSeq)
	}
}

// maySucceedLater reports whether waiting or money may help against a status.
func maySucceedLater(s agent.Status) bool {
	return s == agent.StatusRateLimited || s == agent.StatusAuth || s == agent.StatusBudget
}

// wanted is the status of a run that ended in its mood.
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

// may holds the start of an agent against the money that its task has left.
func (b *books) may(t *state.Task, r *run) {
	if r.step == "check" {
		return
	}
	if limit := settings.Default().Limits.MicroUSD + b.w.model.caps[r.on.owner]; t.Money.MicroUSD >= limit {
		b.w.complain("books: run %s begins, and task %s has spent $%.2f of $%.2f", r.spec.ID, t.Key, float64(t.Money.MicroUSD)/usd, float64(limit)/usd)
	}
}

// byRun is a run that is, or was, on one of the machines.
func (m *machines) byRun(id string) *run {
	for _, o := range m.list {
		if r := o.run(id); r != nil {
			return r
		}
	}
	return nil
}

// quiet wants nothing to go on on a machine while its work is begun, read or changed; a run that is started again
// is the same. What a call did that took so long that its lease is over is not held against errand: the program on
// the VM ends with its connection.
func (m *machines) quiet(o *walkVM, op, id string) {
	for _, r := range o.runs {
		if !m.w.late && r.exit == nil && r.spec.ID != id {
			m.w.complain("quiet: %s on VM %s while run %s goes on", op, o.name, r.spec.ID)
		}
	}
}
