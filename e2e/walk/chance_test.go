package walk

import (
	"time"

	"github.com/errand-bot/errand/state"
)

// acts are all possible acts; the first ones are drawn most often.
func acts() []act {
	return append([]act{
		{"help along", 60, actHelpfully},
		{"open", 3, openIssue},
		{"assign", 3, trigger1("assigned")},
		{"mention", 2, mention},
		{"label", 2, trigger1("labeled")},
		{"command", 5, command},
		{"chatter", 2, chatter},
		{"thumb", 3, thumbPlan},
		{"approve", 3, approve},
		{"tick", 2, tick},
		{"review", 3, review},
		{"pull comment", 2, pullComment},
		{"agent", 8, agentMood},
		{"trouble", 8, armTrouble},
		{"meanwhile", 6, meanwhile},
		{"chain", 4, hangChain},
		{"partial outage", 2, partial},
		{"webhook", 4, hookMishap},
		{"kill", 2, killErrand},
		{"outage", 1, outage},
		{"VM", 3, vmTrouble},
		{"unthumb", 1, unthumb},
		{"edit plan", 1, editPlan},
		{"delete plan", 1, deletePlan},
		{"vouch", 2, vouch},
		{"permission", 2, permission},
		{"edit issue", 2, editIssue},
		{"open with mention", 2, openMentioning},
		{"mention in text", 1, mentionInText},
		{"push", 2, push},
		{"settings", 2, pushMain},
		{"conflict", 1, pushConflict},
		{"resolve", 1, resolveConflict},
		{"block", 1, block},
		{"unassign", 1, trigger1("unassigned")},
		{"unlabel", 1, trigger1("unlabeled")},
		{"close", 1, closeIssue},
		{"reopen", 1, reopen},
		{"merge", 1, merge},
		{"close pull", 1, closePull},
		{"reopen pull", 1, reopenPull},
		{"delete branch", 1, deleteBranch},
	}, append(trials(), scenes()...)...)
}

// actHelpfully performs a helpful action of a person, so that tasks make progress.
func actHelpfully(w *world) bool {
	by := w.writer()
	if by == nil {
		w.hub.permit(w.hub.people[0], state.PermissionAdmin)
		return true
	}
	if w.hub.last == 0 {
		w.hand(w.open(by), by, "assigned")
		return true
	}
	for _, t := range w.tasks() {
		i := w.hub.issues[t.Key.Issue]
		switch {
		case t.Phase.AwaitsApproval():
			if c := w.hub.byID(t.NewestPlan().Comment); c != nil {
				w.thumbUp(c, by)
				return true
			}
		case t.Phase == state.PhaseFailed && len(w.hub.deleted) > 0:
			w.hub.branches[w.hub.deleted[0]], w.hub.deleted = w.hub.deleted[1], w.hub.deleted[2:]
			w.note("@%s restores a branch", by.Login)
			return true
		case t.Phase == state.PhaseAwaitingAnswer || t.Phase == state.PhaseFailed:
			w.say(by, i, "@errand retry")
			return true
		case t.Phase == state.PhasePRClosed && w.roll("reopen how", 2) == 0 && reopenPull(w):
			return true
		case t.Phase == state.PhasePRClosed:
			w.say(by, i, "@errand retry")
			return true
		case t.Phase == state.PhasePROpen && t.Round < 1:
			return review(w)
		case t.Phase == state.PhasePROpen:
			return merge(w) || resolveConflict(w)
		case t.Waiting != nil && t.Waiting.Kind == state.WaitEdit:
			w.model.triggered(i, by) // replan also accepts the text
			w.model.triggers[len(w.model.triggers)-1].seen = true
			w.say(by, i, "@errand replan")
			return true
		case t.Ended() && !i.closed && i.assigned && w.roll("anew", 3) == 2:
			w.hand(i, by, "unassigned")
			w.pass(2 * time.Second)
			w.hand(i, by, "assigned")
			return true
		}
	}
	for n := 1; n <= w.hub.last; n++ {
		if i := w.hub.issues[n]; i.pull == nil && i != w.blocker && !i.assigned && !i.closed && w.roll("hand over", 2) == 0 {
			w.hand(i, by, "assigned")
			return true
		}
	}
	return false
}

