package walk

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

var approvedPlan = regexp.MustCompile(`(?m)^The (\w+) plan, revision (\d+), ([0-9a-f]{8})`)

var planToken = regexp.MustCompile(`PLAN-\d+`)

// started checks the start of a run against the actions of people.
func (m *model) started(r *run) {
	if m.blind {
		return
	}
	w := m.w
	w.errand.followed = w.now
	t := m.taskOf(r)
	w.hit("run " + r.step)
	w.note("run %s begins: %s (%s)", r.spec.ID, r.step, r.mood)
	if t == nil {
		w.fatalf("run %s belongs to no task", r.spec.ID)
	}
	r.life = t.Gen
	m.prompted(r)
	on := w.hub.issues[t.Key.Issue]
	m.words(on, r)
	m.expected(r)
	w.books.may(t, r)
	if r.repairs() { // it implements nothing
		if n := len(r.on.runs); n < 2 || r.on.runs[n-2].mood != "garbled" {
			w.fatalf("run %s repeats a closing block that was readable", r.spec.ID)
		}
		w.hit("repair")
		return
	}
	if r.step == "preliminary_plan" || r.step == "check" || t.Settings.Plan == settings.PlanNone || r.step == "plan" && t.Settings.Plan == settings.PlanOneStep {
		if !slices.ContainsFunc(m.triggers, func(g *trigger) bool { return g.on == on && g.by.mightSince(g.at) }) {
			w.fatalf("trust: run %s began without a trigger by a writer", r.spec.ID)
		}
		return
	}
	_, part, _ := strings.Cut(r.spec.Stdin, "\n## The approved plan\n")
	found := approvedPlan.FindStringSubmatch(part)
	if found == nil {
		w.fatalf("approval: the prompt of run %s (%s) has no approved plan:\n%s", r.spec.ID, r.step, r.spec.Stdin)
	}
	kind, hash, token := found[1], found[3], planToken.FindString(part)
	if want := map[string]string{"plan": "preliminary"}[r.step]; want != "" && kind != want {
		w.fatalf("approval: run %s (%s) implements a plan of kind %s", r.spec.ID, r.step, kind)
	}
	key := strings.Join([]string{t.Key.String(), kind, hash}, " ")
	if m.approved[key] {
		return // its start was approved, and it continues
	}
	if why := m.planProblem(on, hash, token); why != "" {
		w.fatalf("approval: run %s (%s) implements plan %s (%s), but %s", r.spec.ID, r.step, hash, token, why)
	}
	m.approved[key] = true
}

func (m *model) taskOf(r *run) *state.Task {
	for _, t := range m.w.tasks() {
		if t.Key.String() == r.on.owner {
			return t
		}
	}
	return nil
}

// planProblem returns the reason why a plan must not be implemented now, or "".
func (m *model) planProblem(on *issue, hash, token string) string {
	all := "no comment shows it"
	for n, c := range m.shown(on, hash, token) { // there may have been a duplicate
		why := m.approvalProblem(on, c, hash, token)
		if why == "" {
			return ""
		}
		if n == 0 {
			all = ""
		}
		all += fmt.Sprintf("(comment %d) %s ", c.id, why)
	}
	return all
}

// approvalProblem returns the reason why the plan in a comment is not approved, or "".
func (m *model) approvalProblem(on *issue, c *comment, hash, token string) string {
	for _, o := range on.comments {
		if o.author == nil && o.id > c.id && hashOf(o) != hash && strings.Contains(o.bodies[0].text, "errand:box") && m.kindOf(o) == m.kindOf(c) && m.w.inStep.After(o.created.Add(time.Second)) {
			return "a newer revision is posted"
		}
	}
	why := "it has no approval"
	for _, y := range m.yeses {
		if y.on != on {
			continue
		}
		if no := m.approvalDoubt(y, c, hash, token); no != "" {
			why += "; @" + y.by.Login + " approved it, but " + no
			continue
		}
		m.w.hit("approved")
		return ""
	}
	return why
}

