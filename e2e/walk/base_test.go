package walk

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Conflicts of a task's branch with its base. The status of a task that rests shows whether there is one, agents resolve only so many in a
// row without a person, and every command to update the branch gets one answer.

// contains returns the commits that a branch's head is made of, as far as their IDs are known: its ancestors and the commits that they merge.
func (h *hub) contains(head string) map[string]bool {
	all := map[string]bool{}
	for ; head != "" && h.commits[head] != nil; head = h.commits[head].parent {
		all[head], all[h.commits[head].merged] = true, true
	}
	return all
}

// clashes reports whether the base has a commit that conflicts with every branch without it, and a branch lacks it.
func (h *hub) clashes(head string) bool {
	has := h.contains(head)
	for at := h.branches[mainBranch]; at != "" && !has[at]; at = h.commits[at].parent {
		if h.commits[at].clash {
			return true
		}
	}
	return false
}

// hasBase reports whether a branch has the newest commit of the base.
func (h *hub) hasBase(head string) bool { return h.contains(head)[h.branches[mainBranch]] }

// Merging compares a pull request with its base.
func (a api) Merging(ctx context.Context, _ forge.Repo, number int) (forge.Merging, error) {
	return read(ctx, a, "read merging", func() (forge.Merging, error) {
		i := a.issues[number]
		if i == nil || i.pull == nil {
			return forge.Merging{}, notFound("read merging")
		}
		head := a.branches[i.pull.head]
		mergeable := !a.clashes(head)
		return forge.Merging{
			Node: i.node, Open: i.pull.open, Head: head, Base: i.pull.base, Mergeable: &mergeable, IsBehind: mergeable && !a.hasBase(head),
		}, nil
	})
}

// UpdatePRBranch merges the base into a branch that is at the given head.
func (a api) UpdatePRBranch(ctx context.Context, _ forge.Repo, node, head string, _ bool) (string, error) {
	return write(ctx, a, "update branch", func() (string, error) {
		for _, i := range a.issues {
			if i.node != node {
				continue
			}
			if !i.pull.open || a.branches[i.pull.head] != head || a.hasBase(head) || a.clashes(head) {
				return "", &forge.Error{Op: "update branch", Reason: "GitHub refused it.", Class: forge.ClassPermanent, Err: fmt.Errorf("another head")}
			}
			after := a.newCommit(head)
			a.commits[after].merged, a.commits[after].own, a.branches[i.pull.head] = a.branches[mainBranch], true, after
			a.w.note("GitHub merges %s into %s: %.6s", mainBranch, i.pull.head, after[30:])
			return after, nil
		}
		return "", notFound("update branch")
	})
}

// Commit reads a commit. Its tree is derived from its ID.
func (a api) Commit(ctx context.Context, _ forge.Repo, id string) (forge.Commit, error) {
	return read(ctx, a, "read commit", func() (forge.Commit, error) {
		c := a.commits[id]
		if c == nil {
			return forge.Commit{}, notFound("read commit")
		}
		out := forge.Commit{ID: id, Tree: "7" + id[1:], Parents: []string{c.parent}}
		if c.merged != "" {
			out.Parents = append(out.Parents, c.merged)
		}
		if c.own {
			out.Author.ID, out.Committer.ID = botID, botID
		}
		return out, nil
	})
}

// pushConflict adds a commit to the base that conflicts with every branch.
func pushConflict(w *world) bool {
	by := w.writer()
	if by == nil {
		return false
	}
	before := w.hub.branches[mainBranch]
	after := w.hub.newCommit(before)
	w.hub.commits[after].clash, w.hub.branches[mainBranch] = true, after
	w.note("@%s pushes %.6s to %s, which conflicts with every branch", by.Login, after[30:], mainBranch)
	w.hub.onPush(mainBranch, by, before, after)
	return true
}

// resolveConflict merges the base into the branch of a pull request that conflicts with it.
func resolveConflict(w *world) bool {
	i, by := w.aPull(), w.writer()
	if i == nil || by == nil || w.hub.branches[i.pull.head] == "" || !w.hub.clashes(w.hub.branches[i.pull.head]) {
		return false
	}
	before := w.hub.branches[i.pull.head]
	after := w.hub.newCommit(before)
	w.hub.commits[after].merged, w.hub.branches[i.pull.head] = w.hub.branches[mainBranch], after
	w.note("@%s resolves the conflicts of %s: %.6s", by.Login, i.pull.head, after[30:])
	w.hub.onPush(i.pull.head, by, before, after)
	return true
}

var toMerge = regexp.MustCompile(`merge its commit ([0-9a-f]{40})`)

