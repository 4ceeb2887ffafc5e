package walk

import (
	"slices"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/state"
)

// handed sends the webhook of an assignment or a label.
func (h *hub) handed(i *issue, by *account, what string) {
	h.onIssue(i, by, what, func(e *github.IssuesEvent) {
		e.Assignee = &github.User{ID: p(int64(assigneeID)), Login: p(assignee)}
		e.Label = &github.Label{Name: p(label)}
	})
}

func editIssue(w *world) bool {
	i, by := w.anIssue(), w.somebody()
	if i == nil || !by.canWrite() && by != i.author || by.Bot {
		return false
	}
	body := w.text()
	if len(i.texts) > 1 && w.roll("back", 3) == 2 {
		body = i.texts[len(i.texts)-2].body
	}
	w.reword(i, by, body)
	return true
}

func closeIssue(w *world) bool {
	i := w.anIssue()
	if i == nil || i.closed {
		return false
	}
	w.shut(i, w.somebody())
	return true
}

func (w *world) shut(i *issue, by *account) {
	i.closed, i.closedAt = true, w.hub.clock()
	w.model.ending(i)
	w.note("@%s closes #%d", by.Login, i.number)
	w.hub.onIssue(i, by, "closed", nil)
}

func reopen(w *world) bool {
	i := w.anIssue()
	if i == nil || !i.closed {
		return false
	}
	i.closed = false
	w.note("#%d is reopened", i.number)
	w.hub.onIssue(i, w.somebody(), "reopened", nil)
	return true
}

// aPull returns the newest open pull request, or nil.
func (w *world) aPull() *issue {
	for n := w.hub.last; n > 0; n-- {
		if i := w.hub.issues[n]; i.pull != nil && i.pull.open {
			return i
		}
	}
	return nil
}

func review(w *world) bool {
	i, by := w.aPull(), w.somebody()
	if i == nil {
		return false
	}
	verdict := []string{"changes_requested", "approved", "commented"}[w.roll("verdict", 3)]
	words := ""
	if w.roll("words", 2) == 0 && verdict != "approved" {
		words = "Please mend this."
	}
	w.note("@%s reviews #%d: %s", by.Login, i.number, verdict)
	if verdict != "approved" {
		i.remark(w, by)
	}
	w.hub.onReview(i, by, verdict, words)
	return true
}

// remark starts a thread on a pull request.
func (i *issue) remark(w *world, by *account) {
	c := w.hub.newComment(i, by, "Why is that?")
	i.pull.threads = append(i.pull.threads, &thread{top: c.id, comments: []*comment{c}})
	c.reviewed = c.id
}

func pullComment(w *world) bool {
	i := w.aPull()
	if i == nil {
		return false
	}
	w.say(w.somebody(), i, []string{"@errand SAY rename it", "SAY nice", "@errand status", "@errand stop", "@errand update"}[w.roll("pull comment", 5)])
	return true
}

func merge(w *world) bool {
	i, by := w.aPull(), w.writer()
	if i == nil || by == nil || w.hub.branches[i.pull.head] == "" || w.hub.clashes(w.hub.branches[i.pull.head]) {
		return false
	}
	i.pull.open, i.pull.merged, i.pull.mergedBy, i.closed, i.closedAt = false, true, by, true, w.hub.clock()
	w.note("@%s merges #%d", by.Login, i.number)
	w.endOf(i)
	w.hub.onPull(i, by, "closed")
	return true
}

func closePull(w *world) bool {
	i := w.aPull()
	if i == nil {
		return false
	}
	by := w.somebody()
	i.pull.open, i.closed, i.closedAt, i.pull.closedHead = false, true, w.hub.clock(), w.hub.branches[i.pull.head]
	i.pull.unknown = !slices.ContainsFunc(w.tasks(), func(t *state.Task) bool { return t.PR != nil && t.PR.Number == i.number })
	w.note("@%s closes #%d without a merge", by.Login, i.number)
	w.hub.onPull(i, by, "closed")
	return true
}

// reopenPull reopens one of the closed pull requests, if GitHub lets people do it.
func reopenPull(w *world) bool {
	var list []*issue
	for n := 1; n <= w.hub.last; n++ {
		if i := w.hub.issues[n]; i.pull != nil && !i.pull.open && w.hub.reopens(i.pull) {
			list = append(list, i)
		}
	}
	by := w.writer()
	if len(list) == 0 || by == nil {
		return false
	}
	i := list[w.roll("which pull", len(list))]
	w.note("@%s reopens #%d", by.Login, i.number)
	w.hub.reopened(i, by)
	return true
}

// endOf records the end of the tasks with this pull request.
func (w *world) endOf(*issue) {
	for n := 1; n <= w.hub.last; n++ {
		if w.hub.issues[n].pull == nil {
			w.model.endedByPull(w.hub.issues[n])
		}
	}
}

// push adds a person's commit to the branch of a task.
func push(w *world) bool {
	by := w.writer()
	names := slices.DeleteFunc(sortedKeys(w.hub.branches), func(n string) bool { return n == mainBranch })
	if by == nil || len(names) == 0 {
		return false
	}
	name := names[w.roll("branch", len(names))]
	before := w.hub.branches[name]
	after := w.hub.newCommit(before)
	w.hub.commits[after].conflict = w.roll("conflict", 3) == 2
	w.hub.branches[name] = after
	w.note("@%s pushes %.6s to %s", by.Login, after[30:], name)
	w.hub.onPush(name, by, before, after)
	return true
}

// configs are possible contents of .errand.yml; the common ones are first.
func configs() []string {
	return []string{"", "publish: after-approval\n", "check:\n  - run: make test\n", "plan: one-step\n", "plan: none\n", "plan: none\npublish: after-approval\n", "nonsense: [\n", "enabled: false\n"}
}

func pushMain(w *world) bool {
	by := w.writer()
	if by == nil {
		return false
	}
	before := w.hub.branches[mainBranch]
	list := configs()
	w.hub.config = list[w.roll("config", len(list))]
	w.hub.branches[mainBranch] = w.hub.newCommit(before)
	w.note("@%s pushes to %s: %q", by.Login, mainBranch, w.hub.config)
	w.hub.onPush(mainBranch, by, before, w.hub.branches[mainBranch])
	return true
}

func deleteBranch(w *world) bool {
	by := w.writer()
	names := slices.DeleteFunc(sortedKeys(w.hub.branches), func(n string) bool { return n == mainBranch })
	if by == nil || len(names) == 0 {
		return false
	}
	before := w.hub.branches[names[0]]
	delete(w.hub.branches, names[0])
	w.hub.deleted = append(w.hub.deleted, names[0], before)
	w.note("@%s deletes %s", by.Login, names[0])
	w.hub.onPush(names[0], by, before, "")
	return true
}

func block(w *world) bool {
	by := w.writer()
	switch {
	case by == nil:
		return false
	case w.blocker == nil:
		w.blocker = w.open(by)
	case w.blocker.closed:
		return false
	default:
		w.blocker.closed = true
		w.note("@%s closes the blocking issue #%d", by.Login, w.blocker.number)
		w.hub.onIssue(w.blocker, by, "closed", nil)
	}
	return true
}
