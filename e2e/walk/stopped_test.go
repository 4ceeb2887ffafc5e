package walk

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// What people read when a task stops, and what it takes until it does.

// reasonOf is why a task stopped, and nothing if it goes on or waits for people.
func reasonOf(t *state.Task) string {
	switch {
	case (t.Ended() || t.Phase == state.PhaseFailed) && t.End != nil:
		return t.End.Reason
	case t.Phase == state.PhaseInterrupted && t.Waiting != nil:
		return t.Waiting.Detail
	}
	return ""
}

// outOfReach reports whether a task has ended because errand cannot reach its issue, so that nothing can be posted there.
func outOfReach(t *state.Task) bool {
	return t.Ended() && t.End != nil && (t.End.Class == "gone" || t.End.Class == "access")
}

// endTold wants people to be able to read why a task stopped: in the status comment, and where it failed or ended, in a
// comment of its own.
func (m *model) endTold(t *state.Task, end bool) {
	why := reasonOf(t)
	if why == "" || m.explained[t.Key] == t.Version || !end && !m.late(t.Since, 10*time.Minute) {
		return
	}
	if outOfReach(t) {
		return
	}
	if c := m.w.hub.byID(t.Status.Comment); c == nil || !strings.Contains(letters(c.body()), letters(why)) {
		m.w.fatalf("told: task %s is %s since %s (%s), and its status comment does not say why: jobs %v", t.Key, t.Phase, sub(t.Since), why, m.w.jobsOf(t))
	}
	switch {
	case t.Phase == state.PhaseFailed && !m.says(t, "failed-", why):
		m.w.fatalf("told: task %s failed at %s (%s), and no comment says so: jobs %v", t.Key, sub(t.Since), why, m.w.jobsOf(t))
	case t.Ended() && t.Outcome != state.OutcomeReport && !m.says(t, "ended", ""): // a report is the last word itself
		m.w.fatalf("told: task %s ended at %s (%s), and no comment says so: jobs %v", t.Key, sub(t.Since), why, m.w.jobsOf(t))
	}
	m.explained[t.Key] = t.Version
}

// says reports whether a comment of a task's life with a key that begins so is there, and has some words. One that GitHub
// refused for good is not written again.
func (m *model) says(t *state.Task, key, what string) bool {
	lists := [][]*comment{m.w.hub.issues[t.Key.Issue].comments}
	if t.PR != nil {
		lists = append(lists, m.w.hub.issues[t.PR.Number].comments)
	}
	key = "<!-- errand:" + strconv.Itoa(t.Gen) + "." + key
	if slices.ContainsFunc(m.barred, func(mark string) bool { return strings.HasPrefix(mark, key) }) {
		return true
	}
	return slices.ContainsFunc(slices.Concat(lists...), func(c *comment) bool {
		return c.author == nil && !c.gone && strings.Contains(c.body(), key) && strings.Contains(letters(c.body()), letters(what))
	})
}

// letters is what is left of words without their markup.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, html.UnescapeString(s))
}

// moved follows what the store took of a task.
func (m *model) moved(before, after *state.Task, e event.Event) {
	if m.blind || after == nil || before != nil && before.Version == after.Version {
		return
	}
	m.counts(e)
	m.attributed(e)
	m.setAside(before, after, e)
	if s := m.sweeping(); s != nil && e.Kind() == event.KindGone {
		if since, ok := m.unread[e.Task.Issue]; !ok || m.w.now.Sub(since) < time.Hour {
			m.w.complain("gone: task %s ends because its issue was unreachable for too long, and that was so since %s only", e.Task, sub(since))
		}
	}
}

// counts wants one comment or review to be taken once, whoever tells of it.
func (m *model) counts(e event.Event) {
	if !strings.HasPrefix(e.ID, "comment:") && !strings.HasPrefix(e.ID, "review-event:") {
		return
	}
	key := e.Task.String() + " " + e.ID
	if m.took[key] {
		m.w.complain("storage: %s of @%s is taken twice by task %s", e.ID, e.By.Login, e.Task)
	}
	m.took[key] = true
}

// attributed wants what counts as somebody's words to be their own. Who made something else of a comment may say so
// under another name than its author's only.
func (m *model) attributed(e event.Event) {
	if e.Kind() != event.KindCommented || e.Comment() == nil || e.Comment().Withdrawn != "" {
		return
	}
	token := sayToken.FindString(e.Comment().Body)
	c := m.w.hub.byID(e.Comment().ID)
	if token == "" || c == nil {
		return
	}
	for _, b := range c.bodies {
		if strings.Contains(b.text, token) && b.by != nil && b.by.ID != e.By.ID {
			m.w.complain("trust: %q is taken for words of @%s, and @%s wrote it", e.Comment().Body, e.By.Login, b.by.Login)
		}
	}
}

// setAside holds how long a task is set aside against how many outages it had in a row: a step of its life that was done,
// or a person's word, ends the row. The first takes a minute, each that follows twice as long, up to an hour.
func (m *model) setAside(before, after *state.Task, e event.Event) {
	key := e.Task.String() + " life " + strconv.Itoa(after.Gen)
	switch e.Kind() {
	case event.KindStarted, event.KindLaunched, event.KindCollected, event.KindCommitted, event.KindMoved, event.KindPROpened, event.KindAnswered, event.KindGathered:
		m.outages[key] = 0
		return
	case event.KindStepFailed:
	default:
		return
	}
	if before == nil || before.Phase == after.Phase || event.Of[event.StepFailed](e).Failure.RetryAt.IsZero() {
		return
	}
	n := m.outages[key]
	m.outages[key]++
	switch {
	case after.Phase == state.PhaseFailed && n < 5:
		m.w.complain("outages: task %s failed at an outage, the %d. in a row, which would pass: %s", e.Task, n+1, event.Of[event.StepFailed](e).Failure.Reason)
	case after.Phase == state.PhaseInterrupted && after.Waiting != nil:
		until := later(m.w.now.Add(min(time.Hour, time.Minute<<n)), event.Of[event.StepFailed](e).Failure.RetryAt)
		if after.Waiting.Until.After(until.Add(time.Second)) {
			m.w.complain("outages: task %s is set aside until %s after the %d. outage in a row, want %s at most", e.Task, sub(after.Waiting.Until), n+1, sub(until))
		}
	}
}

// misses notes that a sweep was told that an issue is not there.
func (m *model) misses(s *sweep, number int) {
	if s == nil {
		return
	}
	m.w.troubled()
	if _, known := m.unread[number]; !known {
		m.unread[number] = m.w.now
	}
}

// takenBack notes that somebody's yes, in whichever form, is not there any more.
func (m *model) takenBack(y *yes) {
	for _, o := range m.yeses {
		if o.plan == y.plan && o.by == y.by && o.hash == y.hash && o.undone.IsZero() && !o.bare {
			o.undone = m.w.now
		}
	}
}
