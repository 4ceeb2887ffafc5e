package walk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// scenes are acts that combine several actions in a certain order, which random single acts rarely produce.
func scenes() []act {
	return []act{
		{"approval lost", 1, approvalLost},
		{"failed webhooks", 1, failedWebhooks},
		{"plan is gone", 1, deletedPlan},
		{"slow comment", 1, slowComment},
		{"two outages", 1, twoOutages},
		{"hidden issue", 1, hideIssue},
		{"reworded", 1, editedByAnother},
		{"late trigger", 1, lateTrigger},
		{"late words", 1, lateComment},
		{"long review", 1, longReview},
		{"message to an agent", 4, tellAgent},
		{"nudge", 1, nudge},
		{"hand over again", 1, handOverAgain},
		{"cancel and retry", 1, cancelAndRetry},
		{"old pull reopened", 1, oldPullReopened},
		{"opening lost", 1, openingLost},
		{"rush", 1, rush},
		{"mention removed", 1, removedMention},
		{"update while busy", 1, updateWhileBusy},
	}
}

// approvalLost makes an approval invalid during the step that checks it or that starts the approved work. That step is
// retried until the data from its beginning is older than startServes.
func approvalLost(w *world) bool {
	all := []spot{{state.JobLaunch, ""}, {state.JobApprove, "permission"}, {state.JobApprove, "read plan"}, {state.JobStart, ""}}
	how := []string{"withdrawn", "revoked", "replaced"}
	return w.hang(all[w.roll("spot", len(all))], []string{how[w.roll("how", len(how))] + ", denied", "denied", "denied"})
}

// failedWebhooks makes the next three webhooks fail, and the first attempt to fetch one of them, too.
func failedWebhooks(w *world) bool {
	w.mishap = mishap{kind: "failed", more: 2}
	w.armed = append(w.armed, trouble{kind: "denied", op: "read delivery"})
	w.note("the next three webhooks fail, and the first attempt to fetch one of them, too")
	return true
}

// deletedPlan deletes a plan so that only a poll can notice it, while the store refuses the poll's report.
func deletedPlan(w *world) bool {
	w.mishap = mishap{kind: "lost"}
	if !deletePlan(w) {
		w.mishap = mishap{}
		return false
	}
	w.armed = append(w.armed, trouble{kind: "store refuses", op: string(event.KindPlanStale)})
	return true
}

// slowComment produces a duplicate comment: another worker does its job while the first request is in transit.
func slowComment(w *world) bool {
	return w.hang(spot{[]state.JobKind{state.JobPost, state.JobStatus}[w.roll("which", 2)], "comment"}, []string{"slow"})
}

// twoOutages postpones a task twice, with a completed step of its life in between.
func twoOutages(w *world) bool {
	denied := slices.Repeat([]string{"denied"}, tries)
	return w.hang(spot{state.JobLaunch, ""}, denied) && w.hang(spot{state.JobCollect, ""}, slices.Clone(denied))
}

// span is a part of time.
type span struct{ from, to time.Time }

// hideIssue makes GitHub temporarily report an issue as missing to the sweeps, as it does during problems.
func hideIssue(w *world) bool {
	i := w.anIssue()
	if i == nil {
		return false
	}
	spans := [][]time.Duration{{0, 25 * time.Minute, 70 * time.Minute, 115 * time.Minute}, {0, 50 * time.Minute}, {0, 3 * time.Hour}}[w.roll("hidden", 3)]
	w.note("#%d cannot be found by the sweeps: %v", i.number, spans)
	w.troubled()
	i.hidden = nil
	if by := w.writer(); by != nil && w.hub.last < 7 && w.roll("another task", 2) == 0 { // which the sweeps read nevertheless
		w.hand(w.open(by), by, "assigned")
	}
	for len(spans) > 0 {
		i.hidden = append(i.hidden, span{w.now.Add(spans[0]), w.now.Add(spans[1])})
		spans = spans[2:]
	}
	return true
}

// hiddenFrom reports whether a sweep gets the answer that an issue does not exist.
func (i *issue) hiddenFrom(s *sweep, now time.Time) bool {
	return s != nil && slices.ContainsFunc(i.hidden, func(h span) bool { return !now.Before(h.from) && now.Before(h.to) })
}

// editedByAnother lets a person write a comment, and another one edit it before errand reads it.
func editedByAnother(w *world) bool {
	i, by := w.anIssue(), w.writer()
	editors := slices.DeleteFunc(slices.Clone(w.hub.people), func(a *account) bool { return a == by || !a.canWrite() })
	if i == nil || by == nil || len(editors) == 0 {
		return false
	}
	w.mishap = mishap{kind: "late", by: []time.Duration{3 * time.Second, time.Minute}[w.roll("late", 2)]}
	c := w.say(by, i, []string{"SAY I think so too.", "@errand SAY please use another way"}[w.roll("words", 2)])
	w.now = w.now.Add(time.Second)
	w.edit(c, editors[w.roll("editor", len(editors))], strings.Replace(c.body(), fmt.Sprintf("say-%dx", c.id), fmt.Sprintf("say-%dx", w.hub.id()), 1))
	return true
}

// lateTrigger assigns an issue that has a task, and ends the task at once; the webhook of the assignment arrives after
// the task's end.
func lateTrigger(w *world) bool {
	i, by := w.anIssue(), w.writer()
	if i == nil || by == nil {
		return false
	}
	if t := w.model.task(i); t == nil || t.Ended() {
		return false
	}
	w.mishap = mishap{kind: "late", by: []time.Duration{time.Minute, 8 * time.Minute}[w.roll("late", 2)]}
	if what := []string{"assigned", "labeled", "mention"}[w.roll("trigger", 3)]; what == "mention" {
		w.model.triggered(i, by)
		w.say(by, i, "@errand plan")
	} else {
		w.hand(i, by, what)
	}
	w.now = w.now.Add(2 * time.Second)
	if w.roll("end", 2) == 0 {
		w.shut(i, by)
	} else {
		w.model.ending(i)
		w.say(by, i, "@errand cancel")
	}
	return true
}

