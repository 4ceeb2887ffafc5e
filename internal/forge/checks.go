package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/ci"
	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/internal/forge/green"
)

// Checks reads the checks of a pull request's head, and which of them are required. If the pull request has another head by now, it
// returns a report of that head without checks. Without the permission to read everything it returns the readable part, and the report
// says that it is incomplete.
func (f *Forge) Checks(ctx context.Context, r Repo, number int, head string) (green.Report, error) {
	op, err := f.client.Read(ctx, r.Installation, "read checks", "of "+head+" "+onIssue(r, number))
	if err != nil {
		return green.Report{}, err
	}
	c := checkReader{op: op, r: r, number: number, head: head}
	c.out.Head = head
	if err := c.readRollup(); err != nil {
		return green.Report{}, op.Wrap(err)
	}
	if c.out.Head != head {
		return green.Report{Head: c.out.Head}, nil
	}
	if c.base == "" { // GraphQL did not answer the question
		if err := c.readLists(); err != nil {
			return green.Report{}, op.Wrap(err)
		}
		return c.out, nil
	}
	err = c.readProtection()
	if err == nil {
		err = c.readRules()
	}
	return c.out, op.Wrap(err)
}

// checkReader reads one report.
type checkReader struct {
	op     *client.Operation
	r      Repo
	number int
	head   string
	base   string // branch; empty until GraphQL has answered
	out    green.Report
}

// incomplete notes why the report may lack a required check.
func (c *checkReader) incomplete(why string) { c.out.Incomplete = cmp.Or(c.out.Incomplete, why) }

const checksQuery = `query($owner: String!, $name: String!, $number: Int!, $head: GitObjectID!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) { headRefOid baseRefName }
    object(oid: $head) {
      __typename
      ... on Commit {
        statusCheckRollup {
          contexts(first: 100, after: $after) {
            totalCount
            pageInfo { hasNextPage endCursor }
            nodes {
              __typename
              ... on CheckRun {
                name status conclusion title url startedAt completedAt isRequired(pullRequestNumber: $number)
                checkSuite { id createdAt app { databaseId } workflowRun { event workflow { id } } }
              }
              ... on StatusContext { context state description targetUrl createdAt isRequired(pullRequestNumber: $number) }
            }
          }
        }
      }
    }
  }
}`

// checkNode is a CheckRun or a StatusContext.
type checkNode struct {
	Type       string `json:"__typename"`
	IsRequired bool   `json:"isRequired"`

	Name        string    `json:"name"`
	Status      string    `json:"status"`
	Conclusion  string    `json:"conclusion"`
	Title       string    `json:"title"`
	URL         string    `json:"url"`
	StartedAt   time.Time `json:"startedAt"`
	CompletedAt time.Time `json:"completedAt"`
	CheckSuite  struct {
		ID        string    `json:"id"`
		CreatedAt time.Time `json:"createdAt"`
		App       struct {
			DatabaseID int64 `json:"databaseId"`
		} `json:"app"`
		WorkflowRun struct {
			Event    string `json:"event"`
			Workflow struct {
				ID string `json:"id"`
			} `json:"workflow"`
		} `json:"workflowRun"`
	} `json:"checkSuite"`

	Context     string    `json:"context"`
	State       string    `json:"state"`
	Description string    `json:"description"`
	TargetURL   string    `json:"targetUrl"`
	CreatedAt   time.Time `json:"createdAt"`
}

// check returns the node as a check. A check run belongs to its workflow, or to its suite if it has none or GitHub hides it.
func (n *checkNode) check() green.Check {
	if n.Type == "StatusContext" {
		c := ci.Status(n.Context, n.State, n.CreatedAt)
		c.URL, c.Summary, c.Required = n.TargetURL, n.Description, n.IsRequired
		return c
	}
	c := ci.Run(n.Name, n.Status, n.Conclusion)
	c.App, c.Required, c.URL, c.Summary = n.CheckSuite.App.DatabaseID, n.IsRequired, n.URL, n.Title
	c.ID, c.Event = runID(n.URL), n.CheckSuite.WorkflowRun.Event
	c.Group = cmp.Or(n.CheckSuite.WorkflowRun.Workflow.ID, n.CheckSuite.ID)
	c.Started, c.Changed = n.StartedAt, ci.Latest(n.CheckSuite.CreatedAt, n.StartedAt, n.CompletedAt)
	return c
}

