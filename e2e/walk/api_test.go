package walk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/state"
)

// api implements errand's calls of GitHub. Every call passes the gate: it takes time, and may fail before or after its
// effect.
type api struct {
	*hub
	unplayed
}

// unplayed has the calls that errand may make but no walk plays: a step that makes one panics.
type unplayed struct{ unplayed1 }

type unplayed1 struct{ workflow.GitHub }

var (
	_ workflow.GitHub      = api{}
	_ watch.ReactionReader = api{}
	_ watch.SweepReader    = api{}
)

// notFound is GitHub's 404.
func notFound(op string) error {
	return &forge.Error{Op: op, Reason: "It is not there.", Class: forge.ClassPermanent, Status: 404, Err: forge.ErrNotFound}
}

// read passes the gate for a call without an effect.
func read[T any](ctx context.Context, a api, op string, fn func() (T, error)) (out T, err error) {
	err = a.w.gate(ctx, op, false, func() error {
		out, err = fn()
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return out, nil
}

// write passes the gate for a call with an effect.
func write[T any](ctx context.Context, a api, op string, fn func() (T, error)) (out T, err error) {
	err = a.w.gate(ctx, op, true, func() error {
		out, err = fn()
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return out, nil
}

func nothing(fn func() error) func() (struct{}, error) {
	return func() (struct{}, error) { return struct{}{}, fn() }
}

func (a api) Self(context.Context) (forge.App, error) { // read once, then cached
	return forge.App{ID: 1, Slug: slug, Name: slug, BotID: botID, BotLogin: botLogin}, nil
}

func (a api) Installation(context.Context, int64) (forge.Installation, error) { // has all permissions, and cached
	all := map[string]string{}
	for _, n := range forge.AppPermissions() {
		all[n.Permission] = n.Level
	}
	return forge.Installation{Permissions: all, Events: forge.Events()}, nil
}

func (a api) Permission(ctx context.Context, _ forge.Repo, login string, id int64) (state.Permission, error) {
	return read(ctx, a, "permission", func() (state.Permission, error) {
		p := a.person(login)
		if p == nil || p.ID != id {
			return state.PermissionNone, nil
		}
		return a.w.plant.permission(p.may), nil
	})
}

func (a api) React(ctx context.Context, _ forge.Repo, t forge.Target, content string) error {
	_, err := write(ctx, a, "react", nothing(func() error {
		if t.Kind == forge.TargetIssue {
			i := a.issues[int(t.ID)]
			if i == nil {
				return notFound("react")
			}
			if content == "eyes" && i.eyes.IsZero() {
				i.eyes = a.w.now
			}
			a.w.model.answered(i)
			return nil
		}
		c := a.byID(t.ID)
		if c == nil {
			return notFound("react")
		}
		c.eyes = true // whatever the reaction
		a.w.model.acknowledged(c)
		a.w.model.answered(c.on)
		return nil
	}))
	if c := a.byID(t.ID); c != nil && t.Kind != forge.TargetIssue && err != nil {
		c.failed++
		c.denied = c.denied || refusal(err) != nil || c.failed >= tries
	}
	return err
}

// Unreact removes nothing: the walks only know whether errand has reacted.
func (a api) Unreact(ctx context.Context, _ forge.Repo, t forge.Target, _ string) error {
	_, err := write(ctx, a, "unreact", nothing(func() error {
		if a.byID(t.ID) == nil {
			return notFound("unreact")
		}
		return nil
	}))
	return err
}

func (a api) PollReactions(ctx context.Context, _ int64, nodes []string) (forge.ReactionPoll, error) {
	out, err := read(ctx, a, "thumbs", func() (forge.ReactionPoll, error) {
		out := forge.ReactionPoll{Reactions: map[string][]forge.Reaction{}, Cost: 1, Remaining: 4000}
		for _, n := range nodes {
			if i := a.issueByNode(n); i != nil {
				if len(i.thumbs) > 0 {
					out.Reactions[n] = views(i.thumbs)
				}
				continue
			}
			c := a.find(func(c *comment) bool { return c.node == n })
			if c == nil {
				out.Deleted = append(out.Deleted, n)
			} else if len(c.thumbs) > 0 {
				out.Reactions[n] = views(c.thumbs)
			}
		}
		return out, nil
	})
	if err == nil {
		a.w.polls.shows(out)
	}
	return out, err
}

func (h *hub) issueByNode(node string) *issue {
	for n := 1; n <= h.last; n++ {
		if h.issues[n].node == node {
			return h.issues[n]
		}
	}
	return nil
}

func (a api) CreateComment(ctx context.Context, _ forge.Repo, number int, words string) (forge.Comment, error) {
	a.w.model.creates(markOf(words))
	out, err := write(ctx, a, "comment", func() (forge.Comment, error) {
		i := a.issues[number]
		if i == nil {
			return forge.Comment{}, notFound("comment")
		}
		c := a.newComment(i, nil, words)
		i.comments = append(i.comments, c)
		a.w.model.posted(c)
		a.w.model.created(markOf(words))
		return c.view(), nil
	})
	if refusal(err) != nil {
		a.w.model.barred = append(a.w.model.barred, markOf(words))
	}
	return out, err
}

func (a api) EditComment(ctx context.Context, _ forge.Repo, id int64, words string) (forge.Comment, error) {
	a.w.model.shows(id, words)
	return write(ctx, a, "edit", func() (forge.Comment, error) {
		c := a.byID(id)
		if c == nil {
			return forge.Comment{}, notFound("edit")
		}
		c.bodies = append(c.bodies, body{words, nil, a.clock()})
		return c.view(), nil
	})
}

func (a api) FindComments(ctx context.Context, _ forge.Repo, number int, marker string, since time.Time) ([]forge.Comment, error) {
	out, err := read(ctx, a, "find comments", func() (out []forge.Comment, err error) {
		if a.issues[number] == nil {
			return nil, notFound("find")
		}
		a.w.model.recordSearch(strings.TrimSpace(marker), since)
		for _, c := range a.issues[number].comments {
			touched := c.bodies[len(c.bodies)-1].at
			if !c.gone && c.author == nil && c.lists(a.w) && !touched.Before(since) && strings.Contains(c.body(), marker) {
				out = append(out, c.view())
			}
		}
		return out, nil
	})
	if refusal(err) != nil { // the comment is not posted without the search
		a.w.model.barred = append(a.w.model.barred, markOf(marker))
	}
	return out, err
}

func (a api) DeleteComment(ctx context.Context, _ forge.Repo, id int64) error {
	_, err := write(ctx, a, "delete", nothing(func() error {
		if c := a.byID(id); c != nil {
			c.gone, c.removed = true, true
		}
		return nil
	}))
	var refused *forge.Error
	if c := a.byID(id); c != nil && errors.As(err, &refused) && refused.Class == forge.ClassPermanent {
		c.undeletable = true
	}
	return err
}

func (a api) Minimize(ctx context.Context, _ int64, node string) error {
	_, err := write(ctx, a, "minimise", nothing(func() error {
		if a.find(func(c *comment) bool { return c.node == node }) == nil {
			return notFound("minimise")
		}
		return nil
	}))
	return err
}

func (a api) Comment(ctx context.Context, _ forge.Repo, id int64) (forge.Comment, error) {
	return read(ctx, a, "read comment", func() (forge.Comment, error) {
		c := a.byID(id)
		if c == nil {
			return forge.Comment{}, notFound("read comment")
		}
		return c.view(), nil
	})
}

func (a api) IssueText(ctx context.Context, _ forge.Repo, node string) (forge.Comment, error) {
	return read(ctx, a, "read text", func() (forge.Comment, error) {
		i := a.issueByNode(node)
		if i == nil {
			return forge.Comment{}, notFound("read text")
		}
		v := forge.Comment{Node: i.node, Author: i.author.Person, Body: i.text().body, CreatedAt: i.created, ThumbsUp: views(i.thumbs)}
		if len(i.texts) > 1 {
			editor := i.text().by.Person
			v.EditedAt, v.Editor = i.text().at, &editor
		}
		return v, nil
	})
}

func (a api) Issue(ctx context.Context, _ forge.Repo, number int) (forge.Issue, error) {
	a.w.model.tries(number)
	return looked(a, func() (forge.Issue, error) {
		return read(ctx, a, "read issue", func() (forge.Issue, error) {
			i, s := a.issues[number], a.w.model.sweeping()
			if i == nil || i.hiddenFrom(s, a.w.now) {
				a.w.model.recordMiss(s, number)
				return forge.Issue{}, notFound("read issue")
			}
			a.w.model.reads(number)
			return i.view(), nil
		})
	})
}

// view returns an issue as errand reads it.
func (i *issue) view() forge.Issue {
	t := i.text()
	out := forge.Issue{Number: i.number, CreatedAt: i.created, UpdatedAt: i.updated(), ClosedAt: i.closedAt, IsPR: i.pull != nil}
	out.Issue = state.Issue{Node: i.node, Title: t.title, Body: t.body, Author: personOf(i.author), Labels: slices.Clone(i.labels), Closed: i.closed}
	if i.assigned {
		out.Assignees = []state.Person{{ID: assigneeID, Login: assignee}}
	}
	return out
}

func (a api) Blockers(ctx context.Context, r forge.Repo, _ int) ([]forge.Blocker, error) {
	return read(ctx, a, "blockers", func() (out []forge.Blocker, err error) {
		if i := a.w.blocker; i != nil {
			out = append(out, forge.Blocker{Owner: r.Owner, Name: r.Name, Number: i.number, Open: !i.closed, Via: "dependency"})
		}
		return out, nil
	})
}

// The calls of the sweeps.

func (a api) Installations(ctx context.Context) ([]forge.Installation, error) {
	return read(ctx, a, "installations", func() ([]forge.Installation, error) {
		return []forge.Installation{{ID: installation}}, nil
	})
}

func (a api) InstallationRepos(ctx context.Context, _ int64) ([]state.Repo, error) {
	return read(ctx, a, "repositories", func() ([]state.Repo, error) {
		return []state.Repo{{ID: a.repo, Owner: owner, Name: repoName, DefaultBranch: mainBranch}}, nil
	})
}

func (a api) OpenIssuesFor(ctx context.Context, _ forge.Repo, want forge.IssueFilter) ([]forge.Issue, error) {
	a.w.model.endGlance()
	return read(ctx, a, "list issues", func() (out []forge.Issue, err error) {
		for n := 1; n <= a.last; n++ {
			i := a.issues[n]
			if i.pull == nil && !i.closed && (want.Assignee == "" || i.assigned) && (want.Label == "" || slices.Contains(i.labels, want.Label)) {
				out = append(out, i.view())
			}
		}
		return out, nil
	})
}

func (a api) IssueActor(ctx context.Context, _ forge.Repo, number int, what, subject string) (who state.Person, at time.Time, err error) {
	f, err := read(ctx, a, "issue events", func() (fact, error) {
		for _, f := range slices.Backward(a.issues[number].events) {
			if f.what == what && strings.EqualFold(f.about, subject) {
				return f, nil
			}
		}
		return fact{}, notFound("issue events")
	})
	if err != nil {
		return state.Person{}, time.Time{}, err
	}
	return f.by.Person, f.at, nil
}

func (a api) Deliveries(ctx context.Context, since time.Time) ([]forge.Delivery, error) {
	out, err := read(ctx, a, "failed deliveries", func() (out []forge.Delivery, err error) {
		for n, d := range a.failed {
			if !d.through && !d.at.Before(since) {
				out = append(out, forge.Delivery{ID: int64(n), GUID: d.guid, Event: d.event, At: d.at})
			}
		}
		return out, nil
	})
	a.w.storage.lists(out)
	return out, err
}

func (a api) HookDelivery(ctx context.Context, id int64) (event, guid string, payload []byte, err error) {
	if int(id) < len(a.failed) {
		a.w.storage.asks(a.failed[id].guid)
	}
	d, err := read(ctx, a, "read delivery", func() (*hook, error) {
		if int(id) >= len(a.failed) {
			return nil, fmt.Errorf("no delivery %d", id)
		}
		return a.failed[id], nil
	})
	if err != nil {
		return "", "", nil, err
	}
	return d.event, d.guid, d.payload, nil
}
