package walk

import (
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// The comments when a task stops, and the conditions for stopping.

// reasonOf returns why a task stopped, or "" if it continues or waits for people. Of a reason with amounts it returns the beginning,
// because repositories are public, where comments leave amounts out.
func reasonOf(t *state.Task) string {
	why := ""
	switch {
	case (t.Ended() || t.Phase == state.PhaseFailed) && t.End != nil:
		why = t.End.Reason
	case t.Phase == state.PhaseInterrupted && t.Waiting != nil:
		why = t.Waiting.Detail
	}
	why, _, _ = strings.Cut(why, " of $")
	return why
}

// amountOfMoney is an amount in dollars.
var amountOfMoney = regexp.MustCompile(`\$[0-9]`)

// outOfReach reports whether a task has ended because errand cannot access its issue, so that nothing can be posted
// there.
func outOfReach(t *state.Task) bool {
	return t.Ended() && t.End != nil && (t.End.Class == "gone" || t.End.Class == "access")
}

// checkReasonTold checks that people can read why a task stopped: in the status comment, and after a failure or the end
// also in a separate comment.
func (m *model) checkReasonTold(t *state.Task, end bool) {
	why := reasonOf(t)
	if why == "" || m.explained[t.Key] == t.Version || !end && !m.late(t.Since, 10*time.Minute) {
		return
	}
	if outOfReach(t) {
		return
	}
	if c := m.w.hub.byID(t.Status.Comment); c != nil && amountOfMoney.MatchString(c.body()) {
		m.w.fatalf("told: the status comment of task %s names an amount in a public repository:\n%s", t.Key, c.body())
	}
	if c := m.w.hub.byID(t.Status.Comment); c == nil || !strings.Contains(plainLetters(c.body()), plainLetters(why)) {
		m.w.fatalf("told: task %s is %s since %s (%s), but its status comment does not explain it: jobs %v", t.Key, t.Phase, sub(t.Since), why, m.w.jobsOf(t))
	}
	switch {
	case t.Phase == state.PhaseFailed && !m.commentSays(t, "failed-", why):
		m.w.fatalf("told: task %s failed at %s (%s), but no comment reports it: jobs %v", t.Key, sub(t.Since), why, m.w.jobsOf(t))
	case t.Ended() && t.Outcome != state.OutcomeReport && !m.commentSays(t, "ended", ""): // the report is the final comment
		m.w.fatalf("told: task %s ended at %s (%s), but no comment reports it: jobs %v", t.Key, sub(t.Since), why, m.w.jobsOf(t))
	}
	m.explained[t.Key] = t.Version
}

// commentSays reports whether a comment of a task's life with a key prefix exists and contains a text. A comment that
// GitHub permanently refused is not required.
func (m *model) commentSays(t *state.Task, key, what string) bool {
	lists := [][]*comment{m.w.hub.issues[t.Key.Issue].comments}
	if t.PR != nil {
		lists = append(lists, m.w.hub.issues[t.PR.Number].comments)
	}
	key = "<!-- errand:" + strconv.Itoa(t.Gen) + "." + key
	if slices.ContainsFunc(m.barred, func(mark string) bool { return strings.HasPrefix(mark, key) }) {
		return true
	}
	return slices.ContainsFunc(slices.Concat(lists...), func(c *comment) bool {
		return c.author == nil && !c.gone && strings.Contains(c.body(), key) && strings.Contains(plainLetters(c.body()), plainLetters(what))
	})
}

// plainLetters returns a text without its markup.
func plainLetters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, html.UnescapeString(s))
}

// recordMove records a change of a task that the store accepted.
func (m *model) recordMove(before, after *state.Task, e event.Event) {
	if m.blind || after == nil || before != nil && before.Version == after.Version {
		return
	}
	m.checkCountedOnce(e)
	m.checkAttribution(e)
	m.checkBackoff(before, after, e)
	if s := m.sweeping(); s != nil && e.Kind() == event.KindAccessLost {
		if since, ok := m.unread[e.Task.Issue]; !ok || m.w.now.Sub(since) < time.Hour {
			m.w.complain("gone: task %s ends because its issue was unreachable for too long, but it was unreachable only since %s", e.Task, sub(since))
		}
	}
}

// checkCountedOnce checks that each comment or review is taken once, whatever its source.
func (m *model) checkCountedOnce(e event.Event) {
	if !strings.HasPrefix(e.ID, "comment:") && !strings.HasPrefix(e.ID, "review-event:") {
		return
	}
	key := e.Task.String() + " " + e.ID
	if m.took[key] {
		m.w.complain("storage: %s by @%s was taken twice by task %s", e.ID, e.By.Login, e.Task)
	}
	m.took[key] = true
}

// checkAttribution checks that a text is attributed to its author. The text of an edited comment must not be attributed
// to the comment's original author.
func (m *model) checkAttribution(e event.Event) {
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
			m.w.complain("trust: %q is attributed to @%s, but @%s wrote it", e.Comment().Body, e.By.Login, b.by.Login)
		}
	}
}

// checkBackoff checks a task's back-off against the number of its consecutive outages: a completed step of its life, or
// a person's comment, resets the number. The back-off is a minute at first and doubles with each outage up to an hour.
func (m *model) checkBackoff(before, after *state.Task, e event.Event) {
	key := e.Task.String() + " life " + strconv.Itoa(after.Gen)
	switch e.Kind() {
	case event.KindStarted, event.KindLaunched, event.KindCollected, event.KindCommitted, event.KindBranchMoved,
		event.KindPROpened, event.KindThreadsAnswered, event.KindAnswersFound, event.KindGathered:
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
		m.w.complain("outages: task %s failed at temporary outage number %d in a row: %s", e.Task, n+1, event.Of[event.StepFailed](e).Failure.Reason)
	case after.Phase == state.PhaseInterrupted && after.Waiting != nil:
		until := later(m.w.now.Add(min(time.Hour, time.Minute<<min(n, 6))), event.Of[event.StepFailed](e).Failure.RetryAt)
		if after.Waiting.Until.After(until.Add(time.Second)) {
			m.w.complain("outages: task %s is postponed until %s after outage number %d in a row, want at most %s", e.Task, sub(after.Waiting.Until), n+1, sub(until))
		}
	}
}

// recordMiss records that a sweep got the answer that an issue does not exist.
func (m *model) recordMiss(s *sweep, number int) {
	if s == nil {
		return
	}
	m.w.troubled()
	if _, known := m.unread[number]; !known {
		m.unread[number] = m.w.now
	}
}

// approvalWithdrawn records that a person's approval was withdrawn.
func (m *model) approvalWithdrawn(y *yes) {
	for _, o := range m.yeses {
		if o.plan == y.plan && o.by == y.by && o.hash == y.hash && o.undone.IsZero() && !o.bare {
			o.undone = m.w.now
		}
	}
}