// runID returns the ID of a check run from the address of its page, 0 if it cannot be read: GraphQL has no other ID that all servers
// know and that fits.
func runID(page string) int64 {
	page, _, _ = strings.Cut(page, "?")
	id, err := strconv.ParseInt(page[strings.LastIndexByte(page, '/')+1:], 10, 64)
	if err != nil {
		return 0
	}
	return id
}

type checksAnswer struct {
	Repository struct {
		PullRequest struct {
			HeadRefOid  string `json:"headRefOid"`
			BaseRefName string `json:"baseRefName"`
		} `json:"pullRequest"`
		Object *struct {
			Rollup *struct {
				Contexts struct {
					TotalCount int          `json:"totalCount"`
					PageInfo   pageInfo     `json:"pageInfo"`
					Nodes      []*checkNode `json:"nodes"`
				} `json:"contexts"`
			} `json:"statusCheckRollup"`
		} `json:"object"`
	} `json:"repository"`
}

// readRollup reads all pages of the checks by GraphQL. It stops at a page on which the pull request has another head. The base stays empty
// if GitHub does not answer the question.
func (c *checkReader) readRollup() error {
	vars := map[string]any{"owner": c.r.Owner, "name": c.r.Name, "number": c.number, "head": c.head, "after": (*string)(nil)}
	var base string
	for range client.MaxPages {
		var data checksAnswer
		answered, err := c.askRollup(vars, &data)
		if err != nil || !answered {
			return err
		}
		pull := data.Repository.PullRequest
		changed := base != "" && base != pull.BaseRefName
		if c.out.Head, base = pull.HeadRefOid, pull.BaseRefName; c.out.Head != c.head {
			return nil
		}
		if data.Repository.Object == nil || data.Repository.Object.Rollup == nil {
			break
		}
		page := data.Repository.Object.Rollup.Contexts
		if changed || len(c.out.Checks) > 0 && page.TotalCount != c.out.Total { // pages may overlap, and hide a check
			c.incomplete("the checks or the base branch changed while errand read them")
		}
		c.out.Total = max(c.out.Total, page.TotalCount)
		for _, n := range page.Nodes {
			if n != nil {
				c.out.Checks = append(c.out.Checks, n.check())
			}
		}
		if !page.PageInfo.HasNextPage {
			break
		}
		vars["after"] = page.PageInfo.EndCursor
	}
	c.base = base
	return nil
}

// askRollup asks for one page. It reports false if the App may not read any checks this way, or if an old server does not know the question.
func (c *checkReader) askRollup(vars map[string]any, data *checksAnswer) (answered bool, err error) {
	err = c.op.GraphQL(checksQuery, vars, data)
	var g *client.GraphQLError
	if err == nil || !errors.As(err, &g) {
		return err == nil, err
	}
	answered = true
	for _, p := range g.Problems {
		path := fmt.Sprint(p.Path...)
		switch {
		case strings.Contains(p.Message, "doesn't exist on type"):
			c.incomplete("this GitHub does not say which checks are required")
			answered = false
		case p.Type != "FORBIDDEN":
			return false, err
		case strings.Contains(path, "workflowRun"): // suites tell the checks apart, too
		case strings.Contains(path, "statusCheckRollup"):
			c.incomplete("GitHub does not let errand read all checks, for which the App needs the permissions checks: read and statuses: read")
			answered = answered && strings.Contains(path, "nodes")
		default:
			return false, err
		}
	}
	return answered, nil
}

