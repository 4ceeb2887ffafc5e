// Package evidence reads from GitHub what the verification of a statement compares it with: comments with their editors and reactions,
// commits, trees and merges.
//
// It reads as a person or a workflow with a token, and never writes. Lists are bounded. Start with [New].
package evidence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/internal/provenance"
)

// Limits on what is read of one pull request.
const (
	maxPages      = 20 // of comments, and of reactions
	maxPRCommits  = 250
	maxBlob       = 2 << 20
	requestBudget = 30 * time.Second
)

// Config is the address of GitHub, and the token.
type Config struct {
	Token      string
	WebURL     string // empty: github.com
	APIURL     string
	GraphQLURL string
	UserAgent  string
	Transport  http.RoundTripper // nil: http.DefaultTransport
	Repository string            // OWNER/REPO
	Now        func() time.Time
}

// Reader reads one repository. It implements [provenance.GitHub].
type Reader struct {
	client *client.Client
	repo   client.Repo
}

var _ provenance.GitHub = (*Reader)(nil)

// New returns a Reader. It sends no request.
func New(cfg Config) (*Reader, error) {
	owner, name, ok := strings.Cut(cfg.Repository, "/")
	if !ok {
		return nil, fmt.Errorf("read repository %q: want OWNER/REPO", cfg.Repository)
	}
	if cfg.Token == "" {
		return nil, errors.New("read GitHub: there is no token")
	}
	c, err := client.New(client.Config{
		Token: cfg.Token, WebURL: cfg.WebURL, V3APIURL: cfg.APIURL, V4APIURL: cfg.GraphQLURL, UserAgent: cfg.UserAgent, Transport: cfg.Transport,
		Timeout: requestBudget, Now: cfg.Now,
	})
	if err != nil {
		return nil, err
	}
	return &Reader{client: c, repo: client.Repo{Owner: owner, Name: name}}, nil
}

func (r *Reader) read(ctx context.Context, what string, args ...any) (*client.Operation, error) {
	return r.client.Read(ctx, 0, what, strings.TrimSpace(fmt.Sprintln(append(args, "in", r.repo.FullName())...)))
}

// Pull reads the pull request.
func (r *Reader) Pull(ctx context.Context, number int) (provenance.Pull, error) {
	op, err := r.read(ctx, "read pull request", number)
	if err != nil {
		return provenance.Pull{}, err
	}
	p, _, err := op.GitHub.PullRequests.Get(op.Ctx, r.repo.Owner, r.repo.Name, number)
	if err != nil {
		return provenance.Pull{}, op.Wrap(err)
	}
	out := provenance.Pull{
		RepositoryID: p.GetBase().GetRepo().GetID(), Repository: p.GetBase().GetRepo().GetFullName(), Number: p.GetNumber(), By: person(p.User),
		Head: p.GetHead().GetSHA(), Branch: p.GetHead().GetRef(), Base: p.GetBase().GetRef(), Merged: p.GetMerged(),
	}
	if out.Merged {
		out.MergeCommit = p.GetMergeCommitSHA()
	}
	return out, nil
}

func person(u *github.User) provenance.Person {
	return provenance.Person{ID: u.GetID(), Login: u.GetLogin(), Bot: u.GetType() == "Bot"}
}

// Commits reads the commits of the pull request. GitHub lists the first 250.
func (r *Reader) Commits(ctx context.Context, number int) ([]provenance.CommitInfo, bool, error) {
	op, err := r.read(ctx, "list the commits of pull request", number)
	if err != nil {
		return nil, false, err
	}
	list, err := client.All(func(o github.ListOptions) ([]*github.RepositoryCommit, *github.Response, error) {
		return op.GitHub.PullRequests.ListCommits(op.Ctx, r.repo.Owner, r.repo.Name, number, &o)
	})
	if err != nil {
		return nil, false, op.Wrap(err)
	}
	var out []provenance.CommitInfo
	for _, c := range list {
		out = append(out, commitInfo(c))
	}
	return out, len(out) < maxPRCommits, nil
}

