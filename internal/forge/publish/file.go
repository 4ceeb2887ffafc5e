package publish

import (
	"context"
	"fmt"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge/client"
)

// A FileCommit is a commit that writes one file.
type FileCommit struct {
	Onto    string // its parent
	Path    string
	Content string // not empty
	Message string
}

// CommitFile creates a commit as a git object and returns its ID. No branch points at it yet; see MoveBranch. It can be repeated.
func (p *Publisher) CommitFile(ctx context.Context, r client.Repo, c FileCommit) (string, error) {
	op, err := p.client.Data(ctx, r.Installation, "commit a file", c.Path+" to "+r.FullName())
	if err != nil {
		return "", err
	}
	b := &builder{op: op, repo: r}
	tree, err := b.treeOf(c.Onto)
	if err != nil {
		return "", op.Wrap(err)
	}
	made, _, err := op.GitHub.Git.CreateTree(op.Ctx, r.Owner, r.Name, tree, []*github.TreeEntry{{
		Path: &c.Path, Mode: github.String(string(changeset.ModeFile)), Type: github.String("blob"), Content: &c.Content,
	}})
	if err != nil {
		return "", op.Wrap(fmt.Errorf("create tree: %w", err))
	}
	got, _, err := op.GitHub.Git.CreateCommit(op.Ctx, r.Owner, r.Name, &github.Commit{
		Message: &c.Message, Tree: made, Parents: []*github.Commit{{SHA: &c.Onto}},
	}, nil)
	if err != nil {
		return "", op.Wrap(fmt.Errorf("create commit: %w", err))
	}
	return got.GetSHA(), nil
}

// CommitMessage returns the message of a commit, and its first parent, which is empty for a root commit.
func (p *Publisher) CommitMessage(ctx context.Context, r client.Repo, commit string) (message, parent string, err error) {
	op, err := p.client.Read(ctx, r.Installation, "read commit", commit+" of "+r.FullName())
	if err != nil {
		return "", "", err
	}
	got, _, err := op.GitHub.Git.GetCommit(op.Ctx, r.Owner, r.Name, commit)
	if err != nil {
		return "", "", op.Wrap(err)
	}
	if len(got.Parents) > 0 {
		parent = got.Parents[0].GetSHA()
	}
	return got.GetMessage(), parent, nil
}

// recentCommits is the number of commits that RecentMessages reads, in one request.
const recentCommits = 50

// RecentMessages returns the messages of a commit and of those before it, the newest first, without those of merges.
func (p *Publisher) RecentMessages(ctx context.Context, r client.Repo, commit string) (messages []string, err error) {
	op, err := p.client.Read(ctx, r.Installation, "list commits", r.FullName())
	if err != nil {
		return nil, err
	}
	list, _, err := op.GitHub.Repositories.ListCommits(op.Ctx, r.Owner, r.Name, &github.CommitsListOptions{
		SHA: commit, ListOptions: github.ListOptions{PerPage: recentCommits},
	})
	if err != nil {
		return nil, op.Wrap(err)
	}
	for _, c := range list {
		if len(c.Parents) < 2 {
			messages = append(messages, c.GetCommit().GetMessage())
		}
	}
	return messages, nil
}
