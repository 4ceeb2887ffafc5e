package walk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/machine"
)

// Comments of people are processed even if their webhooks are lost. The model records each comment and review of a
// writer, and checks that errand takes it in time.

// word is a comment or a review by a writer for a task that has not ended.
type word struct {
	by     *account
	at     time.Time
	said   *comment // nil for a review
	review int64
	order  bool // addressed to errand, so that errand must react to it
	task   state.TaskKey
	life   int
}

func (o *word) String() string {
	if o.said == nil {
		return fmt.Sprintf("review %d by @%s", o.review, o.by.Login)
	}
	return fmt.Sprintf("comment by @%s on #%d: %q", o.by.Login, o.said.on.number, o.said.body())
}

// said records a comment. Comments on a pull request that do not mention errand are for people.
func (m *model) said(c *comment) {
	order := strings.HasPrefix(c.body(), "@errand")
	if c.on.pull == nil || order {
		m.word(c.on, word{by: c.author, said: c, order: order})
	}
}

// reviewed records a review.
func (m *model) reviewed(on *issue, by *account, id int64) { m.word(on, word{by: by, review: id}) }

func (m *model) word(on *issue, o word) {
	if o.by.Bot || !o.by.canWrite() {
		return
	}
	for _, t := range m.w.tasks() {
		if !t.Ended() && (t.Key.Issue == on.number && on.pull == nil || t.PR != nil && t.PR.Number == on.number) {
			o.at, o.task, o.life = m.w.now, t.Key, t.Gen
			m.spoken = append(m.spoken, &o)
			if o.said != nil {
				m.steers(o)
			}
		}
	}
}

// heard checks that errand has taken every word; at the end there is no grace period.
func (m *model) heard(end bool) {
	m.spoken = slices.DeleteFunc(m.spoken, func(o *word) bool {
		t := m.taskBy(o.task)
		if m.taken(o, t) {
			return true
		}
		if end || m.late(o.at, soon) {
			m.w.fatalf("heard: %s, at %s, was not taken by task %s (%s): %v", o, sub(o.at), t.Key, t.Phase, m.w.jobsOf(t))
		}
		return false
	})
}

// taken reports whether a word was taken, or no longer needs to be.
func (m *model) taken(o *word, t *state.Task) bool {
	switch {
	case t == nil || t.Gen != o.life || t.Ended(): // its addressee no longer exists
		return true
	case !o.by.lost.Before(o.at): // errand checks the permission at the time of its request
		return true
	case o.said == nil:
		return t.HasSeen(fmt.Sprintf("review-event:%d", o.review))
	case o.said.gone || len(o.said.bodies) > 1:
		return true
	case o.order && !o.said.denied: // the word counts as taken even if GitHub refuses the reaction
		return o.said.eyes
	}
	here := func(c state.DiscussionComment) bool { return c.ID == o.said.id }
	return t.HasSeen(fmt.Sprintf("comment:%d", o.said.id)) || slices.ContainsFunc(t.Context.Comments, here)
}

// expected checks that no run began because of a comment that requests nothing: a run that considers comments has some,
// and no run has to answer a remark.
func (m *model) expected(r *run) {
	found := feedbackID.FindAllStringSubmatch(r.spec.Stdin, -1)
	if r.considers() && len(found) == 0 {
		m.w.fatalf("expected: run %s considers comments, but its prompt has none", r.spec.ID)
	}
	t := m.taskOf(r)
	for _, id := range found {
		if slices.ContainsFunc(t.Feedback, func(f state.Feedback) bool { return f.ID == id[1] && f.Kind == state.FeedbackAnswer }) {
			continue // an answer to a question can be as short as +1
		}
		c := m.w.hub.find(func(c *comment) bool { return id[1] == fmt.Sprintf("comment:%d", c.id) })
		if c == nil || c.author == nil || len(c.bodies) > 1 {
			continue
		}
		for _, words := range remarks() {
			if c.body() == strings.ReplaceAll(words, "SAY", fmt.Sprintf("say-%dx", c.id)) {
				m.w.fatalf("expected: run %s has to answer %q", r.spec.ID, c.body())
			}
		}
	}
}

func (m *model) taskBy(key state.TaskKey) *state.Task {
	for _, t := range m.w.tasks() {
		if t.Key == key {
			return t
		}
	}
	return nil
}

// late reports whether something that began at an instant should be finished by now. After a failure, the sweep every
// 15 minutes makes up for it.
func (m *model) late(since time.Time, takes time.Duration) bool {
	w := m.w
	limit := since.Add(takes + 5*time.Second + w.coarse)
	if !w.trouble.IsZero() && !w.trouble.Before(since.Add(-after)) {
		limit = later(limit, w.trouble.Add(after+2*w.coarse))
	}
	return w.now.After(limit) && w.errand.up()
}

// pollsWithin is the time within which errand must notice a 👍: polls are a minute apart, and each result is checked.
const pollsWithin = 90 * time.Second

// checkApprovalsTaken checks that no task waits for an approval that it has.
func (m *model) checkApprovalsTaken(t *state.Task, end bool) {
	if g := t.Gathering; g != nil {
		if m.late(g.Since, machine.DefaultPolicy().GatherMax+soon) || end {
			m.w.fatalf("gathered: task %s has gathered comments since %s: %v", t.Key, sub(g.Since), m.w.jobsOf(t))
		}
		return // an approval counts after the comments have been considered
	}
	p := t.NewestPlan()
	if !t.Phase.AwaitsApproval() || p == nil || !p.Open() || !p.Posted() || t.Waiting != nil {
		return
	}
	on, c := m.w.hub.issues[t.Key.Issue], m.w.hub.byID(p.Comment)
	if c == nil || slices.ContainsFunc(m.spoken, func(o *word) bool { return o.task == t.Key }) { // other comments may come first
		return
	}
	for _, y := range m.yeses {
		if y.on != on || y.untold || m.approvalDoubtAt(y, c, p.Short(), planToken.FindString(p.Text), m.w.now) != "" || m.approvalAnswered(on, y) {
			continue
		}
		switch {
		case y.plan == nil && !y.at.After(c.created.Add(35*time.Second)): // one at that time may mean the previous revision
			continue
		case y.by.lost.After(y.at), y.by.won.After(y.at): // checked while they had no write access
			continue
		case unticked(c.body()) != unticked(c.bodies[0].text) || len(c.bodies) > 1 && y.plan == nil:
			continue
		}
		if since := later(later(y.at, c.created), t.Since); end || m.late(since, pollsWithin) {
			m.w.fatalf("heard: @%s approved plan %s (comment %d) at %s, but task %s still waits: %v", y.by.Login, p.Short(), c.id, sub(y.at), t.Key, m.w.jobsOf(t))
		}
	}
}

// approvalAnswered reports whether errand answered that an approval does not count.
func (m *model) approvalAnswered(on *issue, y *yes) bool {
	return slices.ContainsFunc(on.comments, func(c *comment) bool {
		if c.author != nil || c.created.Before(y.at.Truncate(time.Second)) {
			return false
		}
		text := c.bodies[0].text
		if strings.Contains(text, "No plan is waiting for approval") { // given while the task had failed
			return true
		}
		return strings.Contains(text, "@"+y.by.Login) || y.hash != "" && strings.Contains(text, "GitHub did not report who ticked it")
	})
}