func (c *checkReader) require(q green.Requirement) {
	if !slices.Contains(c.out.Required, q) {
		c.out.Required = append(c.out.Required, q)
	}
}

// protectedBranch is a branch, with its protection as everybody sees it who may read the repository's files.
type protectedBranch struct {
	Protected  bool `json:"protected"`
	Protection struct {
		Required *struct {
			Contexts []string `json:"contexts"`
			Checks   []struct {
				Context string `json:"context"`
				App     int64  `json:"app_id"`
			} `json:"checks"`
		} `json:"required_status_checks"`
	} `json:"protection"`
}

// readProtection reads the names of checks that the protection of the base branch requires, and of which App.
func (c *checkReader) readProtection() error {
	var b protectedBranch
	_, err := c.op.Get(fmt.Sprintf("repos/%s/%s/branches/%s", c.r.Owner, c.r.Name, url.PathEscape(c.base)), &b)
	switch required := b.Protection.Required; {
	case client.StatusOf(err) == 404, client.NotGranted(err):
		c.incomplete("GitHub does not let errand read the protection of the base branch")
		return nil
	case err != nil:
		return err
	case required == nil && b.Protected:
		c.incomplete("GitHub does not say which checks the protection of the base branch requires")
	case required != nil:
		named := map[string]bool{}
		for _, k := range required.Checks {
			named[k.Context] = true
			c.require(green.Requirement{Name: k.Context, App: max(0, k.App)})
		}
		for _, name := range required.Contexts {
			if !named[name] { // an old server
				c.require(green.Requirement{Name: name})
			}
		}
	}
	return nil
}

// branchRule is a rule that applies to a branch, as far as it is about checks.
type branchRule struct {
	Type       string `json:"type"`
	Parameters struct {
		Checks []struct {
			Context string `json:"context"`
			App     int64  `json:"integration_id"`
		} `json:"required_status_checks"`
		Workflows []struct {
			Path       string `json:"path"`
			Repository int64  `json:"repository_id"`
		} `json:"workflows"`
	} `json:"parameters"`
}

// readRules reads the names of checks that rulesets require on the base branch. An Enterprise Server before 3.11 has no rulesets, and
// neither have private repositories in GitHub's free plan.
func (c *checkReader) readRules() error {
	workflows := map[string]bool{}
	err := client.Pages(func(page int) (int, error) {
		var rules []branchRule
		path := fmt.Sprintf("repos/%s/%s/rules/branches/%s?per_page=100&page=%d", c.r.Owner, c.r.Name, url.PathEscape(c.base), page)
		next, err := c.op.Get(path, &rules)
		for _, rule := range rules {
			if rule.Type == "workflows" {
				for _, w := range rule.Parameters.Workflows {
					workflows[fmt.Sprint(w.Repository, w.Path)] = true
				}
				c.out.Workflows = max(1, len(workflows))
			}
			if rule.Type != "required_status_checks" {
				continue
			}
			for _, k := range rule.Parameters.Checks {
				c.require(green.Requirement{Name: k.Context, App: max(0, k.App)})
			}
		}
		return next, err
	})
	switch status := client.StatusOf(err); {
	case status == 404, status == 403 && isPlanTooSmall(err):
		return nil
	case client.NotGranted(err):
		c.incomplete("GitHub does not let errand read the rules of the base branch")
		return nil
	}
	return err
}

// isPlanTooSmall reports whether GitHub refused a call because the repository's plan does not have the feature.
func isPlanTooSmall(err error) bool {
	var r *github.ErrorResponse
	return errors.As(err, &r) && strings.HasPrefix(r.Message, "Upgrade to GitHub")
}

// readLists reads the check runs and statuses by REST, which says neither what is required nor to which workflow a check belongs.
func (c *checkReader) readLists() error {
	list, err := ci.List(c.op, c.r, c.head)
	c.out.Checks = append(c.out.Checks, list...)
	c.out.Total = len(c.out.Checks)
	return err
}
