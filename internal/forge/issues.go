package forge

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/state"
)

// Issue is an issue, or a pull request as an issue.
type Issue struct {
	state.Issue
	Number      int
	URL         string
	Assignees   []state.Person
	IsPR        bool
	Locked      bool
	NoRelations bool // it has neither dependencies nor sub-issues; false if GitHub does not say
	CreatedAt   time.Time
	UpdatedAt   time.Time // also changed by comments
	ClosedAt    time.Time
}

func issueOf(i *github.Issue) Issue {
	out := Issue{
		Issue: state.Issue{
			Node: i.GetNodeID(), Title: i.GetTitle(), Body: i.GetBody(), Author: person(i.User),
			Milestone: i.GetMilestone().GetTitle(), Closed: i.GetState() == "closed",
		},
		Number: i.GetNumber(), URL: i.GetHTMLURL(), IsPR: i.IsPullRequest(), Locked: i.GetLocked(),
		CreatedAt: i.GetCreatedAt().Time, UpdatedAt: i.GetUpdatedAt().Time, ClosedAt: i.GetClosedAt().Time,
	}
	for _, l := range i.Labels {
		out.Labels = append(out.Labels, l.GetName())
	}
	for _, a := range i.Assignees {
		out.Assignees = append(out.Assignees, person(a))
	}
	return out
}

// issueJSON is an issue with fields that go-github lacks.
type issueJSON struct {
	github.Issue
	Type *struct {
		Name string `json:"name"`
	} `json:"type"`
	Dependencies *struct {
		BlockedBy int `json:"total_blocked_by"`
	} `json:"issue_dependencies_summary"`
	SubIssues *struct {
		Total int `json:"total"`
	} `json:"sub_issues_summary"`
}

func (i *issueJSON) issue() Issue {
	out := issueOf(&i.Issue)
	if i.Type != nil {
		out.Type = i.Type.Name
	}
	out.NoRelations = i.Dependencies != nil && i.Dependencies.BlockedBy == 0 && i.SubIssues != nil && i.SubIssues.Total == 0
	return out
}

// Issue reads an issue.
func (f *Forge) Issue(ctx context.Context, r Repo, number int) (Issue, error) {
	op, err := f.client.Read(ctx, r.Installation, "read issue", fmt.Sprintf("%s#%d", r.FullName(), number))
	if err != nil {
		return Issue{}, err
	}
	var got issueJSON
	if _, err := op.Get(fmt.Sprintf("repos/%s/%s/issues/%d", r.Owner, r.Name, number), &got); err != nil {
		return Issue{}, op.Wrap(err)
	}
	return got.issue(), nil
}

// IssueState reports whether an issue of any repository is open. It returns ErrNotFound if the installation cannot see
// the repository.
func (f *Forge) IssueState(ctx context.Context, installation int64, owner, name string, number int) (open bool, err error) {
	i, err := f.Issue(ctx, Repo{Installation: installation, Owner: owner, Name: name}, number)
	return err == nil && !i.Closed, err
}

// IssueFilter selects issues. All fields that are set must match.
type IssueFilter struct {
	Label    string
	Assignee string    // a login
	Since    time.Time // changed at that time or later
}

// OpenIssuesFor returns the open issues, but no pull requests, that match a filter, oldest first.
func (f *Forge) OpenIssuesFor(ctx context.Context, r Repo, want IssueFilter) ([]Issue, error) {
	op, err := f.client.Read(ctx, r.Installation, "list issues", "of "+r.FullName())
	if err != nil {
		return nil, err
	}
	q := url.Values{"state": {"open"}, "sort": {"created"}, "direction": {"asc"}, "per_page": {"100"}}
	if want.Label != "" {
		q.Set("labels", want.Label)
	}
	if want.Assignee != "" {
		q.Set("assignee", want.Assignee)
	}
	if !want.Since.IsZero() {
		q.Set("since", want.Since.UTC().Format(time.RFC3339))
	}
	var out []Issue
	err = client.Pages(func(page int) (int, error) {
		var list []issueJSON
		q.Set("page", fmt.Sprint(page))
		next, err := op.Get(fmt.Sprintf("repos/%s/%s/issues?%s", r.Owner, r.Name, q.Encode()), &list)
		for _, i := range list {
			if !i.IsPullRequest() {
				out = append(out, i.issue())
			}
		}
		return next, err
	})
	return out, op.Wrap(err)
}