// lateComment writes a comment that a sweep reads before its webhook arrives.
func lateComment(w *world) bool {
	w.mishap = mishap{kind: "late", by: 25 * time.Minute}
	if w.aPull() != nil && w.roll("where", 2) == 0 {
		return review(w)
	}
	return command(w)
}

// longReview is a review with three threads; one answer is permanently refused after another one was posted.
func longReview(w *world) bool {
	i, by := w.aPull(), w.writer()
	if i == nil || by == nil {
		return false
	}
	w.note("@%s asks three things about #%d", by.Login, i.number)
	for range 3 {
		i.remark(w, by)
	}
	w.hub.onReview(i, by, "changes_requested", "")
	return w.hang(spot{state.JobAnswer, "reply"}, []string{"later forbidden"})
}

// nudge closes a pull request and reopens it soon or late; one of the webhooks may come late.
func nudge(w *world) bool {
	i := w.aPull()
	if i == nil || !closePull(w) {
		return false
	}
	w.pass([]time.Duration{0, 2 * time.Second, time.Minute, 3 * time.Hour}[w.roll("closed for", 4)])
	if by := w.writer(); by != nil && w.hub.reopens(i.pull) {
		w.note("@%s reopens #%d", by.Login, i.number)
		w.hub.reopened(i, by)
	}
	return true
}

// handOverAgain withdraws the assignment of a task and renews it, perhaps with the pull request closed in between.
func handOverAgain(w *world) bool {
	i, by := w.anIssue(), w.writer()
	if i == nil || by == nil || !i.assigned || i.closed {
		return false
	}
	w.hand(i, by, "unassigned")
	w.pass([]time.Duration{2 * time.Second, time.Minute, 3 * time.Hour}[w.roll("unassigned for", 3)])
	if w.roll("close", 3) == 2 {
		closePull(w)
	}
	w.hand(i, by, []string{"assigned", "labeled"}[w.roll("by", 2)])
	return true
}

// cancelAndRetry cancels a task, and continues it soon, late or too late.
func cancelAndRetry(w *world) bool {
	i, by := w.anIssue(), w.writer()
	if i == nil || by == nil {
		return false
	}
	if by.held {
		w.model.ending(i)
	}
	w.say(by, i, "@errand cancel")
	w.pass([]time.Duration{0, 2 * time.Second, time.Minute, 23 * time.Hour, 25 * time.Hour}[w.roll("canceled for", 5)])
	if w.roll("edited", 4) == 3 {
		editIssue(w)
	}
	w.say(by, i, []string{"@errand retry", "@errand retry", "@errand retry fresh"}[w.roll("how", 3)])
	return true
}

// oldPullReopened restarts a task, and reopens the pull request of the life before at some time.
func oldPullReopened(w *world) bool {
	i, by, old := w.anIssue(), w.writer(), w.aPull()
	if i == nil || by == nil || old == nil {
		return false
	}
	w.sayRestart(by, i)
	w.pass([]time.Duration{2 * time.Second, time.Minute, 3 * time.Hour}[w.roll("restarted for", 3)])
	if !old.pull.open && w.hub.reopens(old.pull) {
		w.note("@%s reopens #%d", by.Login, old.number)
		w.hub.reopened(old, by)
	}
	return true
}

// sayRestart writes the command that begins a task anew.
func (w *world) sayRestart(by *account, i *issue) {
	if by.held {
		w.model.ending(i)
	}
	w.model.triggered(i, by)
	w.model.triggers[len(w.model.triggers)-1].seen = true
	w.say(by, i, "@errand restart")
}

// openingLost lets the answer about a new pull request get lost, and people withdraw or restart the task meanwhile.
func openingLost(w *world) bool {
	how := []string{"lost answer", "die after"}[w.roll("opening", 2)]
	i, by := w.anIssue(), w.writer()
	if i == nil || by == nil || i.closed {
		return false
	}
	restarts := w.roll("meanwhile", 2) == 0
	w.armed = append(w.armed, trouble{kind: how, op: "open pull"}, trouble{kind: "meanwhile", op: "open pull", act: func() {
		if restarts {
			w.sayRestart(by, i)
		} else {
			w.hand(i, by, "unassigned")
			w.now = w.now.Add(2 * time.Second)
			w.hand(i, by, "assigned")
		}
		w.now = w.now.Add(2 * time.Second)
		w.hub.deliver()
	}})
	w.note("armed: people act while a pull request is opened, and the answer is lost (%s)", how)
	return true
}

// replace withdraws an approval, and lets a user without write access give the same one.
func (w *world) replace(y *yes) {
	c, bot := y.plan, w.hub.person("dependabot[bot]")
	if c == nil || c.gone {
		return
	}
	if y.hash == "" { // a 👍
		if slices.ContainsFunc(c.thumbs, func(t thumb) bool { return t.by == y.by }) {
			w.thumbUp(c, bot)
			c.thumbs = slices.DeleteFunc(c.thumbs, func(t thumb) bool { return t.by == y.by })
			w.note("@%s takes the 👍 from comment %d", y.by.Login, c.id)
			w.model.approvalWithdrawn(y)
		}
		return
	}
	if ticked := c.body(); ticked != unticked(ticked) {
		w.edit(c, w.hub.people[0], unticked(ticked))
		w.model.approvalWithdrawn(y)
		w.edit(c, bot, ticked)
	}
}
