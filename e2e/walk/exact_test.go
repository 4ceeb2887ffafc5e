package walk

import (
	"slices"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// checkComments compares the final comments on GitHub with those in the store: each comment of a task's life is in the
// store, and each one in the store exists, unless a person deleted it.
func (m *model) checkComments(t *state.Task) {
	on := m.w.hub.issues[t.Key.Issue]
	known, kinds := map[int64]bool{t.Status.Comment: true}, map[string]int{}
	life := "<!-- errand:" + strconv.Itoa(t.Gen) + "."
	for _, p := range t.Posted {
		known[p.ID] = true
		if c := m.w.hub.byID(p.ID); c != nil && strings.Contains(c.bodies[0].text, life) { // the end of the previous life may be announced late
			kinds[p.Kind]++
		}
		m.checkPostedComment(t, p.ID, p.Kind)
	}
	for i := range t.Plans {
		if p := &t.Plans[i]; p.Posted() {
			m.checkPostedComment(t, p.Comment, "plan "+p.Short())
			m.checkPlanComment(t, p)
		}
	}
	if n := kinds[string(state.PostEnded)]; n > 1 {
		m.w.fatalf("exactly: task %s has announced its end %d times", t.Key, n)
	}
	if n := kinds[string(state.PostPROpened)]; n > 1 {
		m.w.fatalf("exactly: task %s has announced its pull request %d times", t.Key, n)
	}
	lists := [][]*comment{on.comments}
	if t.PR != nil {
		lists = append(lists, m.w.hub.issues[t.PR.Number].comments)
	}
	for _, list := range lists {
		for _, c := range list {
			if m.mayBeLeftOver(t, markOf(c.bodies[0].text)) || needsNoTask(markOf(c.bodies[0].text)) {
				continue
			}
			if c.author == nil && !c.gone && !c.undeletable && strings.Contains(c.bodies[0].text, life) && !known[c.id] {
				m.w.fatalf("exactly: comment %d of task %s exists on #%d, but is not in the store: %s", c.id, t.Key, c.on.number, markOf(c.bodies[0].text))
			}
		}
	}
}

// mayBeLeftOver reports whether the job of a comment failed permanently before errand knew whether the comment exists.
// After the end, or for a comment about a failure, no other job has its key and looks for it.
func (m *model) mayBeLeftOver(t *state.Task, mark string) bool {
	key := strings.TrimSuffix(strings.TrimPrefix(mark, "<!-- errand:"), " -->")
	_, doubted := t.UnknownOutcomes[key]
	_, gaveUp := m.w.jobs.keys[t.Key.String()+" "+key]
	return doubted || gaveUp && (t.Ended() || strings.Contains(key, ".failed-"))
}

// jobGaveUp is leftOver for a comment on an issue or a pull request.
func (m *model) jobGaveUp(number int, mark string) bool {
	return slices.ContainsFunc(m.w.tasks(), func(t *state.Task) bool {
		return (t.Key.Issue == number || t.PR != nil && t.PR.Number == number) && m.mayBeLeftOver(t, strings.TrimSpace(mark))
	})
}

// checkPostedComment checks that a comment exists that the store has as posted. One that a person deleted is not posted
// again.
func (m *model) checkPostedComment(t *state.Task, id int64, what string) {
	for _, i := range m.w.hub.issues {
		for _, c := range i.comments {
			if c.id == id {
				if c.removed {
					m.w.fatalf("exactly: task %s links to comment %d (%s), which errand itself has deleted", t.Key, id, what)
				}
				return
			}
		}
	}
	m.w.fatalf("exactly: task %s links to comment %d (%s), which never existed", t.Key, id, what)
}

// checkPlanComment checks that the comment of a revision shows this revision, and only one comment does.
func (m *model) checkPlanComment(t *state.Task, p *state.Plan) {
	for i := range t.Plans {
		if o := &t.Plans[i]; o != p && o.Comment == p.Comment {
			m.w.fatalf("exactly: comment %d of task %s belongs to the revisions %s and %s", p.Comment, t.Key, p.Short(), o.Short())
		}
	}
	for _, c := range m.w.hub.issues[t.Key.Issue].comments {
		if c.id == p.Comment && (hashOf(c) != p.Short() || planToken.FindString(c.bodies[0].text) != planToken.FindString(p.Text)) {
			m.w.fatalf("exactly: comment %d of task %s should show plan %s (%s), but shows %s (%s)", c.id, t.Key,
				p.Short(), planToken.FindString(p.Text), hashOf(c), planToken.FindString(c.bodies[0].text))
		}
	}
}

// threads checks that each remark of a writer, in a thread of a review round, is answered once.
func (m *model) threads(t *state.Task) {
	if t.Phase != state.PhasePROpen || t.PR == nil {
		return
	}
	for _, th := range m.w.hub.issues[t.PR.Number].pull.threads {
		top, answers := th.comments[0], 0
		for _, c := range th.comments {
			if c.author == nil && !c.gone {
				answers++
			}
		}
		switch by := top.author; {
		case answers > 1:
			m.w.fatalf("threads: thread %d of task %s was answered %d times", th.top, t.Key, answers)
		case answers == 1 || by.Bot || !by.canWrite() || by.won.After(top.created) || !by.lost.IsZero() && !by.lost.Before(top.created):
		case !later(top.created, t.Trigger.At).Equal(top.created): // of an earlier life
		default:
			m.w.fatalf("threads: @%s asked in thread %d of task %s at %s, but got no answer: round %d", by.Login, th.top, t.Key, sub(top.created), t.Round)
		}
	}
}

// checkApproval checks an approval that the store accepted: people must have approved the comment that shows exactly
// this revision.
func (m *model) checkApproval(before, after *state.Task, e event.Event) {
	if m.blind {
		return
	}
	if e.Kind() != event.KindApproved || before == nil || after == nil || after.Version == before.Version || e.Candidate() == nil {
		return
	}
	p := before.PlanByHash(e.Candidate().Hash)
	if p == nil || p.Publish != nil || !before.Phase.AwaitsPlan() || after.Phase == before.Phase {
		return
	}
	on, token := m.w.hub.issues[e.Task.Issue], planToken.FindString(p.Text)
	if why := m.planProblem(on, p.Short(), token); why != "" {
		m.w.complain("approval: plan %s (%s) of task %s counts as approved, but %s", p.Short(), token, e.Task, why)
	}
}