func agentMood(w *world) bool {
	list := moods()
	w.mood = list[w.roll("mood", len(list))]
	w.note("the next run: %s", w.mood)
	return true
}

func armTrouble(w *world) bool {
	kinds := troubles()[1:]
	t := trouble{after: w.roll("calls", 12), kind: kinds[w.roll("trouble", len(kinds))]}
	w.note("armed: %s in %d calls", t.kind, t.after)
	w.armed = append(w.armed, t)
	return true
}

// meanwhile lets a person act during one of errand's calls.
func meanwhile(w *world) bool {
	list := people()
	a := list[w.roll("meanwhile", len(list))]
	w.note("armed: %s meanwhile", a.name)
	w.armed = append(w.armed, trouble{after: w.roll("calls", 12), kind: "meanwhile", act: func() {
		if a.do(w) {
			w.now = w.now.Add(2 * time.Second)
			w.hub.deliver()
			if w.errand.up() {
				w.errand.settle()
			}
		}
	}})
	return true
}

// people are the acts that may occur during a call: only those of people.
func people() []act {
	var out []act
	for _, a := range acts()[:len(acts())-len(trials())-len(scenes())] {
		switch a.name {
		case "help along", "agent", "trouble", "meanwhile", "chain", "partial outage", "webhook", "kill", "outage", "VM":
		default:
			out = append(out, a)
		}
	}
	return out
}

func hookMishap(w *world) bool {
	kinds := []string{"twice", "late", "failed", "lost"}
	w.mishap = mishap{kind: kinds[w.roll("mishap", 4)], by: []time.Duration{3 * time.Second, time.Minute, 8 * time.Minute}[w.roll("late", 3)]}
	w.note("the next webhook: %s", w.mishap.kind)
	return true
}

func killErrand(w *world) bool {
	if !w.errand.up() {
		return false
	}
	w.note("errand is killed")
	w.die()
	return true
}

func outage(w *world) bool {
	w.out = w.now.Add([]time.Duration{time.Minute, 20 * time.Minute, 3 * time.Hour}[w.roll("outage", 3)])
	w.note("GitHub is down until %s", w.out.Sub(began()))
	w.troubled()
	return true
}

func vmTrouble(w *world) bool {
	if w.roll("VM trouble", 3) == 2 {
		w.machines.full = w.now.Add(30 * time.Minute)
		w.note("no VM is available")
		return true
	}
	for _, o := range w.machines.list {
		if o.ended {
			continue
		}
		w.troubled()
		if w.roll("deaf", 2) == 0 {
			o.deafSince = w.now
			o.deaf = w.now.Add([]time.Duration{time.Minute, 25 * time.Minute}[w.roll("deaf", 2)])
			w.note("VM %s cannot be reached", o.name)
		} else {
			w.loseVM(o)
		}
		return true
	}
	return false
}

// loseVM makes a VM end unexpectedly.
func (w *world) loseVM(o *walkVM) {
	w.troubled()
	w.works.permitLoss(o, "it was lost")
	o.end(w)
	w.note("VM %s is lost", o.name)
}

// spans are the times until the next act.
func spans() []time.Duration {
	return []time.Duration{3 * time.Second, 20 * time.Second, 0, time.Minute, 4 * time.Minute, time.Second, 15 * time.Minute, 2 * time.Hour, 30 * time.Hour, 100 * time.Hour}
}

// play draws acts and lets time pass until the walk ends.
func (w *world) play(table []act, steps int) {
	total := 0
	for _, a := range table {
		total += a.weight
	}
	for range steps {
		w.grants()
		n := w.roll("act", total)
		for _, a := range table {
			if n -= a.weight; n < 0 {
				if a.do(w) {
					w.hit("act " + a.name)
				}
				break
			}
		}
		list := spans()
		w.pass(list[w.roll("span", len(list))])
		w.steps++
	}
	w.model.final()
}
