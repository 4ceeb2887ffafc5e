package simgithub

import (
	"cmp"
	"slices"
)

func reviewRoutes() []route {
	const pull = "/repos/{owner}/{repo}/pulls/{number}"
	const comments = "/repos/{owner}/{repo}/pulls/comments"
	return []route{
		{"GET", pull + "/reviews", listReviews},
		{"POST", pull + "/reviews", createReview},
		{"GET", pull + "/reviews/{id}", getReview},
		{"GET", pull + "/reviews/{id}/comments", listCommentsOfReview},
		{"POST", pull + "/reviews/{id}/events", submitReview},
		{"PUT", pull + "/reviews/{id}/dismissals", dismissReview},
		{"GET", pull + "/comments", listReviewComments},
		{"POST", pull + "/comments", createReviewComment},
		{"POST", pull + "/comments/{id}/replies", replyToReviewComment},
		{"GET", comments, listRepoReviewComments},
		{"GET", comments + "/{id}", getReviewComment},
		{"PATCH", comments + "/{id}", patchReviewComment},
		{"DELETE", comments + "/{id}", deleteReviewComment},
	}
}

func listReviews(c *call) (any, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	var list []*Review
	for _, v := range p.Reviews {
		if v.State != ReviewPending || v.Author == c.login() {
			list = append(list, v)
		}
	}
	return each(page(c, list), c.s.json.review), nil
}

// lineRequest is a request that comments on a line.
type lineRequest struct {
	Path      string `json:"path"`
	Body      string `json:"body"`
	Line      int    `json:"line"`
	Side      string `json:"side"`
	StartLine int    `json:"start_line"`
	CommitID  string `json:"commit_id"`
	InReplyTo int64  `json:"in_reply_to"`
}

func (l lineRequest) comment() NewReviewComment {
	return NewReviewComment{Path: l.Path, Line: l.Line, Side: l.Side, StartLine: l.StartLine, Body: l.Body}
}

func createReview(c *call) (any, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	var req struct {
		CommitID    string `json:"commit_id"`
		Body, Event string
		Comments    []lineRequest
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	in := NewReview{Event: req.Event, Body: req.Body, CommitID: req.CommitID}
	for _, l := range req.Comments {
		in.Comments = append(in.Comments, l.comment())
	}
	v, err := c.reviews().add(p, in)
	if err != nil {
		return nil, err
	}
	return c.s.json.review(v), nil
}

// theReview returns the review in the path. Pending reviews of others do not exist.
func (c *call) theReview() (*Review, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	v, ok := c.s.nodes[nodeID("PRR", c.id("id"))].(*Review)
	if !ok || v.pull != p || v.State == ReviewPending && v.Author != c.login() {
		return nil, errNotFound()
	}
	return v, nil
}

func getReview(c *call) (any, error) {
	v, err := c.theReview()
	if err != nil {
		return nil, err
	}
	return c.s.json.review(v), nil
}

func submitReview(c *call) (any, error) {
	v, err := c.theReview()
	if err != nil {
		return nil, err
	}
	var req struct{ Event, Body string }
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if err := c.reviews().submit(v, req.Event, req.Body); err != nil {
		return nil, err
	}
	return c.s.json.review(v), nil
}

func dismissReview(c *call) (any, error) {
	v, err := c.theReview()
	if err != nil {
		return nil, err
	}
	if err := c.reviews().dismiss(v); err != nil {
		return nil, err
	}
	return c.s.json.review(v), nil
}

// reviewComments lists the review comments of a pull request, oldest first. Pending ones are listed only for their
// author.
func (c *call) reviewComments(p *Pull) []*ReviewComment {
	hidden := map[int64]bool{}
	for _, v := range p.Reviews {
		hidden[v.ID] = v.State == ReviewPending && v.Author != c.login()
	}
	since := c.queryTime("since")
	var list []*ReviewComment
	for _, t := range p.Threads {
		for _, k := range t.Comments {
			if !hidden[k.ReviewID] && c.s.listed(k.ID) && (since.IsZero() || !k.UpdatedAt.Before(since)) {
				list = append(list, k)
			}
		}
	}
	slices.SortFunc(list, func(a, b *ReviewComment) int { return cmp.Compare(a.ID, b.ID) })
	if c.query("direction") == "desc" && c.query("sort") != "" {
		slices.Reverse(list)
	}
	return list
}

func listReviewComments(c *call) (any, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	return each(page(c, c.reviewComments(p)), c.s.json.reviewComment), nil
}

func listCommentsOfReview(c *call) (any, error) {
	v, err := c.theReview()
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(c.reviewComments(v.pull), func(k *ReviewComment) bool { return k.ReviewID != v.ID })
	return each(page(c, list), c.s.json.reviewComment), nil
}

func listRepoReviewComments(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	if err := c.need(r, "pull_requests", "read", RoleRead); err != nil {
		return nil, err
	}
	var list []*ReviewComment
	for _, i := range r.IssuesByNumber() {
		if i.Pull != nil {
			list = append(list, c.reviewComments(i.Pull)...)
		}
	}
	return each(page(c, list), c.s.json.reviewComment), nil
}

func createReviewComment(c *call) (any, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	var req lineRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if req.InReplyTo != 0 {
		return c.answered(c.reviews().replyTo(p, req.InReplyTo, req.Body))
	}
	if req.CommitID == "" {
		return nil, errInvalid("PullRequestReviewComment", "commit_id", "missing_field")
	}
	return c.answered(c.reviews().startThread(p, req.comment(), req.CommitID))
}

func (c *call) answered(k *ReviewComment, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return c.created(c.s.json.reviewComment(k))
}

func replyToReviewComment(c *call) (any, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	var req bodyRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	return c.answered(c.reviews().replyTo(p, c.id("id"), req.Body))
}

func (c *call) theReviewComment() (*ReviewComment, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	k, ok := c.s.nodes[nodeID("PRRC", c.id("id"))].(*ReviewComment)
	if !ok || k.thread.pull.issue.repo != r || !k.thread.sees(c.login(), k) {
		return nil, errNotFound()
	}
	return k, c.need(r, "pull_requests", "read", RoleRead)
}

func getReviewComment(c *call) (any, error) {
	k, err := c.theReviewComment()
	if err != nil {
		return nil, err
	}
	return c.s.json.reviewComment(k), nil
}

func patchReviewComment(c *call) (any, error) {
	k, err := c.theReviewComment()
	if err != nil {
		return nil, err
	}
	var req bodyRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if err := c.reviews().editComment(k, req.Body); err != nil {
		return nil, err
	}
	return c.s.json.reviewComment(k), nil
}

func deleteReviewComment(c *call) (any, error) {
	k, err := c.theReviewComment()
	if err != nil {
		return nil, err
	}
	return nil, c.reviews().deleteComment(k)
}
