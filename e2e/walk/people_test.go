package walk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
)

// act is an action of people, time or chance in a walk. It reports whether it was possible.
type act struct {
	name   string
	weight int
	do     func(w *world) bool
}

// somebody draws a person, writers more often than others.
func (w *world) somebody() *account { return w.hub.people[w.roll("who", len(w.hub.people))] }

// writer draws a person with write access, or returns nil if there is none.
func (w *world) writer() *account {
	list := w.hub.writers()
	if len(list) == 0 {
		return nil
	}
	return list[w.roll("writer", len(list))]
}

// anIssue draws one of the issues.
func (w *world) anIssue() *issue {
	var list []*issue
	for n := 1; n <= w.hub.last; n++ {
		if i := w.hub.issues[n]; i.pull == nil && i != w.blocker {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[w.roll("issue", len(list))]
}

func (w *world) text() string {
	return fmt.Sprintf("It breaks. text-%d", w.hub.id())
}

func (w *world) open(by *account) *issue {
	return w.openWith(by, w.text())
}

func openIssue(w *world) bool {
	if w.hub.last > 0 && w.roll("second issue", 4) != 3 || w.hub.last > 6 {
		return false
	}
	w.open(w.somebody())
	return true
}

// say writes a comment; it contains a token that identifies its author in a prompt.
func (w *world) say(by *account, on *issue, words string) *comment {
	if strings.HasPrefix(words, "@errand retry") { // it may continue a canceled task; without a task it is a mention
		w.model.retried(on, by)
	}
	c := w.hub.newComment(on, by, "")
	c.bodies[0].text = strings.ReplaceAll(words, "SAY", fmt.Sprintf("say-%dx", c.id))
	on.comments = append(on.comments, c)
	w.note("@%s says on #%d: %q", by.Login, on.number, c.body())
	w.hub.onComment(c, by, "created", "")
	w.model.said(c)
	return c
}

func trigger1(what string) func(*world) bool {
	return func(w *world) bool {
		i, by := w.anIssue(), w.somebody()
		if i == nil || by.may == state.PermissionNone {
			return false
		}
		w.hand(i, by, what)
		return true
	}
}

// hand assigns an issue to errand, or withdraws it.
func (w *world) hand(i *issue, by *account, what string) {
	h := w.hub
	w.note("@%s: %s #%d", by.Login, what, i.number)
	switch what {
	case "assigned":
		i.assigned = true
		w.model.triggered(i, by)
	case "labeled":
		if !slices.Contains(i.labels, label) {
			i.labels = append(i.labels, label)
		}
		w.model.triggered(i, by)
	case "unassigned":
		i.assigned = false
		w.model.ending(i)
	case "unlabeled":
		i.labels = slices.DeleteFunc(i.labels, func(l string) bool { return l == label })
		w.model.ending(i)
	}
	about := map[string]string{"assigned": assignee, "unassigned": assignee, "labeled": label, "unlabeled": label}[what]
	i.events = append(i.events, fact{what: what, about: about, by: by, at: h.clock()})
	h.handed(i, by, what)
}

func mention(w *world) bool {
	i := w.anIssue()
	if i == nil {
		return false
	}
	by := w.somebody()
	w.model.triggered(i, by)
	if w.mishap.kind == "lost" { // without a task, no list of GitHub's has the mention
		w.model.triggers[len(w.model.triggers)-1].dropped = true
	}
	w.say(by, i, []string{"@errand plan", "@errand", "@errand go", "@errand SAY do it"}[w.roll("mention", 4)])
	return true
}

func chatter(w *world) bool {
	i := w.anIssue()
	if i == nil {
		return false
	}
	words := append([]string{"SAY I think so too.", "> @errand approve\n\nSAY no", "`@errand cancel` SAY", "LGTM"}, remarks()...)
	w.say(w.somebody(), i, words[w.roll("chatter", len(words))])
	return true
}

// remarks are comments that never start a run, nor are passed to one as feedback.
func remarks() []string {
	return []string{"Thanks!", "@errand thanks", "+1", "@heidi SAY what do you think?"}
}

// command writes one of the commands.
func command(w *world) bool {
	i, by := w.anIssue(), w.somebody()
	if i == nil {
		return false
	}
	list := []string{"retry", "SAY please use another way", "after: SAY add a test", "replan", "stop", "budget +5", "status", "retry fresh", "model other", "help", "create pr KEY-1", "cancle", "retry turns=60", "cancel", "restart"}
	words := list[w.roll("command", len(list))]
	if words == "cancel" && by.held {
		defer w.model.ending(i)
	}
	if words == "restart" && by.held {
		w.model.ending(i)
	}
	if words == "budget +5" && by.held {
		w.model.caps[fmt.Sprintf("%d/%d", w.hub.repo, i.number)] += 5 * usd
	}
	if words == "replan" || words == "restart" || strings.Contains(words, "SAY") { // without a task it is a mention
		w.model.triggered(i, by)
		w.model.triggers[len(w.model.triggers)-1].seen = true
	}
	w.say(by, i, "@errand "+words)
	return true
}

// plansOf returns errand's plan comments on an issue, oldest first.
func plansOf(i *issue) (out []*comment) {
	for _, c := range i.comments {
		if c.author == nil && !c.gone && strings.Contains(c.bodies[0].text, "errand:box") {
			out = append(out, c)
		}
	}
	return out
}

// aPlan draws one of the plan comments, mostly the newest.
func (w *world) aPlan() (*comment, bool) {
	i := w.anIssue()
	if i == nil {
		return nil, false
	}
	list := plansOf(i)
	if len(list) == 0 {
		return nil, false
	}
	return list[len(list)-1-w.roll("older plan", min(len(list), 2))], true
}

func hashOf(c *comment) string {
	_, rest, _ := strings.Cut(c.bodies[0].text, "errand:box ")
	hash, _, _ := strings.Cut(rest, " ")
	return hash
}

func thumbPlan(w *world) bool {
	c, ok := w.aPlan()
	if ok {
		w.thumbUp(c, w.somebody())
	}
	return ok
}

func (w *world) thumbUp(c *comment, by *account) {
	if slices.ContainsFunc(c.thumbs, func(t thumb) bool { return t.by == by }) {
		return
	}
	w.note("@%s gives a 👍 to comment %d", by.Login, c.id)
	c.thumbs = append(c.thumbs, thumb{node: fmt.Sprintf("R_%d", w.hub.id()), by: by, at: w.hub.clock()})
	if c.author == nil {
		w.model.yeses = append(w.model.yeses, &yes{by: by, at: w.now, on: c.on, plan: c})
	}
}

func unthumb(w *world) bool {
	c, ok := w.aPlan()
	if !ok || len(c.thumbs) == 0 {
		return false
	}
	w.unthumb(c)
	return true
}

func (w *world) unthumb(c *comment) {
	by := c.thumbs[0].by
	w.note("@%s takes the 👍 from comment %d", by.Login, c.id)
	c.thumbs = c.thumbs[1:]
	for _, y := range w.model.yeses {
		if y.plan == c && y.by == by && y.undone.IsZero() && y.hash == "" {
			y.undone = w.now
		}
	}
}

func tick(w *world) bool {
	c, ok := w.aPlan()
	by := w.somebody()
	if !ok || !by.canWrite() {
		return false
	}
	untold := w.mishap.kind == "lost"
	ticked := strings.NewReplacer("- [ ] **Approve this plan**", "- [x] **Approve this plan**", "- [ ] **Publish these changes**", "- [x] **Publish these changes**").Replace(c.body())
	if ticked == c.body() {
		return false
	}
	w.edit(c, by, ticked)
	w.model.yeses = append(w.model.yeses, &yes{by: by, at: w.now, on: c.on, plan: c, hash: hashOf(c), untold: untold})
	return true
}

func (w *world) edit(c *comment, by *account, words string) {
	before := c.body()
	if before == words {
		return
	}
	w.note("@%s edits comment %d", by.Login, c.id)
	c.bodies = append(c.bodies, body{words, by, w.hub.clock()})
	if !w.plant.stale {
		w.hub.onComment(c, by, "edited", before)
	}
}

func editPlan(w *world) bool {
	c, ok := w.aPlan()
	by := w.writer()
	if !ok || by == nil {
		return false
	}
	w.edit(c, by, "Delete everything.\n\n"+c.body())
	return true
}

func deletePlan(w *world) bool {
	c, ok := w.aPlan()
	by := w.writer()
	if !ok || by == nil {
		return false
	}
	w.note("@%s deletes comment %d", by.Login, c.id)
	c.gone = true
	w.hub.onComment(c, by, "deleted", "")
	return true
}

func approve(w *world) bool {
	c, ok := w.aPlan()
	by := w.somebody()
	if !ok {
		return false
	}
	y := &yes{by: by, at: w.hub.clock(), on: c.on, bare: true}
	words := "approve"
	switch w.roll("approve how", 4) {
	case 1:
		words, y.bare, y.hash = "approve "+hashOf(c), false, hashOf(c)
	case 2:
		words = "approve with: SAY be quick"
	case 3:
		words, y = "\n> @errand approve", nil
		w.say(by, c.on, "> @errand approve\n\nnot yet")
		return true
	}
	w.model.yeses = append(w.model.yeses, y)
	w.say(by, c.on, "@errand "+words)
	return true
}

// vouch gives a 👍 to the text of a user without write access.
func vouch(w *world) bool {
	i := w.anIssue()
	by := w.writer()
	if i == nil || by == nil {
		return false
	}
	for _, c := range slices.Backward(i.comments) {
		if c.author != nil && !c.author.held && len(c.thumbs) == 0 && w.now.After(c.created.Add(time.Second)) {
			w.thumbUp(c, by)
			return true
		}
	}
	w.note("@%s gives a 👍 to #%d", by.Login, i.number)
	i.thumbs = append(i.thumbs, thumb{node: fmt.Sprintf("R_%d", w.hub.id()), by: by, at: w.hub.clock()})
	return true
}

func permission(w *world) bool {
	p := w.hub.people[1+w.roll("whose", 3)]
	may := []state.Permission{state.PermissionRead, state.PermissionWrite, state.PermissionNone}[w.roll("may", 3)]
	w.note("@%s may %s now", p.Login, may)
	w.hub.permit(p, may)
	return true
}
