package forge

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"
)

// CreateIssue opens an issue. Calling it twice makes two: look with FindIssues first when the outcome of the
// first is not known.
func (f *Forge) CreateIssue(ctx context.Context, r Repo, title, body string) (Issue, error) {
	u, err := f.writes(ctx, r.Installation, "create an issue", "in "+r.FullName())
	if err != nil {
		return Issue{}, err
	}
	got, _, err := u.client.Issues.Create(u.ctx, r.Owner, r.Name, &github.IssueRequest{Title: &title, Body: &body})
	if err != nil {
		return Issue{}, u.wrap(err)
	}
	return issueState(got), nil
}

// FindIssues lists our issues, open or closed, that hold the hidden marker and were changed since then, oldest
// first. Anybody can copy a marker, so only issues by our bot count.
func (f *Forge) FindIssues(ctx context.Context, r Repo, marker string, since time.Time) ([]Issue, error) {
	self, err := f.Self(ctx)
	if err != nil {
		return nil, err
	}
	u, err := f.reads(ctx, r.Installation, "look for our issue", "in "+r.FullName())
	if err != nil {
		return nil, err
	}
	q := url.Values{"state": {"all"}, "sort": {"created"}, "direction": {"asc"}, "per_page": {"100"}, "since": {since.UTC().Format(time.RFC3339)}}
	var out []Issue
	err = pages(func(page int) (int, error) {
		var list []issueJSON
		q.Set("page", fmt.Sprint(page))
		next, err := u.get(fmt.Sprintf("repos/%s/%s/issues?%s", r.Owner, r.Name, q.Encode()), &list)
		for i := range list {
			if !list[i].IsPullRequest() && list[i].GetUser().GetID() == self.BotID && strings.Contains(list[i].GetBody(), marker) {
				out = append(out, list[i].issue())
			}
		}
		return next, err
	})
	slices.SortFunc(out, func(a, b Issue) int { return a.Number - b.Number })
	return out, u.wrap(err)
}

const pullTextQuery = `query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      id url body createdAt lastEditedAt author ` + actorFields + ` editor ` + actorFields + `
      reactions(content: THUMBS_UP, first: 20, orderBy: {field: CREATED_AT, direction: DESC}) ` + reactionFields + `
      comments(first: 100) ` + commentPageFields + `
    }
  }
}`

// PullText reads a pull request's own text and the first hundred comments of its conversation, with all that decides
// whether they may be believed. Reviews are not among them.
func (f *Forge) PullText(ctx context.Context, r Repo, number int) (text CommentView, comments []CommentView, err error) {
	u, err := f.reads(ctx, r.Installation, "read a pull request's text", about(r, number))
	if err != nil {
		return CommentView{}, nil, err
	}
	var data struct {
		Repository *struct {
			Pull *outsetIssue `json:"pullRequest"`
		} `json:"repository"`
	}
	if err := f.graphql(u, pullTextQuery, map[string]any{"owner": r.Owner, "name": r.Name, "number": number}, &data); err != nil {
		return CommentView{}, nil, u.wrap(err)
	}
	if data.Repository == nil || data.Repository.Pull == nil {
		return CommentView{}, nil, u.gone()
	}
	data.Repository.Pull.Comments.PageInfo.HasNextPage = false
	var out Outset
	err = f.discussion(u, data.Repository.Pull, &out)
	return out.Text, out.Comments, u.wrap(err)
}
