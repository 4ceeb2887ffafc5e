package simgithub

import (
	"cmp"
	"slices"
	"strings"
)

func issueRoutes() []route {
	const issues = "/repos/{owner}/{repo}/issues"
	return []route{
		{"GET", issues, listIssues},
		{"POST", issues, createIssue},
		{"GET", issues + "/{number}", getIssue},
		{"PATCH", issues + "/{number}", patchIssue},
		{"GET", issues + "/{number}/events", listEvents},
		{"GET", issues + "/{number}/timeline", listTimeline},
		{"PUT", issues + "/{number}/lock", lockIssue},
		{"DELETE", issues + "/{number}/lock", unlockIssue},
	}
}

// name is a value that may be sent as a string or as an object with a name.
type name string

// UnmarshalJSON accepts "x" and {"name":"x"}.
func (n *name) UnmarshalJSON(b []byte) error {
	var o struct{ Name string }
	if len(b) > 0 && b[0] == '{' {
		err := unmarshal(b, &o)
		*n = name(o.Name)
		return err
	}
	return unmarshal(b, (*string)(n))
}

func plain(list []name) []string {
	out := make([]string, 0, len(list))
	for _, n := range list {
		out = append(out, string(n))
	}
	return out
}

// issueRequest is a request that creates or changes an issue.
type issueRequest struct {
	Title       *string   `json:"title"`
	Body        *string   `json:"body"`
	State       *string   `json:"state"`
	StateReason *string   `json:"state_reason"`
	Labels      *[]name   `json:"labels"`
	Assignees   *[]string `json:"assignees"`
	Assignee    *string   `json:"assignee"`
	Type        *string   `json:"type"`
}

func listIssues(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	if err := c.need(r, "issues", "read", RoleRead); err != nil {
		return nil, err
	}
	var list []*Issue
	for _, i := range r.IssuesByNumber() {
		if c.s.listed(i.ID) && c.wants(i) {
			list = append(list, i)
		}
	}
	sortIssues(list, c.query("sort"), c.query("direction"))
	return each(page(c, list), c.s.json.issue), nil
}

// wants reports whether an issue matches the filters of a list request.
func (c *call) wants(i *Issue) bool {
	state := cmp.Or(c.query("state"), "open")
	if state != "all" && i.State != state {
		return false
	}
	for l := range strings.SplitSeq(c.query("labels"), ",") {
		if l != "" && !slices.ContainsFunc(i.Labels, func(h string) bool { return strings.EqualFold(h, strings.TrimSpace(l)) }) {
			return false
		}
	}
	switch a := c.query("assignee"); a {
	case "":
	case "none":
		if len(i.Assignees) > 0 {
			return false
		}
	case "*":
		if len(i.Assignees) == 0 {
			return false
		}
	default:
		if !slices.Contains(i.Assignees, a) {
			return false
		}
	}
	if creator := c.query("creator"); creator != "" && creator != i.Author {
		return false
	}
	since := c.queryTime("since")
	return since.IsZero() || !i.UpdatedAt.Before(since)
}

func sortIssues(list []*Issue, by, direction string) {
	slices.SortStableFunc(list, func(a, b *Issue) int {
		order := 0
		switch by {
		case "updated":
			order = a.UpdatedAt.Compare(b.UpdatedAt)
		case "comments":
			order = len(a.Comments) - len(b.Comments)
		}
		order = cmp.Or(order, a.Number-b.Number)
		if direction != "asc" {
			return -order
		}
		return order
	})
}

func createIssue(c *call) (any, error) {
	var req issueRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	var in NewIssue
	in.Title, in.Body, in.Type = deref(req.Title), deref(req.Body), deref(req.Type)
	if req.Labels != nil {
		in.Labels = plain(*req.Labels)
	}
	if req.Assignees != nil {
		in.Assignees = *req.Assignees
	}
	if req.Assignee != nil {
		in.Assignees = append(in.Assignees, *req.Assignee)
	}
	i, err := c.openIssue(c.full(), in)
	if err != nil {
		return nil, err
	}
	return c.created(c.s.json.fullIssue(i))
}

func deref(v *string) string {
	if v == nil {
		return ""
	}
	return *v
}

func getIssue(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	return c.s.json.fullIssue(i), nil
}

func patchIssue(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	var req issueRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	in := IssueEdit{
		Title: req.Title, Body: req.Body, State: req.State, StateReason: req.StateReason, Assignees: req.Assignees, Type: req.Type,
	}
	if req.Labels != nil {
		labels := plain(*req.Labels)
		in.Labels = &labels
	}
	if err := c.editIssue(i, in); err != nil {
		return nil, err
	}
	return c.s.json.fullIssue(i), nil
}
