package walk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"
)

// Mentions in the text of an issue. If a person with write access opens an issue with a mention, or adds one by an edit, a task
// starts, unless the issue has or had a task. Mentions by other people start nothing.

// mentioning returns texts of issues. Only the first ones mention errand; the others quote it, or talk about it.
func mentioning() []string {
	return []string{"BODY\n\n@errand plan", "@errand BODY", "BODY\n\n@errand", "BODY\n\n> @errand plan", "BODY\n\n`@errand plan`", "BODY Ask @errand."}
}

// mentions reports whether a text mentions errand.
func mentions(text string) bool {
	return strings.HasPrefix(text, "@errand") || strings.Contains(text, "\n@errand")
}

func (w *world) mentioningText() string {
	list := mentioning()
	return strings.Replace(list[w.roll("mentioning", len(list))], "BODY", w.text(), 1)
}

// openMentioning opens an issue whose text may mention errand.
func openMentioning(w *world) bool {
	if w.hub.last > 6 {
		return false
	}
	by := w.somebody()
	w.openWith(by, w.mentioningText())
	return true
}

// mentionInText edits the text of an issue so that it may mention errand.
func mentionInText(w *world) bool {
	i, by := w.anIssue(), w.somebody()
	if i == nil || !by.canWrite() && by != i.author || by.Bot {
		return false
	}
	w.reword(i, by, w.mentioningText())
	return true
}

// openWith opens an issue.
func (w *world) openWith(by *account, body string) *issue {
	h := w.hub
	h.last++
	i := &issue{number: h.last, node: fmt.Sprintf("I_%d", h.last), author: by, created: h.clock()}
	i.texts = []text{{title: "Mend the slug", body: body, by: by, at: h.clock()}}
	h.issues[i.number] = i
	if mentions(body) {
		w.model.mentioned(i, by, false)
	}
	w.note("@%s opens #%d: %q", by.Login, i.number, body)
	h.onIssue(i, by, "opened", nil)
	return i
}

// reword edits the text of an issue.
func (w *world) reword(i *issue, by *account, body string) {
	before := i.text().body
	w.note("@%s edits #%d: %q", by.Login, i.number, body)
	w.model.reworded(i, by, body)
	if mentions(body) && !mentions(before) {
		w.model.mentioned(i, by, true)
	}
	i.texts = append(i.texts, text{title: i.text().title, body: body, by: by, at: w.hub.clock()})
	w.hub.onIssue(i, by, "edited", func(e *github.IssuesEvent) { e.Changes = &github.EditChange{Body: &github.EditBody{From: p(before)}} })
}

// mentioned records a mention in the text of an issue. It has no effect if the issue has or had a task.
func (m *model) mentioned(on *issue, by *account, edited bool) {
	if m.task(on) != nil {
		return
	}
	another := slices.ContainsFunc(m.triggers, func(t *trigger) bool { return t.on == on && !t.dropped })
	m.triggered(on, by)
	t := m.triggers[len(m.triggers)-1]
	t.inText, t.lost = true, m.w.mishap.kind == "lost"
	t.seen = t.seen || another                                               // the task of the other one may be first
	t.dropped = t.dropped || t.lost && (edited || m.w.errand.swept.IsZero()) // the sweep finds new issues only
}

// reworded records an edit of an issue's text. A mention that it removes before errand has read it has no effect, nor has one whose
// webhook was lost if another person than the author edits the text.
func (m *model) reworded(on *issue, by *account, body string) {
	for _, t := range m.triggers {
		if t.on != on || !t.inText {
			continue
		}
		if !mentions(body) && t.removed.IsZero() {
			t.removed = m.w.now
		}
		t.dropped = t.dropped || !mentions(body) || t.lost && by != on.author
	}
}

// rereadLimit is the longest time between reading an issue's text again and the start of its task.
const rereadLimit = 10 * time.Second

// isRemoved reports whether a mention was removed before a task began at an instant, so that it must not have started it.
func (t *trigger) isRemoved(began time.Time) bool {
	return t.inText && !t.removed.IsZero() && began.After(t.removed.Add(rereadLimit))
}

// removedMention opens an issue that mentions errand, and removes the mention before errand learns of it.
func removedMention(w *world) bool {
	by := w.writer()
	if by == nil || w.hub.last > 6 {
		return false
	}
	w.mishap = mishap{kind: "late", by: []time.Duration{time.Minute, 8 * time.Minute}[w.roll("late", 2)]}
	i := w.openWith(by, "@errand plan\n\n"+w.text())
	w.now = w.now.Add(2 * time.Second)
	w.reword(i, by, w.text())
	return true
}

// rush hands two issues over at the same time, so that tasks compete for VMs.
func rush(w *world) bool {
	by := w.writer()
	if by == nil || w.hub.last > 5 {
		return false
	}
	w.hand(w.open(by), by, "assigned")
	w.pass([]time.Duration{0, time.Second, 4 * time.Minute}[w.roll("apart", 3)])
	w.hand(w.open(by), by, "assigned")
	return true
}
