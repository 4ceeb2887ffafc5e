package walk

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

func (a api) Head(ctx context.Context, _ forge.Repo, branch string) (string, error) {
	return read(ctx, a, "read branch", func() (string, error) {
		if a.branches[branch] == "" {
			return "", notFound("read branch")
		}
		return a.branches[branch], nil
	})
}

func (a api) Branches(ctx context.Context, _ forge.Repo, prefix string) ([]forge.Branch, error) {
	return read(ctx, a, "list branches", func() (out []forge.Branch, err error) {
		for name, sha := range a.branches {
			if strings.HasPrefix(name, prefix) {
				out = append(out, forge.Branch{Name: name, SHA: sha})
			}
		}
		slices.SortFunc(out, func(x, y forge.Branch) int { return strings.Compare(x.Name, y.Name) })
		return out, nil
	})
}

func (a api) ChangedSince(ctx context.Context, _ forge.Repo, base, head string) (forge.Comparison, error) {
	return read(ctx, a, "compare", func() (out forge.Comparison, err error) {
		if head == mainBranch && !a.hasBase(base) {
			out.AheadBy = 1
		}
		return out, nil
	})
}

func (a api) Tree(ctx context.Context, _ forge.Repo, _ string) (map[string]forge.TreeEntry, error) {
	return read(ctx, a, "read tree", func() (map[string]forge.TreeEntry, error) {
		return map[string]forge.TreeEntry{"README.md": {Mode: "100644", ID: strings.Repeat("1", 40)}}, nil
	})
}

// CreateCommits simulates publishing: the ID of a published commit is derived from its local ID and its parent.
func (a api) CreateCommits(ctx context.Context, _ forge.Repo, cs *changeset.Changeset, onto string, _ map[string]string) (forge.Published, error) {
	a.w.model.checkPublication(cs)
	return write(ctx, a, "publish", func() (forge.Published, error) {
		out := forge.Published{IDs: map[string]string{}, Head: onto}
		if a.commits[onto] == nil {
			return out, notFound("publish")
		}
		for _, c := range cs.Commits {
			id := "f" + c.ID[1:]
			if a.commits[id] == nil {
				a.commits[id] = &commit{parent: out.Head, own: true}
			}
			if len(c.Parents) > 1 {
				a.commits[id].merged = c.Parents[1]
			}
			a.w.works.published(id, c.Tree)
			out.IDs[c.ID], out.Head, out.Tree = id, id, c.Tree
		}
		return out, nil
	})
}

// MoveBranch compares with `beforeOid`; after an unknown outcome it reads the branch, like forge.
func (a api) MoveBranch(ctx context.Context, _ forge.Repo, branch, before, after string) error {
	_, err := write(ctx, a, "move", nothing(func() error {
		switch head := a.branches[branch]; {
		case head == after:
			return nil
		case head != before:
			return &forge.Error{Op: "move", Reason: "The branch has moved.", Class: forge.ClassPermanent, Err: &forge.MovedError{Branch: branch, Want: before, Head: head}}
		}
		a.branches[branch] = after
		a.w.works.recordMove(after)
		return nil
	}))
	return err
}

// OpenPR opens a pull request, or returns the open one with this head.
func (a api) OpenPR(ctx context.Context, _ forge.Repo, want forge.NewPR) (forge.PR, error) {
	effect := a.w.model.pullOf(want.Head)
	if want.CheckExisting {
		a.w.model.recordSearch(effect, time.Time{})
	}
	a.w.model.creates(effect)
	return write(ctx, a, "open pull", func() (forge.PR, error) {
		for n := a.last; n > 0; n-- {
			if p := a.issues[n].pull; p != nil && !a.w.plant.secondPull && p.head == want.Head && (p.open || want.CheckExisting && p.merged) {
				return a.pr(a.issues[n]), nil
			}
		}
		if a.branches[want.Head] == "" {
			return forge.PR{}, &forge.Error{Op: "open pull", Reason: "GitHub refused it.", Class: forge.ClassPermanent, Status: 422, Err: fmt.Errorf("no commits")}
		}
		a.last++
		i := &issue{number: a.last, node: fmt.Sprintf("PR_%d", a.last), created: a.clock(), texts: []text{{title: want.Title, body: want.Body, at: a.clock()}}}
		i.pull = &pull{head: want.Head, base: want.Base, title: want.Title, open: true, ours: true}
		a.issues[i.number] = i
		a.w.model.created(effect)
		if a.w.plant.secondPull { // without a search, any lost answer reveals the fault
			return forge.PR{}, temporary("open pull", forge.ClassUnknown, 0, time.Time{})
		}
		return a.pr(i), nil
	})
}

// ReopenPR reopens a closed pull request under GitHub's conditions.
func (a api) ReopenPR(ctx context.Context, _ forge.Repo, number int) (forge.PR, error) {
	return write(ctx, a, "reopen pull", func() (forge.PR, error) {
		i := a.issues[number]
		if !i.pull.open && !a.reopens(i.pull) {
			return forge.PR{}, &forge.Error{Op: "reopen pull", Reason: "GitHub refused it.", Class: forge.ClassPermanent, Status: 422, Err: fmt.Errorf("cannot be reopened")}
		}
		if !i.pull.open {
			a.reopened(i, nil)
		}
		return a.pr(i), nil
	})
}

