package forge

import (
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/state"
)

// LinkedPR is a pull request that mentions an issue or will close it.
type LinkedPR struct {
	Repo   string // OWNER/NAME
	Number int
	Title  string
	URL    string
	By     state.Person
	Open   bool
	Merged bool
	Closes bool // its merge closes the issue
}

const closingQuery = `query($id: ID!, $after: String) {
  node(id: $id) {
    __typename
    ... on Issue {
      closedByPullRequestsReferences(first: 100, after: $after, includeClosedPrs: true) {
        pageInfo { hasNextPage endCursor }
        nodes ` + linkedFields + `
      }
    }
  }
}`

type closingPage struct {
	PageInfo pageInfo     `json:"pageInfo"`
	Nodes    []linkedNode `json:"nodes"`
}

// linkedNode is a pull request with linkedFields.
type linkedNode struct {
	Number     int    `json:"number"`
	Title      string `json:"title"`
	URL        string `json:"url"`
	State      string `json:"state"`
	Merged     bool   `json:"merged"`
	Author     *actor `json:"author"`
	Repository struct {
		NameWithOwner string `json:"nameWithOwner"`
	} `json:"repository"`
}

func (n *linkedNode) pr() LinkedPR {
	return LinkedPR{
		Repo: n.Repository.NameWithOwner, Number: n.Number, Title: n.Title, URL: n.URL, By: n.Author.Person(),
		Open: n.State == "OPEN", Merged: n.Merged,
	}
}

// prs returns the pull requests of a page, which all close the issue.
func (p closingPage) prs() (out []LinkedPR) {
	for i := range p.Nodes {
		pr := p.Nodes[i].pr()
		pr.Closes = true
		out = append(out, pr)
	}
	return out
}

// closingPRs returns the pull requests that close an issue.
func closingPRs(op *client.Operation, node string) ([]LinkedPR, error) {
	var out []LinkedPR
	var after *string
	for range client.MaxPages {
		var data struct {
			Node *struct {
				References closingPage `json:"closedByPullRequestsReferences"`
			} `json:"node"`
		}
		if err := op.GraphQL(closingQuery, map[string]any{"id": node, "after": after}, &data); err != nil {
			return nil, err
		}
		if data.Node == nil {
			break
		}
		out = append(out, data.Node.References.prs()...)
		if !data.Node.References.PageInfo.HasNextPage {
			break
		}
		after = &data.Node.References.PageInfo.EndCursor
	}
	return out, nil
}

// mentioningPRs returns the pull requests that mention an issue, from its timeline.
func mentioningPRs(op *client.Operation, r Repo, number int) ([]LinkedPR, error) {
	list, err := client.All(func(o github.ListOptions) ([]*github.Timeline, *github.Response, error) {
		return op.GitHub.Issues.ListIssueTimeline(op.Ctx, r.Owner, r.Name, number, &o)
	})
	var out []LinkedPR
	for _, e := range list {
		i := e.GetSource().GetIssue()
		if e.GetEvent() != "cross-referenced" || i == nil || !i.IsPullRequest() {
			continue
		}
		p := LinkedPR{
			Repo: r.FullName(), Number: i.GetNumber(), Title: i.GetTitle(), URL: i.GetHTMLURL(), By: person(i.User),
			Open: i.GetState() == "open", Merged: i.GetPullRequestLinks().MergedAt != nil,
		}
		if full := i.GetRepository().GetFullName(); full != "" {
			p.Repo = full
		} else if owner, name, ok := ownerAndName(i.GetRepositoryURL()); ok {
			p.Repo = owner + "/" + name
		}
		out = append(out, p)
	}
	return out, err
}
