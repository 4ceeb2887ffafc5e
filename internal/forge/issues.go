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

// issueJSON is an issue with what go-github does not know of it yet.
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

// Issue reads an issue as it is now.
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

// IssueState reports whether an issue is open, wherever it is, as seen with an installation's eyes.
// A private one of somebody else is ErrNotFound.
func (f *Forge) IssueState(ctx context.Context, installation int64, owner, name string, number int) (open bool, err error) {
	i, err := f.Issue(ctx, Repo{Installation: installation, Owner: owner, Name: name}, number)
	return err == nil && !i.Closed, err
}

// IssueFilter picks issues. Label and Assignee may both be given; then both must match.
type IssueFilter struct {
	Label    string
	Assignee string // a login
}

// OpenIssuesFor lists the open issues (no pull requests) that match, oldest first.
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

// IssueActor finds who assigned (what "assigned", subject a login) or labelled (what "labeled",
// subject a label) the issue, and when: the newest such event. Without one it is ErrNotFound.
func (f *Forge) IssueActor(ctx context.Context, r Repo, number int, what, subject string) (state.Person, time.Time, error) {
	op, err := f.client.Read(ctx, r.Installation, "read events", about(r, number))
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

// Blocker is an issue that has to be closed before another can be worked on.
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

// Blockers lists an issue's dependencies ("blocked by") and its sub-issues, open and closed ones. A
// GitHub that knows no such things answers with none.
func (f *Forge) Blockers(ctx context.Context, r Repo, number int) ([]Blocker, error) {
	op, err := f.client.Read(ctx, r.Installation, "read dependencies", about(r, number))
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

// ownerAndName reads the end of …/repos/OWNER/NAME.
func ownerAndName(address string) (owner, name string, ok bool) {
	_, full, ok := strings.Cut(address, "/repos/")
	if !ok {
		return "", "", false
	}
	owner, name, ok = strings.Cut(full, "/")
	return owner, name, ok && owner != "" && name != ""
}

// Issue is an issue, or the issue side of a pull request.
type Issue struct {
	state.Issue
	Number      int
	URL         string
	Assignees   []state.Person
	IsPR        bool
	Locked      bool
	NoRelations bool // GitHub says that it has neither dependencies nor sub-issues; false if it does not say
	CreatedAt   time.Time
	UpdatedAt   time.Time // also by a comment
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
