package simgithub

import (
	"encoding/json"
	"strings"
)

func labelRoutes() []route {
	const issue = "/repos/{owner}/{repo}/issues/{number}"
	return []route{
		{"GET", "/repos/{owner}/{repo}/labels", listRepoLabels},
		{"POST", "/repos/{owner}/{repo}/labels", createLabel},
		{"GET", "/repos/{owner}/{repo}/labels/{name}", getLabel},
		{"GET", issue + "/labels", listLabels},
		{"POST", issue + "/labels", addLabels},
		{"PUT", issue + "/labels", putLabels},
		{"DELETE", issue + "/labels/{name}", deleteLabel},
		{"POST", issue + "/assignees", changeAssignees((*session).assign, 201)},
		{"DELETE", issue + "/assignees", changeAssignees((*session).unassign, 200)},
	}
}

func listRepoLabels(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	return each(page(c, r.Labels), func(l Label) obj { return c.s.json.label(r, l.Name) }), nil
}

func getLabel(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	for _, l := range r.Labels {
		if strings.EqualFold(l.Name, c.vars["name"]) {
			return c.s.json.label(r, l.Name), nil
		}
	}
	return nil, errNotFound()
}

func createLabel(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	if err := c.need(r, "issues|pull_requests", "write", RoleWrite); err != nil {
		return nil, err
	}
	var req struct{ Name, Color, Description string }
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if strings.TrimSpace(req.Name) == "" {
		return nil, errInvalid("Label", "name", "missing_field")
	}
	for _, l := range r.Labels {
		if strings.EqualFold(l.Name, req.Name) {
			return nil, errInvalid("Label", "name", "already_exists")
		}
	}
	c.label(r, req.Name)
	l := &r.Labels[len(r.Labels)-1]
	l.Description = req.Description
	if req.Color != "" {
		l.Color = req.Color
	}
	return c.created(c.s.json.label(r, l.Name))
}

func listLabels(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	return page(c, c.s.json.labels(i)), nil
}

// triaged returns the issue in the path if the caller has triage access.
func (c *call) triaged() (*Issue, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	return i, c.triage(i)
}

// labelNames decodes ["a"], {"labels":["a"]} and {"labels":[{"name":"a"}]}.
func (c *call) labelNames() ([]string, error) {
	var list []name
	if json.Unmarshal(c.body, &list) == nil {
		return plain(list), nil
	}
	var req struct{ Labels []name }
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	return plain(req.Labels), nil
}

func addLabels(c *call) (any, error) {
	i, err := c.triaged()
	if err != nil {
		return nil, err
	}
	names, err := c.labelNames()
	if err != nil {
		return nil, err
	}
	c.addLabels(i, names)
	return c.s.json.labels(i), nil
}

func putLabels(c *call) (any, error) {
	i, err := c.triaged()
	if err != nil {
		return nil, err
	}
	names, err := c.labelNames()
	if err != nil {
		return nil, err
	}
	c.setLabels(i, names)
	return c.s.json.labels(i), nil
}

func deleteLabel(c *call) (any, error) {
	i, err := c.triaged()
	if err != nil {
		return nil, err
	}
	if err := c.removeLabel(i, c.vars["name"]); err != nil {
		return nil, err
	}
	return c.s.json.labels(i), nil
}

func changeAssignees(change func(*session, *Issue, []string), status int) handler {
	return func(c *call) (any, error) {
		i, err := c.triaged()
		if err != nil {
			return nil, err
		}
		var req struct{ Assignees []string }
		if err := c.decode(&req); err != nil {
			return nil, err
		}
		change(c.session, i, req.Assignees)
		c.status = status
		return c.s.json.issue(i), nil
	}
}
