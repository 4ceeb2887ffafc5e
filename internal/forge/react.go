package forge

import (
	"context"
	"fmt"

	"github.com/errand-bot/errand/internal/forge/client"
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
	ctx = client.WithDefaultPriority(ctx, PriorityReaction)
	op, err := f.client.Write(ctx, r.Installation, "react", t.on(r))
	if err != nil {
		return err
	}
	api := op.GitHub.Reactions
	switch t.Kind {
	case TargetIssue:
		_, _, err = api.CreateIssueReaction(op.Ctx, r.Owner, r.Name, int(t.ID), content)
	case TargetComment:
		_, _, err = api.CreateIssueCommentReaction(op.Ctx, r.Owner, r.Name, t.ID, content)
	case TargetReviewComment:
		_, _, err = api.CreatePullRequestCommentReaction(op.Ctx, r.Owner, r.Name, t.ID, content)
	default:
		err = fmt.Errorf("react on %q: no such kind of thing", t.Kind)
	}
	return op.Wrap(err)
}
