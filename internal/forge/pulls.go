package forge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/state"
)

// PR is a pull request.
type PR struct {
	Number     int
	Node       string
	URL        string
	Title      string
	Body       string
	By         state.Person
	Open       bool
	Draft      bool
	Merged     bool
	MergedBy   state.Person
	Head       string // commit
	HeadBranch string
	Base       string // branch
	// Mergeable is nil while GitHub computes it, which takes some seconds.
	Mergeable *bool
	// MergeState is GitHub's mergeable_state: clean, dirty (conflicts), behind, blocked, unstable, …
	MergeState string
	UpdatedAt  time.Time // also changed by comments and reviews
	ClosedAt   time.Time // also set by a merge
}

// State returns the part that a task stores.
func (p PR) State() state.PR {
	s := state.PR{Number: p.Number, Node: p.Node, URL: p.URL, Title: p.Title, Draft: p.Draft || strings.HasPrefix(p.Title, draftPrefix), State: state.PRClosed}
	switch {
	case p.Merged:
		s.State = state.PRMerged
	case p.Open:
		s.State = state.PROpen
	}
	return s
}

func prOf(p *github.PullRequest) PR {
	return PR{
		Number: p.GetNumber(), Node: p.GetNodeID(), URL: p.GetHTMLURL(), Title: p.GetTitle(), Body: p.GetBody(), By: person(p.User),
		Open: p.GetState() == "open", Draft: p.GetDraft(), Merged: p.GetMerged() || p.MergedAt != nil, MergedBy: mergedBy(p),
		Head: p.GetHead().GetSHA(), HeadBranch: p.GetHead().GetRef(), Base: p.GetBase().GetRef(),
		Mergeable: p.Mergeable, MergeState: p.GetMergeableState(), ClosedAt: p.GetClosedAt().Time, UpdatedAt: p.GetUpdatedAt().Time,
	}
}

func mergedBy(p *github.PullRequest) state.Person {
	if p.MergedBy == nil {
		return state.Person{}
	}
	return person(p.MergedBy)
}

// NewPR describes a pull request to open.
type NewPR struct {
	Head  string // branch of the same repository
	Base  string
	Title string
	Body  string
	Draft bool
	// CheckExisting returns an open or merged pull request with this head, which an earlier attempt may have opened.
	CheckExisting bool
}

// draftPrefix marks a pull request as unfinished in repositories without drafts.
const draftPrefix = "[WIP] "

// OpenPR opens a pull request, or returns the open one with this head. If the repository does not support drafts, it
// opens an ordinary one with "[WIP]" in its title.
func (f *Forge) OpenPR(ctx context.Context, r Repo, want NewPR) (PR, error) {
	if want.CheckExisting {
		found, err := f.PRByHead(ctx, r, want.Head)
		if err != nil || (found != nil && (found.Open || found.Merged)) {
			return valueOf(found), err
		}
	}
	about := fmt.Sprintf("from %s into %s of %s", want.Head, want.Base, r.FullName())
	op, err := f.client.Write(ctx, r.Installation, "open pull request", about)
	if err != nil {
		return PR{}, err
	}
	got, err := openPR(op, r, want)
	if message := client.Invalid(err); want.Draft && strings.Contains(message, "draft pull requests are not supported") {
		want.Draft, want.Title = false, draftPrefix+want.Title
		got, err = openPR(op, r, want)
	}
	message := client.Invalid(err)
	if strings.Contains(message, "already exists") {
		if found, lookErr := f.PRByHead(ctx, r, want.Head); lookErr == nil && found != nil && found.Open {
			return *found, nil
		}
	}
	if err := op.Wrap(err); err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return PR{}, err
		}
		switch {
		case strings.Contains(message, "no commits between"):
			e.Hint = "The branch has no commits that are not in " + want.Base + "."
		case strings.Contains(message, "already exists"): // the list does not contain it yet
			e.Class = ClassTemporary
		}
		return PR{}, err
	}
	return prOf(got), nil
}

func valueOf(p *PR) PR {
	if p == nil {
		return PR{}
	}
	return *p
}

func openPR(op *client.Operation, r Repo, want NewPR) (*github.PullRequest, error) {
	got, _, err := op.GitHub.PullRequests.Create(op.Ctx, r.Owner, r.Name, &github.NewPullRequest{
		Title: &want.Title, Head: &want.Head, Base: &want.Base, Body: &want.Body, Draft: &want.Draft,
		MaintainerCanModify: github.Bool(true),
	})
	return got, err
}

// PR reads a pull request.
func (f *Forge) PR(ctx context.Context, r Repo, number int) (PR, error) {
	op, err := f.client.Read(ctx, r.Installation, "read pull request", fmt.Sprintf("%s#%d", r.FullName(), number))
	if err != nil {
		return PR{}, err
	}
	got, _, err := op.GitHub.PullRequests.Get(op.Ctx, r.Owner, r.Name, number)
	if err != nil {
		return PR{}, op.Wrap(err)
	}
	return prOf(got), nil
}

