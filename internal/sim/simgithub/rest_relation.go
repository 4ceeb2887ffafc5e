package simgithub

import "slices"

func relationRoutes() []route {
	const issue = "/repos/{owner}/{repo}/issues/{number}"
	return []route{
		{"GET", issue + "/dependencies/blocked_by", listBlockedBy},
		{"POST", issue + "/dependencies/blocked_by", addBlockedBy},
		{"DELETE", issue + "/dependencies/blocked_by/{id}", removeBlockedBy},
		{"GET", issue + "/dependencies/blocking", listBlocking},
		{"GET", issue + "/sub_issues", listSubIssues},
		{"POST", issue + "/sub_issues", addSubIssue},
		{"DELETE", issue + "/sub_issue", removeSubIssue},
		{"GET", issue + "/parent", getParent},
	}
}

// blockedBy returns the issues that an issue blocks.
func (f finder) blockedBy(i *Issue) []*Issue {
	var out []*Issue
	for _, r := range f.s.repos {
		for _, o := range r.Issues {
			if slices.Contains(o.BlockedBy, i.ID) {
				out = append(out, o)
			}
		}
	}
	slices.SortFunc(out, func(a, b *Issue) int { return int(a.ID - b.ID) })
	return out
}

// visible returns the issues that the caller may see.
func (c *call) visible(ids []int64) []*Issue {
	var out []*Issue
	for _, id := range ids {
		if i, ok := c.s.find.issue(id); ok && c.sees(i.repo) {
			out = append(out, i)
		}
	}
	return out
}

// related encodes an issue in a list of several repositories.
func (c *call) related(i *Issue) obj {
	o := c.s.json.issue(i)
	o["repository"] = c.s.json.repo(i.repo)
	return o
}

func listBlockedBy(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	return each(page(c, c.visible(i.BlockedBy)), c.related), nil
}

func listBlocking(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, o := range c.s.find.blockedBy(i) {
		ids = append(ids, o.ID)
	}
	return each(page(c, c.visible(ids)), c.related), nil
}

func addBlockedBy(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	var req struct {
		IssueID int64 `json:"issue_id"`
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if err := c.setBlockedBy(i, req.IssueID, true); err != nil {
		return nil, err
	}
	return c.created(c.s.json.fullIssue(i))
}

func removeBlockedBy(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	if err := c.setBlockedBy(i, c.id("id"), false); err != nil {
		return nil, err
	}
	return c.s.json.fullIssue(i), nil
}

func listSubIssues(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	return each(page(c, c.visible(i.SubIssues)), c.related), nil
}

// subIssueRequest names a child by its database id.
type subIssueRequest struct {
	SubIssueID    int64 `json:"sub_issue_id"`
	ReplaceParent bool  `json:"replace_parent"`
}

func addSubIssue(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	var req subIssueRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if err := c.setSubIssue(i, req.SubIssueID, true, req.ReplaceParent); err != nil {
		return nil, err
	}
	return c.created(c.s.json.fullIssue(i))
}

func removeSubIssue(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	var req subIssueRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if err := c.setSubIssue(i, req.SubIssueID, false, false); err != nil {
		return nil, err
	}
	return c.s.json.fullIssue(i), nil
}

func getParent(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	parents := c.visible([]int64{i.Parent})
	if len(parents) == 0 {
		return nil, errNotFound()
	}
	return c.s.json.fullIssue(parents[0]), nil
}
