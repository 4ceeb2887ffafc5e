package simgithub

import "slices"

// CombinedStatus returns the combined state of statuses and check runs of a commit: failure, pending, success, or ""
// without any.
func (r *Repo) CombinedStatus(sha string) (state string, latest []*Status) {
	byContext := map[string]*Status{}
	for _, k := range r.Statuses {
		if k.SHA == sha {
			byContext[k.Context] = k
		}
	}
	worst := 0
	for _, k := range r.Statuses {
		if byContext[k.Context] != k {
			continue
		}
		latest = append(latest, k)
		worst = max(worst, map[string]int{"success": 1, "pending": 2, "failure": 3, "error": 3}[k.State])
	}
	for _, k := range r.newestRuns(sha) {
		switch {
		case k.Status != "completed":
			worst = max(worst, 2)
		case slices.Contains([]string{"success", "neutral", "skipped"}, k.Conclusion):
			worst = max(worst, 1)
		default:
			worst = max(worst, 3)
		}
	}
	return []string{"", "success", "pending", "failure"}[worst], latest
}

// newestRuns returns the newest check run of each suite and name on a commit.
func (r *Repo) newestRuns(sha string) []*CheckRun {
	var list []*CheckRun
	for _, c := range r.CheckSuites {
		if c.HeadSHA == sha {
			list = append(list, r.latestRuns(c)...)
		}
	}
	return list
}

func getStatus(c *call, r *Repo, sha string) (any, error) {
	if err := c.need(r, "statuses", "read", RoleRead); err != nil {
		return nil, err
	}
	bare := &Repo{Statuses: r.Statuses} // check runs do not count here
	state, latest := bare.CombinedStatus(sha)
	if state == "" {
		state = "pending"
	}
	return obj{
		"state": state, "sha": sha, "total_count": len(latest), "repository": c.s.json.repo(r),
		"statuses":   each(latest, func(k *Status) obj { return c.s.json.shortStatus(r, k) }),
		"commit_url": c.s.json.api("/repos/%s/commits/%s", r.FullName(), sha),
		"url":        c.s.json.api("/repos/%s/commits/%s/status", r.FullName(), sha),
	}, nil
}

func listStatuses(c *call, r *Repo, sha string) (any, error) {
	if err := c.need(r, "statuses", "read", RoleRead); err != nil {
		return nil, err
	}
	var list []*Status
	for _, k := range slices.Backward(r.Statuses) {
		if k.SHA == sha {
			list = append(list, k)
		}
	}
	return each(page(c, list), func(k *Status) obj { return c.s.json.status(r, k) }), nil
}

func createStatus(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	if err := c.need(r, "statuses", "write", RoleWrite); err != nil {
		return nil, err
	}
	var req struct {
		State       string `json:"state"`
		Context     string `json:"context"`
		Description string `json:"description"`
		TargetURL   string `json:"target_url"`
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	k, err := c.checks().addStatus(r, Status{
		SHA: c.vars["sha"], State: req.State, Context: req.Context, Description: req.Description, TargetURL: req.TargetURL,
	})
	if err != nil {
		return nil, err
	}
	return c.created(c.s.json.status(r, k))
}

func (ch checks) addStatus(r *Repo, k Status) (*Status, error) {
	if r.Git.Resolve(k.SHA) != k.SHA || k.SHA == "" {
		return nil, errUnprocessable("No commit found for SHA: %s", k.SHA)
	}
	if !slices.Contains([]string{"error", "failure", "pending", "success"}, k.State) {
		return nil, errInvalid("Status", "state", "invalid")
	}
	if k.Context == "" {
		k.Context = "default"
	}
	k.ID, k.Creator, k.CreatedAt = ch.x.s.newID(), ch.x.login(), ch.x.s.now()
	k.NodeID = nodeID("SC", k.ID)
	r.Statuses = append(r.Statuses, &k)
	ch.x.webhooks().status(r, &k)
	ch.x.refs().mergeDue(r)
	return &k, nil
}