// ReopenPR reopens a closed pull request. GitHub refuses it if the pull request was merged, or if its branch is gone or has
// neither the old head nor a descendant of it; the error then has a hint. It can be repeated.
func (f *Forge) ReopenPR(ctx context.Context, r Repo, number int) (PR, error) {
	op, err := f.client.Write(ctx, r.Installation, "reopen pull request", onIssue(r, number))
	if err != nil {
		return PR{}, err
	}
	got, _, err := op.GitHub.PullRequests.Edit(op.Ctx, r.Owner, r.Name, number, &github.PullRequest{State: github.String("open")})
	refused := client.Invalid(err) != ""
	if err := op.Wrap(err); err != nil {
		var e *Error
		if refused && errors.As(err, &e) {
			e.Reason = fmt.Sprintf("GitHub does not let pull request #%d be reopened.", number)
			e.Hint = "Its branch no longer has the commits that it had when it was closed, or another pull request from that branch is open."
		}
		return PR{}, err
	}
	return prOf(got), nil
}

// EditPR replaces the title and the body of a pull request. It can be repeated.
func (f *Forge) EditPR(ctx context.Context, r Repo, number int, title, body string) (PR, error) {
	op, err := f.client.Write(ctx, r.Installation, "edit pull request", onIssue(r, number))
	if err != nil {
		return PR{}, err
	}
	got, _, err := op.GitHub.PullRequests.Edit(op.Ctx, r.Owner, r.Name, number, &github.PullRequest{Title: &title, Body: &body})
	if err != nil {
		return PR{}, op.Wrap(err)
	}
	return prOf(got), nil
}

// ClosePR closes a pull request without merging it. It can be repeated.
func (f *Forge) ClosePR(ctx context.Context, r Repo, number int) error {
	op, err := f.client.Write(ctx, r.Installation, "close pull request", onIssue(r, number))
	if err != nil {
		return err
	}
	_, _, err = op.GitHub.PullRequests.Edit(op.Ctx, r.Owner, r.Name, number, &github.PullRequest{State: github.String("closed")})
	return op.Wrap(err)
}

// PRByHead returns the pull request from a branch of the repository, nil if there is none. It prefers open to closed
// ones, then the newest. Mergeable is not set.
func (f *Forge) PRByHead(ctx context.Context, r Repo, branch string) (*PR, error) {
	op, err := f.client.Read(ctx, r.Installation, "look for a pull request", "from "+branch+" of "+r.FullName())
	if err != nil {
		return nil, err
	}
	list, err := client.All(func(o github.ListOptions) ([]*github.PullRequest, *github.Response, error) {
		return op.GitHub.PullRequests.List(op.Ctx, r.Owner, r.Name, &github.PullRequestListOptions{
			State: "all", Head: r.Owner + ":" + branch, ListOptions: o,
		})
	})
	if err != nil {
		return nil, op.Wrap(err)
	}
	var best *PR
	for _, p := range list {
		s := prOf(p)
		if s.HeadBranch != branch { // GitHub may ignore the filter
			continue
		}
		if best == nil || (s.Open && !best.Open) || (s.Open == best.Open && s.Number > best.Number) {
			best = &s
		}
	}
	return best, nil
}

// RequestReview requests a review from a person. If GitHub refuses it, for example for the author or somebody who is
// not a collaborator, it returns a note, one sentence for people, and no error. It can be repeated.
func (f *Forge) RequestReview(ctx context.Context, r Repo, number int, login string) (note string, err error) {
	op, err := f.client.Write(ctx, r.Installation, "request a review", fmt.Sprintf("of %s#%d by %s", r.FullName(), number, login))
	if err != nil {
		return "", err
	}
	reviewers := github.ReviewersRequest{Reviewers: []string{login}}
	_, _, err = op.GitHub.PullRequests.RequestReviewers(op.Ctx, r.Owner, r.Name, number, reviewers)
	if client.Invalid(err) != "" {
		return "GitHub does not allow a review request to " + login + " here.", nil
	}
	return "", op.Wrap(err)
}

// Review is a submitted review.
type Review struct {
	state.Review
	Node string
	By   state.Person
	URL  string
}

// Reviews returns the submitted reviews, oldest first. Their states are in lower case, as in webhooks: approved,
// changes_requested, commented, dismissed.
func (f *Forge) Reviews(ctx context.Context, r Repo, number int) ([]Review, error) {
	op, err := f.client.Read(ctx, r.Installation, "read reviews", onIssue(r, number))
	if err != nil {
		return nil, err
	}
	list, err := client.All(func(o github.ListOptions) ([]*github.PullRequestReview, *github.Response, error) {
		return op.GitHub.PullRequests.ListReviews(op.Ctx, r.Owner, r.Name, number, &o)
	})
	if err != nil {
		return nil, op.Wrap(err)
	}
	var out []Review
	for _, v := range list {
		if v.GetState() == "PENDING" {
			continue
		}
		out = append(out, Review{
			Review: state.Review{
				ID: v.GetID(), State: state.ReviewState(strings.ToLower(v.GetState())), Body: v.GetBody(), At: v.GetSubmittedAt().Time, Head: v.GetCommitID(),
			},
			Node: v.GetNodeID(), By: person(v.User), URL: v.GetHTMLURL(),
		})
	}
	return out, nil
}