func (m *model) kindOf(c *comment) string {
	if w := m.plans[planToken.FindString(c.bodies[0].text)]; w != nil {
		return w.kind
	}
	return ""
}

// shown returns the comments that show a plan.
func (m *model) shown(on *issue, hash, token string) (out []*comment) {
	for _, c := range on.comments {
		if c.author == nil && strings.Contains(c.bodies[0].text, "(`"+hash+"`)") && planToken.FindString(c.bodies[0].text) == token {
			out = append(out, c)
		}
	}
	return out
}

// startServes is the time for which the check of an approval remains valid for the start of the approved plan.
const startServes = 10 * time.Second

// approvalDoubt returns the reason why an approval does not apply to a plan, or "".
func (m *model) approvalDoubt(y *yes, c *comment, hash, token string) string {
	since := m.w.inStep
	if token != "" { // publishing always checks again
		since = since.Add(-startServes)
	}
	return m.approvalDoubtAt(y, c, hash, token, since)
}

// approvalDoubtAt returns the reason why an approval did not apply to a plan at any moment since a time, or "".
func (m *model) approvalDoubtAt(y *yes, c *comment, hash, token string, since time.Time) string {
	switch {
	case y.plan != nil && y.plan != c:
		return "for another comment"
	case y.hash != "" && !strings.HasPrefix(hash, y.hash) && !strings.HasPrefix(y.hash, hash):
		return "for another hash"
	case y.bare && y.at.Before(c.created):
		return "before the plan was posted"
	case y.by.Bot:
		return "the author is a bot"
	case !y.by.mightSince(since):
		return "the author has no write access"
	case !y.undone.IsZero() && y.undone.Before(since):
		return "the approval was withdrawn"
	case !c.stoodSince(y.at):
		return "the comment had another text"
	case token != "" && !m.issueStood(c.on, m.plans[token].text, y.at):
		return "the issue had another text"
	}
	return ""
}

// stoodSince reports whether the comment had errand's text at some moment since a time.
func (c *comment) stoodSince(then time.Time) bool {
	first := unticked(c.bodies[0].text)
	for i, b := range c.bodies {
		until := c.created.Add(1000 * 24 * time.Hour)
		if i+1 < len(c.bodies) {
			until = c.bodies[i+1].at
		}
		if unticked(b.text) == first && !until.Before(then.Truncate(time.Second)) {
			return true
		}
	}
	return false
}

func unticked(s string) string { return strings.ReplaceAll(s, "- [x] ", "- [ ] ") }

// issueStood reports whether the issue had the text of the plan's prompt at some moment since a time.
func (m *model) issueStood(on *issue, token string, then time.Time) bool {
	for i, t := range on.texts {
		if i+1 < len(on.texts) && on.texts[i+1].at.Before(then.Truncate(time.Second)) {
			continue
		}
		if token == "" || strings.Contains(t.body, token) {
			return true
		}
	}
	return false
}

// checkPublication checks a publication if changes need approval first: a comment must show the tree, and a writer must
// have approved it. A publication that began with approval may continue.
func (m *model) checkPublication(cs *changeset.Changeset) {
	if m.blind {
		return
	}
	w := m.w
	for _, t := range w.tasks() {
		if t.Work == nil || t.Work.LocalHead != cs.Head() || t.Settings.Publish != settings.PublishAfterApproval || len(cs.Commits) == 0 {
			continue
		}
		tree := cs.Commits[len(cs.Commits)-1].Tree
		key := "tree " + tree
		if m.approved[key] {
			return
		}
		on, why := w.hub.issues[t.Key.Issue], "no comment shows it"
		for _, c := range on.comments {
			if c.author == nil && strings.Contains(c.bodies[0].text, "(tree `"+tree[:8]+"`)") {
				why = m.approvalProblem(on, c, hashOf(c), "")
			}
			if why == "" {
				m.approved[key] = true
				w.hit("publishing approved")
				return
			}
		}
		w.fatalf("approval: task %s publishes the tree %.8s, but %s", t.Key, tree, why)
	}
}
