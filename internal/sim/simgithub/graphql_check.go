package simgithub

import (
	"slices"
	"strings"

	"github.com/graph-gophers/graphql-go"
)

// StatusCheckRollup has all checks of the commit; null if there are none.
func (c *commitR) StatusCheckRollup() (*rollupR, error) {
	if err := c.x.need(c.r, "checks", "read", RoleRead); err != nil {
		return nil, err
	}
	var list []*contextR
	for _, k := range c.r.CheckRuns { // also those that a newer run replaces, as on GitHub
		if k.HeadSHA == c.c.SHA {
			list = append(list, &contextR{run: &checkRunR{c.x, c.r, k}})
		}
	}
	_, statuses := c.r.CombinedStatus(c.c.SHA)
	for _, k := range statuses {
		list = append(list, &contextR{status: &statusR{c.x, c.r, k}})
	}
	if len(list) == 0 {
		return nil, nil
	}
	return &rollupR{c, list}, nil
}

type rollupR struct {
	c    *commitR
	list []*contextR
}

// Contexts lists check runs and statuses. Statuses are null without the permission to read them.
func (r *rollupR) Contexts(a paging) (*connection[contextR], error) {
	page, err := connect(r.list, a)
	if err != nil {
		return nil, err
	}
	page.list = slices.Clone(page.list)
	for n, k := range page.list {
		if k.status == nil {
			continue
		}
		if err := r.c.x.need(r.c.r, "statuses", "read", RoleRead); err != nil {
			page.list[n] = nil
			r.c.x.note(err, "repository", "object", "statusCheckRollup", "contexts", "nodes", n)
		}
	}
	return page, nil
}

// contextR is a check run or a status.
type contextR struct {
	run    *checkRunR
	status *statusR
}

// ToCheckRun narrows a context.
func (k *contextR) ToCheckRun() (*checkRunR, bool) { return k.run, k.run != nil }

// ToStatusContext narrows a context.
func (k *contextR) ToStatusContext() (*statusR, bool) { return k.status, k.status != nil }

// requiredArgs name a pull request.
type requiredArgs struct {
	PullRequestID     *graphql.ID
	PullRequestNumber *int32
}

// isRequired reports whether the pull request's base requires a check.
func (a requiredArgs) isRequired(r *Repo, context string, app int64) (bool, error) {
	if a.PullRequestNumber == nil {
		return false, errUnprocessable("The simulator needs pullRequestNumber.")
	}
	i := r.Issues[int(*a.PullRequestNumber)]
	if i == nil || i.Pull == nil {
		return false, errNotFound()
	}
	return r.requires(i.Pull.Base, context, app), nil
}

type checkRunR struct {
	x *request
	r *Repo
	k *CheckRun
}

// Name is the check's name.
func (c *checkRunR) Name() string { return c.k.Name }

// Status is QUEUED, IN_PROGRESS or COMPLETED.
func (c *checkRunR) Status() string { return strings.ToUpper(c.k.Status) }

// Conclusion is null until it is completed.
func (c *checkRunR) Conclusion() *string { return nullable(strings.ToUpper(c.k.Conclusion)) }

// Title is that of the output.
func (c *checkRunR) Title() *string { return nullable(c.k.Title) }

// URL is the page.
func (c *checkRunR) URL() word { return word(c.x.s.json.html("/%s/runs/%d", c.r.FullName(), c.k.ID)) }

// StartedAt is the time at which it began.
func (c *checkRunR) StartedAt() *dateTime { return when(c.k.StartedAt) }

// CompletedAt is null until it is completed.
func (c *checkRunR) CompletedAt() *dateTime { return when(c.k.CompletedAt) }

// IsRequired reports whether a pull request needs it.
func (c *checkRunR) IsRequired(a requiredArgs) (bool, error) {
	return a.isRequired(c.r, c.k.Name, c.x.s.appOf(c.k))
}

// CheckSuite is the suite that it belongs to.
func (c *checkRunR) CheckSuite() *suiteR {
	n := slices.IndexFunc(c.r.CheckSuites, func(s *CheckSuite) bool { return s.ID == c.k.SuiteID })
	return &suiteR{c, c.r.CheckSuites[n]}
}

type suiteR struct {
	c *checkRunR
	s *CheckSuite
}

// ID is the node id.
func (s *suiteR) ID() graphql.ID { return graphql.ID(s.s.NodeID) }

// WorkflowRun is null if the suite is not of GitHub Actions.
func (s *suiteR) WorkflowRun() (*workflowRunR, error) {
	if s.s.Workflow == "" {
		return nil, nil
	}
	if err := s.c.x.need(s.c.r, "actions", "read", RoleRead); err != nil {
		return nil, err
	}
	return &workflowRunR{s.s.Workflow}, nil
}

type workflowRunR struct{ file string }

// Event is what started it: the simulator's CI reacts to pull requests.
func (w *workflowRunR) Event() string { return "pull_request" }

// Workflow is the workflow of the run.
func (w *workflowRunR) Workflow() *workflowRunR { return w }

// ID is the node id of the workflow.
func (w *workflowRunR) ID() graphql.ID { return graphql.ID("W_" + w.file) }

// CreatedAt is the time of its creation.
func (s *suiteR) CreatedAt() dateTime { return dateTime{s.s.CreatedAt} }

// App is the App that reports its runs.
func (s *suiteR) App() *checkAppR { return &checkAppR{s.c.x.s.suiteApp(s.s)} }

type checkAppR struct{ id int64 }

// DatabaseId is the numeric id.
func (a *checkAppR) DatabaseId() *int32 { return i32(a.id) } //nolint:revive // named by the schema

type statusR struct {
	x *request
	r *Repo
	k *Status
}

// Context is the status's name.
func (s *statusR) Context() string { return s.k.Context }

// State is its state.
func (s *statusR) State() string { return strings.ToUpper(s.k.State) }

// Description is null if it is empty.
func (s *statusR) Description() *string { return nullable(s.k.Description) }

// TargetURL is null if it is empty.
func (s *statusR) TargetURL() *word {
	if s.k.TargetURL == "" {
		return nil
	}
	w := word(s.k.TargetURL)
	return &w
}

// CreatedAt is the time of the report.
func (s *statusR) CreatedAt() dateTime { return dateTime{s.k.CreatedAt} }

// IsRequired reports whether a pull request needs it.
func (s *statusR) IsRequired(a requiredArgs) (bool, error) {
	return a.isRequired(s.r, s.k.Context, 0)
}
