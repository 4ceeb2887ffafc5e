package walk

import (
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// trials are sequences of acts and failures that rarely occur at random: each is the situation in which one kind of bug
// appears. No trial breaks a promise by itself.
func trials() []act {
	return []act{
		{"stop denied", 1, failStop},
		{"stop in vain", 1, unstoppableRun},
		{"early review", 1, earlyReview},
		{"late list", 1, lateList},
		{"refused while busy", 1, refusedWhileBusy},
		{"unpack denied", 1, failUnpack},
		{"two weeks", 1, idleForTwoWeeks},
		{"release denied", 1, failRelease},
	}
}

// active returns an active run that its task waits for, with a writer who can stop it.
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

// failStop lets people stop a run and continue at once, while the job that stops it fails: the launch of the next run
// ends it, and its log is read after that run has begun.
func failStop(w *world) bool {
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

// unstoppableRun lets people stop a run that cannot be stopped for hours, and then continue or do nothing.
func unstoppableRun(w *world) bool {
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

// earlyReview submits a review of the next pull request before errand knows that it is open.
func earlyReview(w *world) bool {
	return w.hang(spot{state.JobOpenPR, "open pull"}, []string{"lost answer", "reviewed"})
}

// lateList makes GitHub's lists omit the newest objects for a while, and the answer to a comment get lost.
func lateList(w *world) bool {
	w.lag = []time.Duration{5 * time.Second, 30 * time.Second}[w.roll("lag", 2)]
	w.note("lists omit objects younger than %s", w.lag)
	return w.hang(spot{[]state.JobKind{state.JobPost, state.JobPost, state.JobStatus}[w.roll("late", 3)], "comment"}, []string{"lost answer"})
}

// refusedWhileBusy makes the answer to a first status comment get lost, and then GitHub refuse it, while the state to
// show changes.
func refusedWhileBusy(w *world) bool {
	w.hang(spot{state.JobStatus, "comment"}, []string{"lost answer", "busy and forbidden"})
	return actHelpfully(w)
}

// failUnpack makes the first attempt to unpack a suspended task's work fail.
func failUnpack(w *world) bool {
	w.hang(spot{state.JobLaunch, "unpack"}, []string{"denied"})
	for _, t := range w.tasks() {
		if by := w.writer(); by != nil && t.VM == nil && t.WorkToRestore() != nil {
			w.say(by, w.hub.issues[t.Key.Issue], []string{"@errand retry", "@errand SAY do more"}[w.roll("wake", 2)])
			return true
		}
	}
	return true
}

// failRelease loses the VM of a run, and makes the job that deletes it fail until the task has another VM.
func failRelease(w *world) bool {
	r, _, _ := w.active()
	if r == nil {
		return false
	}
	w.hang(spot{state.JobRelease, "release VM"}, []string{"denied", "denied", "denied", "denied", "denied", "denied", "denied"})
	w.loseVM(r.on)
	w.pass(4 * time.Minute)
	return true
}

// idleForTwoWeeks restores a suspended task, lets it be suspended again, and waits for two weeks.
func idleForTwoWeeks(w *world) bool {
	for _, t := range w.tasks() {
		if t.VM == nil && t.Suspended != nil && !t.Ended() {
			actHelpfully(w)
			w.pass(3 * time.Hour)
			w.pass(14 * 24 * time.Hour)
			return true
		}
	}
	return false
}

// reviewed lets a writer review the newest pull request.
func (w *world) reviewed() {
	i, by := w.aPull(), w.writer()
	if i == nil || by == nil {
		return
	}
	w.note("@%s reviews #%d", by.Login, i.number)
	w.hub.onReview(i, by, "changes_requested", "Please mend this.")
}

// busy writes a comment for a task while one of its jobs is running.
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

// refuses makes GitHub refuse a call.
func refuses(op string) error { return temporary(op, forge.ClassPermanent, 403, time.Time{}) }
