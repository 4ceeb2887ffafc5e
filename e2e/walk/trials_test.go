package walk

import (
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// trials are rows of acts and troubles that meet by no roll of the dice: each is the situation in which one kind of bug
// shows. No one of them breaks a promise by itself.
func trials() []act {
	return []act{
		{"stop denied", 1, stopDenied},
		{"stop in vain", 1, stopInVain},
		{"early review", 1, earlyReview},
		{"late list", 1, lateList},
		{"refused while busy", 1, refusedWhileBusy},
		{"unpack denied", 1, unpackDenied},
		{"two weeks", 1, twoWeeks},
		{"release denied", 1, releaseDenied},
	}
}

// active is a run that goes on and that its task waits for, with somebody who may stop it.
func (w *world) active() (*run, *issue, *account) {
	for _, t := range w.tasks() {
		if t.Run == nil || t.Run.State != state.RunActive {
			continue
		}
		if r, by := w.machines.byRun(t.Run.ID), w.writer(); r != nil && r.exit == nil && by != nil {
			return r, w.hub.issues[t.Key.Issue], by
		}
	}
	return nil, nil, nil
}

// stopDenied has people stop a run and go on at once, while the job that stops it is told no: the launch of the next run
// ends it, and its log is read when that has begun.
func stopDenied(w *world) bool {
	r, on, by := w.active()
	if r == nil {
		return false
	}
	w.hang(spot{state.JobStop, "stop run"}, []string{"denied", "denied"})
	w.say(by, on, "@errand stop")
	w.pass(time.Second)
	w.say(by, on, "@errand retry")
	return true
}

// stopInVain has people stop a run that nobody can stop for hours, and go on, or leave it alone.
func stopInVain(w *world) bool {
	r, on, by := w.active()
	if r == nil {
		return false
	}
	r.ends = r.started.Add(r.spec.Duration)
	w.down, w.downUntil = "stop run", w.now.Add(3*time.Hour)
	w.note("no run can be stopped until %s", sub(w.downUntil))
	w.say(by, on, "@errand stop")
	w.pass(30 * time.Second)
	if w.roll("go on", 2) == 0 {
		w.say(by, on, "@errand retry")
		w.pass(time.Minute)
	} else {
		w.pass(2 * time.Hour)
	}
	return true
}

// earlyReview has somebody review the next pull request before errand knows that it is open.
func earlyReview(w *world) bool {
	return w.hang(spot{state.JobOpenPR, "open pull"}, []string{"lost answer", "reviewed"})
}

// lateList has GitHub's lists show for a while only what is older than some seconds, and the answer to a comment get lost.
func lateList(w *world) bool {
	w.lag = []time.Duration{5 * time.Second, 30 * time.Second}[w.roll("lag", 2)]
	w.note("lists show what is older than %s", w.lag)
	return w.hang(spot{[]state.JobKind{state.JobPost, state.JobPost, state.JobStatus}[w.roll("late", 3)], "comment"}, []string{"lost answer"})
}

// refusedWhileBusy has the answer to a first status comment get lost, then GitHub refuse it, while something happens that
// the comment is to show.
func refusedWhileBusy(w *world) bool {
	w.hang(spot{state.JobStatus, "comment"}, []string{"lost answer", "busy and forbidden"})
	return helpAlong(w)
}

// unpackDenied has the work of a task that sleeps be unpacked in vain once.
func unpackDenied(w *world) bool {
	w.hang(spot{state.JobLaunch, "unpack"}, []string{"denied"})
	for _, t := range w.tasks() {
		if by := w.writer(); by != nil && t.VM == nil && t.Wakes() != nil {
			w.say(by, w.hub.issues[t.Key.Issue], []string{"@errand retry", "@errand SAY do more"}[w.roll("wake", 2)])
			return true
		}
	}
	return true
}

// releaseDenied has the VM of a run get lost, and the job that deletes it be told no for so long that the task has
// another VM by then.
func releaseDenied(w *world) bool {
	r, _, _ := w.active()
	if r == nil {
		return false
	}
	w.hang(spot{state.JobRelease, "release VM"}, []string{"denied", "denied", "denied", "denied", "denied", "denied", "denied"})
	w.loses(r.on)
	w.pass(4 * time.Minute)
	return true
}

// twoWeeks has a task that sleeps be woken, sleep again, and be left alone for two weeks.
func twoWeeks(w *world) bool {
	for _, t := range w.tasks() {
		if t.VM == nil && t.Asleep != nil && !t.Ended() {
			helpAlong(w)
			w.pass(3 * time.Hour)
			w.pass(14 * 24 * time.Hour)
			return true
		}
	}
	return false
}

// reviewed has a writer review the newest pull request.
func (w *world) reviewed() {
	i, by := w.aPull(), w.writer()
	if i == nil || by == nil {
		return
	}
	w.note("@%s reviews #%d", by.Login, i.number)
	w.hub.onReview(i, by, "changes_requested", "Please mend this.")
}

// busy has somebody say something to a task while a job of it is under way.
func (w *world) busy() {
	by := w.writer()
	if w.job == nil || by == nil {
		return
	}
	w.say(by, w.hub.issues[w.job.Task.Issue], "@errand status")
	w.now = w.now.Add(2 * time.Second)
	w.hub.deliver()
	if w.errand.up() {
		w.errand.settle()
	}
}

// lists reports whether GitHub's lists show a comment yet.
func (c *comment) lists(w *world) bool { return !c.created.After(w.now.Add(-w.lag)) }

// refuses is GitHub's no to what would have happened.
func refuses(op string) error { return temporary(op, forge.ClassPermanent, 403, time.Time{}) }
