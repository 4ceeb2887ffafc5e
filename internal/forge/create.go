package forge

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
)

// CreateIssue creates an issue. Each call creates one: after an unknown outcome, look for the issue with FindIssues.
func (f *Forge) CreateIssue(ctx context.Context, r Repo, title, body string) (Issue, error) {
	op, err := f.client.Write(ctx, r.Installation, "create an issue", "in "+r.FullName())
	if err != nil {
		return Issue{}, err
	}
	got, _, err := op.GitHub.Issues.Create(op.Ctx, r.Owner, r.Name, &github.IssueRequest{Title: &title, Body: &body})
	if err != nil {
		return Issue{}, op.Wrap(err)
	}
	return issueOf(got), nil
}

// FindIssues returns the App's issues, open or closed, that contain a marker and were updated since a time, oldest
// first. It ignores issues of other authors, who can copy a marker.
func (f *Forge) FindIssues(ctx context.Context, r Repo, marker string, since time.Time) ([]Issue, error) {
	self, err := f.Self(ctx)
	if err != nil {
		return nil, err
	}
	op, err := f.client.Read(ctx, r.Installation, "look for our issue", "in "+r.FullName())
	if err != nil {
		return nil, err
	}
	q := url.Values{
		"state": {"all"}, "sort": {"created"}, "direction": {"asc"}, "per_page": {"100"}, "since": {since.UTC().Format(time.RFC3339)},
	}
	var out []Issue
	err = client.Pages(func(page int) (int, error) {
		var list []issueJSON
		q.Set("page", fmt.Sprint(page))
		next, err := op.Get(fmt.Sprintf("repos/%s/%s/issues?%s", r.Owner, r.Name, q.Encode()), &list)
		for i := range list {
			if !list[i].IsPullRequest() && list[i].GetUser().GetID() == self.BotID && strings.Contains(list[i].GetBody(), marker) {
				out = append(out, list[i].issue())
			}
		}
		return next, err
	})
	slices.SortFunc(out, func(a, b Issue) int { return a.Number - b.Number })
	return out, op.Wrap(err)
}
