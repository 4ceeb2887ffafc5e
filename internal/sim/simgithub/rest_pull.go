package simgithub

import (
	"cmp"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

func pullRoutes() []route {
	const pulls = "/repos/{owner}/{repo}/pulls"
	return []route{
		{"GET", pulls, listPulls},
		{"POST", pulls, createPull},
		{"GET", pulls + "/{number}", getPull},
		{"PATCH", pulls + "/{number}", patchPull},
		{"GET", pulls + "/{number}/files", listPullFiles},
		{"GET", pulls + "/{number}/commits", listPullCommits},
		{"GET", pulls + "/{number}/merge", isMerged},
		{"PUT", pulls + "/{number}/merge", mergePull},
		{"GET", pulls + "/{number}/requested_reviewers", listRequested},
		{"POST", pulls + "/{number}/requested_reviewers", addRequested},
		{"DELETE", pulls + "/{number}/requested_reviewers", removeRequested},
	}
}

func listPulls(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	if err := c.need(r, "pull_requests", "read", RoleRead); err != nil {
		return nil, err
	}
	state := cmp.Or(c.query("state"), "open")
	head, base := c.query("head"), c.query("base")
	var list []*Issue
	for _, i := range r.IssuesByNumber() {
		if i.Pull == nil || !c.s.listed(i.ID) || state != "all" && i.State != state ||
			base != "" && i.Pull.Base != base || strings.Contains(head, ":") && r.Owner+":"+i.Pull.Head != head {
			continue // a head without an owner is not a filter, as on GitHub
		}
		list = append(list, i)
	}
	sortIssues(list, c.query("sort"), c.query("direction"))
	return each(page(c, list), func(i *Issue) obj { return c.s.json.pull(i.Pull) }), nil
}

func createPull(c *call) (any, error) {
	var req struct {
		Title, Body, Head, Base string
		Draft                   bool
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if req.Base == "" {
		return nil, errInvalid("PullRequest", "base", "missing_field")
	}
	p, err := c.openPull(c.full(), NewPull{Title: req.Title, Body: req.Body, Head: req.Head, Base: req.Base, Draft: req.Draft})
	if err != nil {
		return nil, err
	}
	return c.created(c.s.json.fullPull(p))
}

func getPull(c *call) (any, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	if strings.Contains(c.r.Header.Get("Accept"), "diff") {
		return c.diffText(p)
	}
	out := c.s.json.fullPull(p)
	p.judged = c.s.pulls.ends(p)
	return out, nil
}

func (c *call) diffText(p *Pull) (any, error) {
	r := p.issue.repo
	out, err := r.Git.Output("diff", "--no-color", r.Git.MergeBase(p.BaseSHA, p.HeadSHA), p.HeadSHA)
	if err != nil {
		return nil, err
	}
	c.header.Set("Content-Type", "application/vnd.github.diff; charset=utf-8")
	return []byte(out + "\n"), nil
}

func patchPull(c *call) (any, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	var req struct{ Title, Body, State, Base *string }
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if err := c.editPull(p, PullEdit{Title: req.Title, Body: req.Body, State: req.State, Base: req.Base}); err != nil {
		return nil, err
	}
	return c.s.json.fullPull(p), nil
}

func listPullFiles(c *call) (any, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	files, err := c.s.pulls.files(p)
	if err != nil {
		return nil, err
	}
	return each(page(c, files), func(f git.FileChange) obj { return c.s.json.file(p.issue.repo, f, p.HeadSHA) }), nil
}

// commits returns the commits of a pull request, oldest first, at most 250 as on GitHub.
func (ps pulls) commits(p *Pull) ([]git.Commit, error) {
	list, err := p.issue.repo.Git.Commits(250, p.HeadSHA, "--not", p.BaseSHA)
	slices.Reverse(list)
	return list, err
}

func listPullCommits(c *call) (any, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	list, err := c.s.pulls.commits(p)
	if err != nil {
		return nil, err
	}
	return each(page(c, list), func(k git.Commit) obj { return c.s.json.commit(p.issue.repo, &k) }), nil
}

func isMerged(c *call) (any, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	if !p.Merged {
		return nil, errNotFound()
	}
	return nil, nil
}

func mergePull(c *call) (any, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	var req struct {
		CommitTitle   string `json:"commit_title"`
		CommitMessage string `json:"commit_message"`
		MergeMethod   string `json:"merge_method"`
		SHA           string `json:"sha"`
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	in := Merge{Method: req.MergeMethod, Title: req.CommitTitle, Message: req.CommitMessage, SHA: req.SHA}
	if err := c.refs().merge(p, in); err != nil {
		return nil, err
	}
	return obj{"sha": p.MergeCommit, "merged": true, "message": "Pull Request successfully merged"}, nil
}

func listRequested(c *call) (any, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	return obj{"users": c.s.json.users(p.RequestedReviewers), "teams": []any{}}, nil
}

// reviewersRequest names people and teams.
type reviewersRequest struct {
	Reviewers     []string `json:"reviewers"`
	TeamReviewers []string `json:"team_reviewers"`
}

func addRequested(c *call) (any, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	var req reviewersRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if len(req.TeamReviewers) > 0 {
		return nil, errUnprocessable("Could not resolve to a node with the global id of '%s'.", req.TeamReviewers[0])
	}
	if err := c.requestReviewers(p, req.Reviewers); err != nil {
		return nil, err
	}
	return c.created(c.s.json.pull(p))
}

func removeRequested(c *call) (any, error) {
	p, err := c.thePull()
	if err != nil {
		return nil, err
	}
	var req reviewersRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if err := c.unrequestReviewers(p, req.Reviewers); err != nil {
		return nil, err
	}
	return c.s.json.pull(p), nil
}