// IssueActor returns who triggered the newest event of a kind on an issue, and when. The kind is "assigned", with a
// login as subject, or "labeled", with a label. It returns ErrNotFound if there is no such event.
func (f *Forge) IssueActor(ctx context.Context, r Repo, number int, what, subject string) (state.Person, time.Time, error) {
	op, err := f.client.Read(ctx, r.Installation, "read events", onIssue(r, number))
	if err != nil {
		return state.Person{}, time.Time{}, err
	}
	list, err := client.All(func(o github.ListOptions) ([]*github.IssueEvent, *github.Response, error) {
		return op.GitHub.Issues.ListIssueEvents(op.Ctx, r.Owner, r.Name, number, &o)
	})
	if err != nil {
		return state.Person{}, time.Time{}, op.Wrap(err)
	}
	var newest *github.IssueEvent
	for _, e := range list {
		about := e.GetAssignee().GetLogin()
		if e.Label != nil {
			about = e.GetLabel().GetName()
		}
		if e.GetEvent() == what && strings.EqualFold(about, subject) &&
			(newest == nil || !e.GetCreatedAt().Before(newest.GetCreatedAt().Time)) {
			newest = e
		}
	}
	if newest == nil {
		return state.Person{}, time.Time{}, op.Deleted()
	}
	by := newest.Actor
	if newest.Assigner != nil {
		by = newest.Assigner
	}
	return person(by), newest.GetCreatedAt().Time, nil
}

// Blocker is an issue that must be closed before work on another one begins.
type Blocker struct {
	Owner  string
	Name   string
	Number int
	Title  string
	Open   bool
	Via    string // dependency or sub-issue
}

// String returns OWNER/NAME#N.
func (b Blocker) String() string { return fmt.Sprintf("%s/%s#%d", b.Owner, b.Name, b.Number) }

// Blockers returns the dependencies ("blocked by") and the sub-issues of an issue, open and closed. It returns none if
// the version of GitHub does not support them.
func (f *Forge) Blockers(ctx context.Context, r Repo, number int) ([]Blocker, error) {
	op, err := f.client.Read(ctx, r.Installation, "read dependencies", onIssue(r, number))
	if err != nil {
		return nil, err
	}
	var out []Blocker
	for _, kind := range []struct{ path, via string }{{"dependencies/blocked_by", "dependency"}, {"sub_issues", "sub-issue"}} {
		base := fmt.Sprintf("repos/%s/%s/issues/%d/%s", r.Owner, r.Name, number, kind.path)
		err := client.Pages(func(page int) (int, error) {
			var list []issueJSON
			next, err := op.Get(fmt.Sprintf("%s?per_page=100&page=%d", base, page), &list)
			for _, i := range list {
				out = append(out, blocker(r, &i, kind.via))
			}
			return next, err
		})
		if err := op.Wrap(err); err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	return out, nil
}

func blocker(r Repo, i *issueJSON, via string) Blocker {
	b := Blocker{Owner: r.Owner, Name: r.Name, Number: i.GetNumber(), Title: i.GetTitle(), Open: i.GetState() == "open", Via: via}
	if owner, name, ok := ownerAndName(i.GetRepositoryURL()); ok {
		b.Owner, b.Name = owner, name
	}
	return b
}

// ownerAndName parses an address that ends in /repos/OWNER/NAME.
func ownerAndName(address string) (owner, name string, ok bool) {
	_, full, ok := strings.Cut(address, "/repos/")
	if !ok {
		return "", "", false
	}
	owner, name, ok = strings.Cut(full, "/")
	return owner, name, ok && owner != "" && name != ""
}
