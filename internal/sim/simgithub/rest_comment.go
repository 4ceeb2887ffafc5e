package simgithub

import (
	"encoding/json"
	"slices"
)

func unmarshal(b []byte, into any) error { return json.Unmarshal(b, into) }

func commentRoutes() []route {
	const issues = "/repos/{owner}/{repo}/issues"
	return []route{
		{"GET", issues + "/{number}/comments", listComments},
		{"POST", issues + "/{number}/comments", createComment},
		{"GET", issues + "/comments", listRepoComments},
		{"GET", issues + "/comments/{id}", getComment},
		{"PATCH", issues + "/comments/{id}", patchComment},
		{"DELETE", issues + "/comments/{id}", deleteComment},
	}
}

func listComments(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	return each(page(c, c.recent(i.Comments)), c.s.json.comment), nil
}

// recent returns the elements after the since parameter that a lagging list already shows.
func (c *call) recent(in []*Comment) []*Comment {
	since := c.queryTime("since")
	var out []*Comment
	for _, k := range in {
		if c.s.listed(k.ID) && (since.IsZero() || !k.UpdatedAt.Before(since)) {
			out = append(out, k)
		}
	}
	return out
}

func listRepoComments(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	if err := c.need(r, "issues", "read", RoleRead); err != nil {
		return nil, err
	}
	var list []*Comment
	for _, i := range r.IssuesByNumber() {
		list = append(list, c.recent(i.Comments)...)
	}
	slices.SortFunc(list, func(a, b *Comment) int { return int(a.ID - b.ID) })
	if c.query("sort") == "updated" {
		slices.SortStableFunc(list, func(a, b *Comment) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
	}
	if c.query("sort") != "" && c.query("direction") != "asc" {
		slices.Reverse(list)
	}
	return each(page(c, list), c.s.json.comment), nil
}

// bodyRequest is a request with a text.
type bodyRequest struct {
	Body string `json:"body"`
}

func createComment(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	var req bodyRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	k, err := c.comment(i, req.Body)
	if err != nil {
		return nil, err
	}
	return c.created(c.s.json.comment(k))
}

func (c *call) theComment() (*Comment, error) { return c.commentByID(c.full(), c.id("id")) }

func getComment(c *call) (any, error) {
	k, err := c.theComment()
	if err != nil {
		return nil, err
	}
	return c.s.json.comment(k), nil
}

func patchComment(c *call) (any, error) {
	k, err := c.theComment()
	if err != nil {
		return nil, err
	}
	var req bodyRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if err := c.editComment(k, req.Body); err != nil {
		return nil, err
	}
	return c.s.json.comment(k), nil
}

func deleteComment(c *call) (any, error) {
	k, err := c.theComment()
	if err != nil {
		return nil, err
	}
	return nil, c.deleteComment(k)
}
