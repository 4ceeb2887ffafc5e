package simgithub

import "github.com/errand-bot/errand/internal/sim/simgithub/git"

func commitRoutes() []route {
	return []route{
		{"GET", "/repos/{owner}/{repo}/commits", listCommits},
		{"GET", "/repos/{owner}/{repo}/commits/{ref}/check-runs", ofCommit(listCheckRuns)},
		{"GET", "/repos/{owner}/{repo}/commits/{ref}/check-suites", ofCommit(listCheckSuites)},
		{"GET", "/repos/{owner}/{repo}/commits/{ref}/status", ofCommit(getStatus)},
		{"GET", "/repos/{owner}/{repo}/commits/{ref}/statuses", ofCommit(listStatuses)},
		{"GET", "/repos/{owner}/{repo}/commits/{ref}/pulls", ofCommit(listCommitPulls)},
		{"GET", "/repos/{owner}/{repo}/commits/{ref...}", getCommit},
	}
}

func listCommits(c *call) (any, error) {
	r, err := c.readable()
	if err != nil {
		return nil, err
	}
	rev := c.query("sha")
	if rev == "" {
		rev = r.DefaultBranch
	}
	sha := r.Git.Resolve(rev)
	if sha == "" {
		return nil, errNotFound()
	}
	args := []string{sha}
	if since := c.query("since"); since != "" {
		args = append(args, "--since="+since)
	}
	if path := c.query("path"); path != "" {
		args = append(args, "--", path)
	}
	list, err := r.Git.Commits(1000, args...)
	if err != nil {
		return nil, err
	}
	return each(page(c, list), func(k git.Commit) obj { return c.s.json.commit(r, &k) }), nil
}

// ofCommit serves the parts of a commit, which may be named by a branch or tag with escaped slashes.
func ofCommit(serve func(c *call, r *Repo, sha string) (any, error)) handler {
	return func(c *call) (any, error) {
		r, err := c.repository()
		if err != nil {
			return nil, err
		}
		sha := r.Git.Resolve(c.vars["ref"])
		if sha == "" {
			return nil, errUnprocessable("No commit found for SHA: %s", c.vars["ref"])
		}
		return serve(c, r, sha)
	}
}

func getCommit(c *call) (any, error) {
	r, err := c.readable()
	if err != nil {
		return nil, err
	}
	k := r.Git.Commit(c.vars["ref"])
	if k == nil {
		return nil, errUnprocessable("No commit found for SHA: %s", c.vars["ref"])
	}
	return c.fullCommit(r, k)
}

// fullCommit encodes a commit with its files.
func (c *call) fullCommit(r *Repo, k *git.Commit) (any, error) {
	parent := ""
	if len(k.Parents) > 0 {
		parent = k.Parents[0]
	}
	files, err := r.Git.Diff(parent, k.SHA)
	if err != nil {
		return nil, err
	}
	add, del := 0, 0
	for _, f := range files {
		add += f.Additions
		del += f.Deletions
	}
	o := c.s.json.commit(r, k)
	o["stats"] = obj{"additions": add, "deletions": del, "total": add + del}
	o["files"] = each(files, func(f git.FileChange) obj { return c.s.json.file(r, f, k.SHA) })
	return o, nil
}

func listCommitPulls(c *call, r *Repo, sha string) (any, error) {
	if err := c.need(r, "pull_requests", "read", RoleRead); err != nil {
		return nil, err
	}
	var list []*Pull
	for _, i := range r.IssuesByNumber() {
		if i.Pull != nil && (i.Pull.HeadSHA == sha || i.Pull.MergeCommit == sha) {
			list = append(list, i.Pull)
		}
	}
	return each(page(c, list), c.s.json.pull), nil
}
