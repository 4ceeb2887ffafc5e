package forge

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/state"
)

// Comment is a text on GitHub: a comment of a conversation or a review thread, a submitted review, or the own text of an
// issue or a pull request (ID 0).
type Comment struct {
	ID        int64
	Node      string // GraphQL id
	URL       string
	Author    state.Person
	Body      string
	CreatedAt time.Time // whole seconds, by GitHub's clock
	// EditedAt is zero if the comment was never edited. REST tells no more than that: CreateComment, FindComments,
	// CommentsSince and the like have the time of the last change here, and no Editor.
	EditedAt  time.Time
	Editor    *state.Person
	Minimized bool
	// ThumbsUp are all its 👍, newest first, if it was read together with them.
	ThumbsUp []Reaction
}

func about(r Repo, number int) string { return fmt.Sprintf("on %s#%d", r.FullName(), number) }

// CreateComment writes a comment on an issue or in a pull request's conversation. Calling it twice
// makes two: look with FindComments first when the outcome of the first is not known.
func (f *Forge) CreateComment(ctx context.Context, r Repo, number int, body string) (Comment, error) {
	op, err := f.client.Write(ctx, r.Installation, "comment", about(r, number))
	if err != nil {
		return Comment{}, err
	}
	got, _, err := op.GitHub.Issues.CreateComment(op.Ctx, r.Owner, r.Name, number, &github.IssueComment{Body: &body})
	if err != nil {
		return Comment{}, op.Wrap(err)
	}
	return issueComment(got), nil
}

// EditComment replaces the body of a comment. It may be called twice.
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

// DeleteComment deletes a comment; one that is gone is no error.
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

// FindComments returns our comments on an issue or pull request that hold the hidden marker (the whole of it, "<!-- … -->"),
// oldest first: every one but the first is a twin that an unknown outcome left behind. Only what was written or edited since
// then is read; a zero time reads all. Anybody can copy a marker, so only comments by our bot count.
func (f *Forge) FindComments(ctx context.Context, r Repo, number int, marker string, since time.Time) ([]Comment, error) {
	self, err := f.Self(ctx)
	if err != nil {
		return nil, err
	}
	op, err := f.client.Read(ctx, r.Installation, "look for our comment", about(r, number))
	if err != nil {
		return nil, err
	}
	list, err := comments(op, r, number, since)
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

// CommentsSince lists the comments of an issue or pull request that were written since then, oldest first.
func (f *Forge) CommentsSince(ctx context.Context, r Repo, number int, since time.Time) ([]Comment, error) {
	op, err := f.client.Read(ctx, r.Installation, "read comments", about(r, number))
	if err != nil {
		return nil, err
	}
	list, err := comments(op, r, number, since)
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

// comments lists the comments of an issue or pull request, all pages, oldest first.
func comments(op *client.Operation, r Repo, number int, since time.Time) ([]*github.IssueComment, error) {
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

// minimizeMutation folds a comment away.
const minimizeMutation = `mutation($id: ID!) {
  minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { minimizedComment { isMinimized } }
}`

// Minimize folds a comment (by its GraphQL id) as outdated. It may be called twice; a comment that is
// gone is ErrNotFound.
func (f *Forge) Minimize(ctx context.Context, installation int64, node string) error {
	op, err := f.client.Write(ctx, installation, "minimise comment", node)
	if err != nil {
		return err
	}
	return op.Wrap(op.GraphQL(minimizeMutation, map[string]any{"id": node}, nil))
}