func commitInfo(c *github.RepositoryCommit) provenance.CommitInfo {
	out := provenance.CommitInfo{
		ID: c.GetSHA(), Tree: c.GetCommit().GetTree().GetSHA(), Verified: c.GetCommit().GetVerification().GetVerified(),
		Author: provenance.Person{Login: c.GetCommit().GetAuthor().GetName()},
	}
	if c.Author != nil && c.Author.GetID() != 0 {
		out.Author = person(c.Author)
	}
	for _, p := range c.Parents {
		out.Parents = append(out.Parents, p.GetSHA())
	}
	return out
}

// Commit reads one commit.
func (r *Reader) Commit(ctx context.Context, id string) (provenance.CommitInfo, error) {
	op, err := r.read(ctx, "read commit", id)
	if err != nil {
		return provenance.CommitInfo{}, err
	}
	c, _, err := op.GitHub.Repositories.GetCommit(op.Ctx, r.repo.Owner, r.repo.Name, id, &github.ListOptions{PerPage: 1})
	if err != nil {
		return provenance.CommitInfo{}, gone(op.Wrap(err))
	}
	return commitInfo(c), nil
}

// gone returns the error that GitHub has no such commit, if it is that, otherwise err.
func gone(err error) error {
	if errors.Is(err, client.ErrNotFound) {
		return fmt.Errorf("%w: %w", provenance.ErrGone, err)
	}
	return err
}

// Between reads the commits that only head has.
func (r *Reader) Between(ctx context.Context, base, head string) (out []provenance.CommitInfo, complete bool, err error) {
	op, err := r.read(ctx, "list the commits from", base, "to", head)
	if err != nil {
		return nil, false, err
	}
	o := github.ListOptions{PerPage: 100}
	for {
		c, resp, err := op.GitHub.Repositories.CompareCommits(op.Ctx, r.repo.Owner, r.repo.Name, base, head, &o)
		if err != nil {
			return nil, false, gone(op.Wrap(err))
		}
		for _, k := range c.Commits {
			out = append(out, commitInfo(k))
		}
		if resp.NextPage == 0 || len(out) > maxPRCommits {
			return out, len(out) == c.GetTotalCommits(), nil
		}
		o.Page = resp.NextPage
	}
}

// MergeBase returns the commit at which two commits' histories part.
func (r *Reader) MergeBase(ctx context.Context, a, b string) (string, error) {
	op, err := r.read(ctx, "compare", a, "with", b)
	if err != nil {
		return "", err
	}
	c, _, err := op.GitHub.Repositories.CompareCommits(op.Ctx, r.repo.Owner, r.repo.Name, a, b, &github.ListOptions{PerPage: 1})
	if err != nil {
		return "", gone(op.Wrap(err))
	}
	return c.GetMergeBaseCommit().GetSHA(), nil
}

// Files reads the files of a tree.
func (r *Reader) Files(ctx context.Context, tree string) (map[string]provenance.File, bool, error) {
	op, err := r.read(ctx, "read tree", tree)
	if err != nil {
		return nil, false, err
	}
	t, _, err := op.GitHub.Git.GetTree(op.Ctx, r.repo.Owner, r.repo.Name, tree, true)
	if err != nil {
		return nil, false, gone(op.Wrap(err))
	}
	files := make(map[string]provenance.File, len(t.Entries))
	for _, e := range t.Entries {
		if e.GetType() != "tree" {
			files[e.GetPath()] = provenance.File{Mode: e.GetMode(), Blob: e.GetSHA()}
		}
	}
	return files, !t.GetTruncated(), nil
}

// Blob reads the content of a file.
func (r *Reader) Blob(ctx context.Context, id string) ([]byte, error) {
	op, err := r.read(ctx, "read file", id)
	if err != nil {
		return nil, err
	}
	data, _, err := op.GitHub.Git.GetBlobRaw(op.Ctx, r.repo.Owner, r.repo.Name, id)
	var refused *github.ErrorResponse
	tooLarge := errors.As(err, &refused) && slices.ContainsFunc(refused.Errors, func(e github.Error) bool { return e.Code == "too_large" })
	if tooLarge || len(data) > maxBlob {
		return nil, provenance.ErrTooLarge
	}
	return data, op.Wrap(err)
}
