package walk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
)

// What people say is heard, whatever befalls the webhook that tells of it. The model writes down what was said by
// those who may, and wants to see each word taken in time.

// word is a comment or a review by somebody who may direct errand, where a task is under way.
type word struct {
	by     *account
	at     time.Time
	said   *comment // nil for a review
	review int64
	order  bool // it is said to errand, so that people have to see that it was heard
	task   state.TaskKey
	life   int
}

func (o *word) String() string {
	if o.said == nil {
		return fmt.Sprintf("review %d of @%s", o.review, o.by.Login)
	}
	return fmt.Sprintf("what @%s said on #%d: %q", o.by.Login, o.said.on.number, o.said.body())
}

// said writes a comment down. Words on a pull request that are not said to errand are for its people.
func (m *model) said(c *comment) {
	order := strings.HasPrefix(c.body(), "@errand")
	if c.on.pull == nil || order {
		m.word(c.on, word{by: c.author, said: c, order: order})
	}
}

// reviewed writes a review down.
func (m *model) reviewed(on *issue, by *account, id int64) { m.word(on, word{by: by, review: id}) }

func (m *model) word(on *issue, o word) {
	if o.by.Bot || !o.by.canWrite() {
		return
	}
	for _, t := range m.w.tasks() {
		if !t.Ended() && (t.Key.Issue == on.number && on.pull == nil || t.PR != nil && t.PR.Number == on.number) {
			o.at, o.task, o.life = m.w.now, t.Key, t.Gen
			m.spoken = append(m.spoken, &o)
		}
	}
}

// heard wants every word to be taken, at the end without grace.
func (m *model) heard(end bool) {
	m.spoken = slices.DeleteFunc(m.spoken, func(o *word) bool {
		t := m.taskBy(o.task)
		if m.taken(o, t) {
			return true
		}
		if end || m.late(o.at, soon) {
			m.w.fatalf("heard: %s, at %s, and task %s (%s) has not taken it: %v", o, sub(o.at), t.Key, t.Phase, m.w.jobsOf(t))
		}
		return false
	})
}

// taken reports whether a word was heard, or need not be any more.
func (m *model) taken(o *word, t *state.Task) bool {
	switch {
	case t == nil || t.Gen != o.life || t.Ended(): // to whom it was said is no more
		return true
	case o.by.lost.After(o.at): // what errand asks is whether they may as it asks
		return true
	case o.said == nil:
		return t.Knows(fmt.Sprintf("review-event:%d", o.review))
	case o.said.gone || len(o.said.bodies) > 1:
		return true
	case o.order && !o.said.denied: // where GitHub never takes the reaction, the word is taken all the same
		return o.said.eyes
	}
	here := func(c state.Said) bool { return c.ID == o.said.id }
	return t.Knows(fmt.Sprintf("comment:%d", o.said.id)) || slices.ContainsFunc(t.Context.Comments, here)
}

func (m *model) taskBy(key state.TaskKey) *state.Task {
	for _, t := range m.w.tasks() {
		if t.Key == key {
			return t
		}
	}
	return nil
}

// late reports whether something that began at an instant should be through by now. Where something went wrong, the
// sweeps of every quarter of an hour make up for it.
func (m *model) late(since time.Time, takes time.Duration) bool {
	w := m.w
	limit := since.Add(takes + 5*time.Second + w.coarse)
	if !w.trouble.IsZero() && !w.trouble.Before(since.Add(-after)) {
		limit = later(limit, w.trouble.Add(after+2*w.coarse))
	}
	return w.now.After(limit) && w.errand.up()
}

// pollsWithin is how long a 👍 may stand unseen: polls are a minute apart, and what one sees is checked.
const pollsWithin = 90 * time.Second

// answeredYes wants no task to wait for an approval that it has.
func (m *model) answeredYes(t *state.Task, end bool) {
	p := t.NewestPlan()
	if !t.Phase.AwaitsApproval() || p == nil || !p.Open() || !p.Posted() || t.Waiting != nil {
		return
	}
	on, c := m.w.hub.issues[t.Key.Issue], m.w.hub.byID(p.Comment)
	if c == nil || slices.ContainsFunc(m.spoken, func(o *word) bool { return o.task == t.Key }) { // other words may come first
		return
	}
	for _, y := range m.yeses {
		if y.on != on || y.untold || m.doubtAt(y, c, p.Short(), planToken.FindString(p.Text), m.w.now) != "" || m.toldNo(on, y) {
			continue
		}
		switch {
		case y.plan == nil && !y.at.After(c.created.Add(35*time.Second)): // one of that time may mean the revision before
			continue
		case y.by.lost.After(y.at), y.by.won.After(y.at): // it was asked while they might not
			continue
		case unticked(c.body()) != unticked(c.bodies[0].text) || len(c.bodies) > 1 && y.plan == nil:
			continue
		}
		if since := later(later(y.at, c.created), t.Since); end || m.late(since, pollsWithin) {
			m.w.fatalf("heard: @%s said yes to plan %s (comment %d) at %s, and task %s still waits: %v", y.by.Login, p.Short(), c.id, sub(y.at), t.Key, m.w.jobsOf(t))
		}
	}
}

// toldNo reports whether somebody was answered that their yes does not count.
func (m *model) toldNo(on *issue, y *yes) bool {
	return slices.ContainsFunc(on.comments, func(c *comment) bool {
		if c.author != nil || c.created.Before(y.at.Truncate(time.Second)) {
			return false
		}
		text := c.bodies[0].text
		if strings.Contains(text, "No plan is waiting for approval") { // it was said while the task had failed
			return true
		}
		return strings.Contains(text, "@"+y.by.Login) || y.hash != "" && strings.Contains(text, "GitHub did not report who ticked it")
	})
}