// ClosePR closes a pull request.
func (a api) ClosePR(ctx context.Context, _ forge.Repo, number int) error {
	_, err := write(ctx, a, "close pull", nothing(func() error {
		if i := a.issues[number]; i.pull.open && !a.w.plant.keepOld {
			a.w.note("errand closes #%d", number)
			i.pull.open, i.closed, i.closedAt, i.pull.closedHead = false, true, a.clock(), a.branches[i.pull.head]
			a.onPull(i, nil, "closed")
		}
		return nil
	}))
	return err
}

// PRByHead returns the pull request from a branch, an open one first.
func (a api) PRByHead(ctx context.Context, _ forge.Repo, branch string) (*forge.PR, error) {
	return read(ctx, a, "find pull", func() (*forge.PR, error) {
		var found *forge.PR
		for n := a.last; n > 0; n-- {
			if p := a.issues[n].pull; p != nil && p.head == branch && (found == nil || p.open && !found.Open) {
				pr := a.pr(a.issues[n])
				found = &pr
			}
		}
		return found, nil
	})
}

// reopens reports whether GitHub would let a closed pull request be reopened.
func (h *hub) reopens(p *pull) bool {
	head := h.branches[p.head]
	if p.merged || head == "" || p.closedHead != "" && !h.descends(head, p.closedHead) {
		return false
	}
	for n := 1; n <= h.last; n++ {
		if o := h.issues[n].pull; o != nil && o != p && o.open && o.head == p.head {
			return false
		}
	}
	return true
}

// descends reports whether a commit is another one or has it among its ancestors.
func (h *hub) descends(head, old string) bool {
	for head != "" && head != old && h.commits[head] != nil {
		head = h.commits[head].parent
	}
	return head == old
}

// reopened opens a closed pull request again; by is nil if errand did it.
func (h *hub) reopened(i *issue, by *account) {
	i.pull.open, i.closed, i.closedAt = true, false, time.Time{}
	i.touched = h.clock()
	h.onPull(i, by, "reopened")
}

func (h *hub) pr(i *issue) forge.PR {
	p, mergeable := i.pull, !h.clashes(h.branches[i.pull.head])
	return forge.PR{
		Number: i.number, Node: i.node, Title: p.title, URL: fmt.Sprintf("https://github.test/%s/%s/pull/%d", owner, repoName, i.number),
		Open: p.open, Merged: p.merged, Head: h.branches[p.head], HeadBranch: p.head, Base: p.base, By: personOf(nil), MergedBy: mergedBy(p), ClosedAt: i.closedAt,
		UpdatedAt: i.updated(), Mergeable: &mergeable,
	}
}

func mergedBy(p *pull) (who state.Person) {
	if p.mergedBy != nil {
		return p.mergedBy.Person
	}
	return who
}

func (a api) PRTemplate(ctx context.Context, _ forge.Repo, _ string) (string, error) {
	return read(ctx, a, "pull template", func() (string, error) { return "", nil })
}

func (a api) PR(ctx context.Context, _ forge.Repo, number int) (forge.PR, error) {
	return looked(a, func() (forge.PR, error) {
		return read(ctx, a, "read pull", func() (forge.PR, error) {
			i := a.issues[number]
			if i == nil || i.pull == nil {
				return forge.PR{}, notFound("read pull")
			}
			a.w.model.reads(number)
			return a.pr(i), nil
		})
	})
}

func (a api) RequestReview(ctx context.Context, _ forge.Repo, _ int, _ string) (string, error) {
	return write(ctx, a, "request review", func() (string, error) { return "", nil })
}

func (a api) Identity(ctx context.Context, _ forge.Repo, p state.Person) (name, email string, err error) {
	name, err = read(ctx, a, "read profile", func() (string, error) { return p.Login, nil })
	return name, p.Login + "@example.org", err
}

func (a api) Threads(ctx context.Context, _ forge.Repo, number int) ([]forge.Thread, error) {
	return read(ctx, a, "threads", func() (out []forge.Thread, err error) {
		for _, th := range a.issues[number].pull.threads {
			t := forge.Thread{Node: fmt.Sprintf("T_%d", th.top), TopID: th.top, Path: "src/a.go", Line: 1, Resolved: th.resolved}
			for _, c := range th.comments {
				if !c.gone {
					t.Comments = append(t.Comments, c.view())
				}
			}
			if len(t.Comments) > 0 {
				out = append(out, t)
			}
		}
		return out, nil
	})
}

func (h *hub) thread(pr int, top int64) *thread {
	for _, th := range h.issues[pr].pull.threads {
		if th.top == top && slices.ContainsFunc(th.comments, func(c *comment) bool { return !c.gone }) {
			return th
		}
	}
	return nil
}

func (a api) FindReplies(ctx context.Context, _ forge.Repo, number int, marker string, since time.Time) ([]forge.Comment, error) {
	return read(ctx, a, "find reply", func() (found []forge.Comment, err error) {
		a.w.model.recordSearch(strings.TrimSpace(marker), since)
		for _, th := range a.issues[number].pull.threads {
			for _, c := range th.comments {
				if c.author == nil && !c.gone && c.lists(a.w) && !c.created.Before(since) && strings.Contains(c.body(), marker) {
					found = append(found, c.view())
				}
			}
		}
		return found, nil
	})
}

func (a api) DeleteReply(ctx context.Context, r forge.Repo, id int64) error {
	return a.DeleteComment(ctx, r, id)
}
