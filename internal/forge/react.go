package forge

import (
	"context"
	"fmt"

	"github.com/google/go-github/v66/github"
)

// TargetKind is what a reaction is on.
type TargetKind string

// The things that REST lets us react on. (A submitted review is not among them.)
const (
	TargetIssue         TargetKind = "issue"          // an issue or a pull request's first text
	TargetComment       TargetKind = "comment"        // in a conversation
	TargetReviewComment TargetKind = "review comment" // in a thread
)

// Target is one thing to react on. ID is the number of an issue, and the database id of a comment.
type Target struct {
	Kind TargetKind
	ID   int64
}

func (t Target) on(r Repo) string { return fmt.Sprintf("on %s %d of %s", t.Kind, t.ID, r.FullName()) }

// React sets our reaction, such as "eyes" or "+1". It may be called twice: there is only one of each.
func (f *Forge) React(ctx context.Context, r Repo, t Target, content string) error {
	ctx = WithPriority(ctx, priorityOf(ctx, PriorityReact))
	u, err := f.writes(ctx, r.Installation, "react", t.on(r))
	if err != nil {
		return err
	}
	api := u.client.Reactions
	switch t.Kind {
	case TargetIssue:
		_, _, err = api.CreateIssueReaction(u.ctx, r.Owner, r.Name, int(t.ID), content)
	case TargetComment:
		_, _, err = api.CreateIssueCommentReaction(u.ctx, r.Owner, r.Name, t.ID, content)
	case TargetReviewComment:
		_, _, err = api.CreatePullRequestCommentReaction(u.ctx, r.Owner, r.Name, t.ID, content)
	default:
		err = fmt.Errorf("react on %q: no such kind of thing", t.Kind)
	}
	return u.wrap(err)
}

// Unreact takes our reaction back. One that is not there is no error.
func (f *Forge) Unreact(ctx context.Context, r Repo, t Target, content string) error {
	self, err := f.Self(ctx)
	if err != nil {
		return err
	}
	u, err := f.reads(ctx, r.Installation, "list reactions", t.on(r))
	if err != nil {
		return err
	}
	list, err := all(func(o github.ListOptions) ([]*github.Reaction, *github.Response, error) { return u.reactions(r, t, o) })
	if err != nil {
		return u.wrap(err)
	}
	for _, reaction := range list {
		if reaction.GetUser().GetID() != self.BotID || reaction.GetContent() != content {
			continue
		}
		if err := f.deleteReaction(ctx, r, t, reaction.GetID()); err != nil {
			return err
		}
	}
	return nil
}

func (u *use) reactions(r Repo, t Target, o github.ListOptions) ([]*github.Reaction, *github.Response, error) {
	api := u.client.Reactions
	switch t.Kind {
	case TargetIssue:
		return api.ListIssueReactions(u.ctx, r.Owner, r.Name, int(t.ID), &o)
	case TargetComment:
		return api.ListIssueCommentReactions(u.ctx, r.Owner, r.Name, t.ID, &o)
	case TargetReviewComment:
		return api.ListPullRequestCommentReactions(u.ctx, r.Owner, r.Name, t.ID, &o)
	}
	return nil, nil, fmt.Errorf("list reactions on %q: no such kind of thing", t.Kind)
}

func (f *Forge) deleteReaction(ctx context.Context, r Repo, t Target, id int64) error {
	u, err := f.writes(ctx, r.Installation, "take a reaction back", t.on(r))
	if err != nil {
		return err
	}
	api := u.client.Reactions
	switch t.Kind {
	case TargetIssue:
		_, err = api.DeleteIssueReaction(u.ctx, r.Owner, r.Name, int(t.ID), id)
	case TargetComment:
		_, err = api.DeleteIssueCommentReaction(u.ctx, r.Owner, r.Name, t.ID, id)
	case TargetReviewComment:
		_, err = api.DeletePullRequestCommentReaction(u.ctx, r.Owner, r.Name, t.ID, id)
	}
	if statusOf(err) == 404 {
		return nil
	}
	return u.wrap(err)
}