// merges returns the commit of the base that the agent is told to merge, or "".
func (r *run) merges() string {
	all := toMerge.FindAllStringSubmatch(r.spec.Stdin, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

// updateOrder is an accepted command to update a branch.
type updateOrder struct {
	task state.TaskKey
	by   int64
}

// maxRows is the maximum number of rounds because of a conflict without a person's action.
const maxRows = 3

// checkBase counts rounds because of conflicts and notes accepted commands to update the branch.
func (m *model) checkBase(before, after *state.Task, e event.Event) {
	if after == nil || m.blind {
		return
	}
	if after.PR != nil {
		for _, r := range append([]state.UpdateRequest{after.PR.Update}, after.PR.MoreUpdates...) {
			if r.Comment != 0 {
				m.updates[r.Comment] = updateOrder{e.Task, r.By.ID}
			}
		}
		if waits := after.PR.Update != (state.UpdateRequest{}); waits && (after.Ended() || after.PR.State != state.PROpen) {
			m.w.complain("base: a command to update the branch waits for task %s, which is %s with a %s pull request", e.Task, after.Phase, after.PR.State)
		}
	}
	if e.By.ID != 0 && !e.By.Bot {
		m.conflicts[e.Task] = 0
	}
	if e.Kind() != event.KindBaseRead || before == nil || before.Phase == after.Phase {
		return
	}
	if m.conflicts[e.Task]++; m.conflicts[e.Task] > maxRows {
		m.w.complain("base: task %s begins round %d because of a conflict without a person's action", e.Task, m.conflicts[e.Task])
	}
	m.w.hit("conflict with the base")
}

// baseAnswer matches the marker of an answer to a command in a comment.
var baseAnswer = regexp.MustCompile(`base-[a-z_]+-(\d+)\b`)

// checkBaseAtEnd checks a task when nothing happens any more: it shows a conflict if there is one, and every command was answered once.
func (m *model) checkBaseAtEnd(t *state.Task) {
	if m.blind || outOfReach(t) {
		return
	}
	head := m.w.hub.branches[t.Branch.Name]
	if t.Phase == state.PhasePROpen && t.PR != nil && t.PR.State == state.PROpen && head != "" {
		if is := m.w.hub.clashes(head); is != t.PR.Conflict {
			m.w.fatalf("base: the branch of task %s conflicts with its base: %v, but the task believes %v", t.Key, is, t.PR.Conflict)
		}
		if t.PR.Update != (state.UpdateRequest{}) {
			m.w.fatalf("base: task %s rests, but the command %+v waits", t.Key, t.PR.Update)
		}
	}
	answers := map[int64][]string{}
	for n := 1; n <= m.w.hub.last; n++ {
		for _, c := range m.w.hub.issues[n].comments {
			mark := markOf(c.body())
			found := baseAnswer.FindStringSubmatch(mark)
			if c.author != nil || found == nil {
				continue
			}
			id, err := strconv.ParseInt(found[1], 10, 64)
			if err != nil {
				m.w.fatalf("base: marker %s: %v", mark, err)
			}
			if !slices.Contains(answers[id], mark) {
				answers[id] = append(answers[id], mark)
			}
		}
	}
	for id, asked := range m.updates {
		waits := t.PR != nil && (t.PR.Update.Comment == id || slices.ContainsFunc(t.PR.MoreUpdates, func(r state.UpdateRequest) bool { return r.Comment == id }))
		if asked.task != t.Key || waits || m.isBarred(id) {
			continue
		}
		if len(answers[id]) == 0 && m.isDropped(id, answers) {
			continue
		}
		if len(answers[id]) != 1 {
			m.w.fatalf("base: the command in comment %d on task %s has %d answers: %q", id, t.Key, len(answers[id]), answers[id])
		}
	}
}

// isDropped reports whether another command of the same person was dropped: one comment says it to a person.
func (m *model) isDropped(id int64, answers map[int64][]string) bool {
	by := m.updates[id].by
	for other, list := range answers {
		if m.updates[other].by == by && slices.ContainsFunc(list, func(mark string) bool {
			return strings.Contains(mark, "base-pr_") || strings.Contains(mark, "base-task_ended")
		}) {
			return true
		}
	}
	return false
}

// isBarred reports whether GitHub refused an answer to a command for good.
func (m *model) isBarred(id int64) bool {
	return slices.ContainsFunc(m.barred, func(mark string) bool {
		return strings.Contains(mark, fmt.Sprintf("-%d ", id)) && baseAnswer.MatchString(mark)
	})
}

// updateWhileBusy has every writer ask for an update of a branch while an agent answers a review. The pull request may be closed then.
func updateWhileBusy(w *world) bool {
	i, by := w.aPull(), w.writer()
	if i == nil || by == nil {
		return false
	}
	w.note("@%s reviews #%d", by.Login, i.number)
	i.remark(w, by)
	w.hub.onReview(i, by, "changes_requested", "")
	w.pass(time.Minute) // until the agent works
	for _, a := range w.hub.writers() {
		w.say(a, i, []string{"@errand update", "@errand rebase"}[w.roll("how", 2)])
	}
	w.pass(2 * time.Second)
	if i.pull.open && w.roll("close", 2) == 0 {
		return closePull(w)
	}
	return true
}
