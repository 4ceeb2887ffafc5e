package forge

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/internal/trust"
)

// Comment is a text on GitHub. Methods that use REST (CreateComment, EditComment, FindComments, CommentsSince,
// ReplyInThread, FindReplies) do not set Editor, Minimized and ThumbsUp; EditedAt is then the time of the last update.
// Threads and CommentAndHead do not set ThumbsUp.
type Comment = trust.Comment

func onIssue(r Repo, number int) string { return fmt.Sprintf("on %s#%d", r.FullName(), number) }

// CreateComment creates a comment on an issue or in a pull request's conversation. Each call creates one: after an
// unknown outcome, look for the comment with FindComments.
func (f *Forge) CreateComment(ctx context.Context, r Repo, number int, body string) (Comment, error) {
	op, err := f.client.Write(ctx, r.Installation, "comment", onIssue(r, number))
	if err != nil {
		return Comment{}, err
	}
	got, _, err := op.GitHub.Issues.CreateComment(op.Ctx, r.Owner, r.Name, number, &github.IssueComment{Body: &body})
	if err != nil {
		return Comment{}, op.Wrap(err)
	}
	return issueComment(got), nil
}

// EditComment replaces the body of a comment. It can be repeated.
func (f *Forge) EditComment(ctx context.Context, r Repo, id int64, body string) (Comment, error) {
	op, err := f.client.Write(ctx, r.Installation, "edit comment", fmt.Sprintf("%d in %s", id, r.FullName()))
	if err != nil {
		return Comment{}, err
	}
	got, _, err := op.GitHub.Issues.EditComment(op.Ctx, r.Owner, r.Name, id, &github.IssueComment{Body: &body})
	if err != nil {
		return Comment{}, op.Wrap(err)
	}
	return issueComment(got), nil
}

// DeleteComment deletes a comment. It succeeds if the comment does not exist.
func (f *Forge) DeleteComment(ctx context.Context, r Repo, id int64) error {
	op, err := f.client.Write(ctx, r.Installation, "delete comment", fmt.Sprintf("%d in %s", id, r.FullName()))
	if err != nil {
		return err
	}
	_, err = op.GitHub.Issues.DeleteComment(op.Ctx, r.Owner, r.Name, id)
	if client.StatusOf(err) == 404 {
		return nil
	}
	return op.Wrap(err)
}

// FindComments returns the App's comments on an issue or pull request that contain a marker ("<!-- … -->"), oldest
// first. All but the first are duplicates after unknown outcomes. It reads comments that were created or edited since a
// time; zero means all. It ignores comments of other authors, who can copy a marker.
func (f *Forge) FindComments(ctx context.Context, r Repo, number int, marker string, since time.Time) ([]Comment, error) {
	self, err := f.Self(ctx)
	if err != nil {
		return nil, err
	}
	op, err := f.client.Read(ctx, r.Installation, "look for our comment", onIssue(r, number))
	if err != nil {
		return nil, err
	}
	list, err := listComments(op, r, number, since)
	if err != nil {
		return nil, op.Wrap(err)
	}
	var out []Comment
	for _, c := range list {
		if c.GetUser().GetID() == self.BotID && strings.Contains(c.GetBody(), marker) {
			out = append(out, issueComment(c))
		}
	}
	return out, nil
}

// CommentsSince returns the comments on an issue or pull request that were created since a time, oldest first.
func (f *Forge) CommentsSince(ctx context.Context, r Repo, number int, since time.Time) ([]Comment, error) {
	op, err := f.client.Read(ctx, r.Installation, "read comments", onIssue(r, number))
	if err != nil {
		return nil, err
	}
	list, err := listComments(op, r, number, since)
	if err != nil {
		return nil, op.Wrap(err)
	}
	var out []Comment
	for _, c := range list {
		if !c.GetCreatedAt().Before(since) {
			out = append(out, issueComment(c))
		}
	}
	return out, nil
}

// listComments returns the comments on an issue or pull request that were created or updated since a time, oldest
// first.
func listComments(op *client.Operation, r Repo, number int, since time.Time) ([]*github.IssueComment, error) {
	return client.All(func(o github.ListOptions) ([]*github.IssueComment, *github.Response, error) {
		opts := &github.IssueListCommentsOptions{ListOptions: o}
		if !since.IsZero() {
			opts.Since = &since
		}
		return op.GitHub.Issues.ListComments(op.Ctx, r.Owner, r.Name, number, opts)
	})
}

func issueComment(c *github.IssueComment) Comment {
	return Comment{
		ID: c.GetID(), Node: c.GetNodeID(), URL: c.GetHTMLURL(), Author: person(c.User), Body: c.GetBody(),
		CreatedAt: c.GetCreatedAt().Time, EditedAt: editedAt(c.CreatedAt, c.UpdatedAt),
	}
}

// editedAt returns when a comment was last changed, zero if never.
func editedAt(created, updated *github.Timestamp) time.Time {
	if created == nil || updated == nil || !updated.After(created.Time) {
		return time.Time{}
	}
	return updated.Time
}

// minimizeMutation hides a comment as outdated.
const minimizeMutation = `mutation($id: ID!) {
  minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { minimizedComment { isMinimized } }
}`

// Minimize hides a comment, given by its GraphQL ID, as outdated. It can be repeated, and returns ErrNotFound if the
// comment does not exist.
func (f *Forge) Minimize(ctx context.Context, installation int64, node string) error {
	op, err := f.client.Write(ctx, installation, "minimise comment", node)
	if err != nil {
		return err
	}
	return op.Wrap(op.GraphQL(minimizeMutation, map[string]any{"id": node}, nil))
}
