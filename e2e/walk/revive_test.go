package walk

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/green"
)

// revive restores a saved world, in which errand has not started.
func (s *savedWorld) revive(w *world) {
	h := w.hub
	w.now, w.plans, w.files, w.asleep = s.Now, s.Plans, s.Files, s.Asleep
	h.repo, h.config, h.last, h.ids, h.guids, h.branches, h.deleted = s.Repo, s.Config, s.Last, s.IDs, s.GUIDs, s.Branches, s.Deleted
	if w.files == nil {
		w.files = map[string]*changeset.Changeset{}
	}
	if w.asleep == nil {
		w.asleep = map[string][]byte{}
	}
	h.people, h.commits = nil, map[string]*commit{}
	for _, p := range s.People {
		h.people = append(h.people, &account{Person: p.Person, may: p.May, lost: p.Lost, held: p.Held})
	}
	for id, c := range s.Commits {
		h.commits[id] = &commit{parent: c.Parent, conflict: c.Conflict}
	}
	for _, i := range s.Issues {
		h.issues[i.Number] = h.revived(i)
	}
	w.blocker = h.issues[s.Blocker]
	for _, k := range s.Hooks {
		h.hooks = append(h.hooks, k.revive())
	}
	for _, k := range s.Failed {
		h.failed = append(h.failed, k.revive())
	}
	w.machines.runs = s.Runs
	for _, m := range s.Machines {
		w.machines.list = append(w.machines.list, m.revive())
	}
}

// account returns the person with an ID, or nil for errand.
func (h *hub) account(id int64) *account {
	i := slices.IndexFunc(h.people, func(a *account) bool { return a.ID == id })
	if i < 0 {
		return nil
	}
	return h.people[i]
}

func (h *hub) revived(s savedIssue) *issue {
	i := &issue{
		number: s.Number, node: s.Node, author: h.account(s.Author), created: s.Created, closed: s.Closed, closedAt: s.ClosedAt, labels: s.Labels, assigned: s.Assigned,
		thumbs: h.thumbs(s.Thumbs), eyes: s.Eyes,
	}
	for _, t := range s.Texts {
		i.texts = append(i.texts, text{t.Title, t.Body, h.account(t.By), t.At})
	}
	for _, f := range s.Events {
		i.events = append(i.events, fact{what: f.What, about: f.About, by: h.account(f.By), at: f.At})
	}
	for _, c := range s.Comments {
		i.comments = append(i.comments, h.comment(i, c))
	}
	if p := s.Pull; p != nil {
		i.pull = &pull{head: p.Head, base: p.Base, title: p.Title, open: p.Open, merged: p.Merged, mergedBy: h.account(p.MergedBy), reviews: p.Reviews, ours: p.Ours}
		for _, th := range p.Threads {
			t := &thread{top: th.Top, resolved: th.Resolved}
			for _, c := range th.Comments {
				t.comments = append(t.comments, h.comment(i, c))
			}
			i.pull.threads = append(i.pull.threads, t)
		}
	}
	return i
}

func (h *hub) comment(on *issue, s savedComment) *comment {
	c := h.newComment(on, h.account(s.Author), "")
	c.id, c.created, c.thumbs, c.eyes, c.gone, c.reviewed, c.bodies = s.ID, s.Created, h.thumbs(s.Thumbs), s.Eyes, s.Gone, s.Reviewed, nil
	c.node = fmt.Sprintf("C_%d", c.id)
	for _, b := range s.Bodies {
		c.bodies = append(c.bodies, body{b.Body, h.account(b.By), b.At})
	}
	return c
}

func (h *hub) thumbs(list []savedThumb) (out []thumb) {
	for _, t := range list {
		out = append(out, thumb{t.Node, h.account(t.By), t.At})
	}
	return out
}

func (s savedHook) revive() *hook {
	return &hook{guid: s.GUID, event: s.Event, payload: []byte(s.Payload), at: s.At, due: s.Due, through: s.Through}
}

func (s savedMachine) revive() *walkVM {
	o := &walkVM{name: s.Name, owner: s.Owner, created: began(), ended: s.Ended, branch: s.Branch, root: s.Root, work: s.Work, blobs: s.Blobs, garbled: s.Garbled}
	if o.blobs == nil {
		o.blobs = map[string][]byte{}
	}
	for _, r := range s.Runs {
		if r.Exit != nil {
			r.Spec.Stdin = "\n\n" // prompts that are no longer read are not stored
		}
		o.runs = append(o.runs, &run{
			spec: r.Spec, on: o, step: r.Step, started: r.Started, ends: r.Ends, lines: r.Lines, exit: r.Exit, mood: r.Mood, budget: r.Budget, cost: r.Cost,
			life: r.Life, token: r.Token, asked: r.Asked,
		})
	}
	return o
}

// The walks of 403b8aa also had changes of checks by webhooks, and issues that an agent proposed. Today's walks read the checks of each head once.

func (a api) Checks(ctx context.Context, _ forge.Repo, _ int, head string) (green.Report, error) {
	return read(ctx, a, "checks", func() (green.Report, error) {
		return green.Report{Head: head, Checks: []green.Check{{Name: "ci", State: green.Success, Required: true}}}, nil
	})
}

func (a api) FindIssues(ctx context.Context, _ forge.Repo, marker string, _ time.Time) ([]forge.Issue, error) {
	return read(ctx, a, "find issues", func() (found []forge.Issue, err error) {
		for n := 1; n <= a.last; n++ {
			if i := a.issues[n]; i.pull == nil && strings.Contains(i.text().body, marker) {
				found = append(found, i.view())
			}
		}
		return found, nil
	})
}

func (a api) CreateIssue(ctx context.Context, _ forge.Repo, title, body string) (forge.Issue, error) {
	return write(ctx, a, "create issue", func() (forge.Issue, error) {
		i := a.w.open(a.people[0])
		i.texts[0].title, i.texts[0].body = title, body
		return i.view(), nil
	})
}
