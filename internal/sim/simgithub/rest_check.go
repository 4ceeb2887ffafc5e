package simgithub

import (
	"slices"
	"time"
)

func checkRoutes() []route {
	return []route{
		{"POST", "/repos/{owner}/{repo}/check-runs", createCheckRun},
		{"PATCH", "/repos/{owner}/{repo}/check-runs/{id}", editCheckRun},
		{"GET", "/repos/{owner}/{repo}/check-runs/{id}", getCheckRun},
		{"GET", "/repos/{owner}/{repo}/check-runs/{id}/annotations", listAnnotations},
		{"GET", "/repos/{owner}/{repo}/check-suites/{id}/check-runs", listSuiteRuns},
		{"POST", "/repos/{owner}/{repo}/statuses/{sha}", createStatus},
	}
}

// checkRequest is a check run as sent.
type checkRequest struct {
	Name        *string      `json:"name"`
	HeadSHA     string       `json:"head_sha"`
	Status      *string      `json:"status"`
	Conclusion  *string      `json:"conclusion"`
	DetailsURL  *string      `json:"details_url"`
	ExternalID  *string      `json:"external_id"`
	StartedAt   *time.Time   `json:"started_at"`
	CompletedAt *time.Time   `json:"completed_at"`
	Output      *checkOutput `json:"output"`

	job *Job // as reported by a CI; nil for a run of the simulator's App
}

// checkOutput is the text of a check run.
type checkOutput struct {
	Title, Summary string
	Text           *string
}

// apply applies a request to a check run.
func (q checkRequest) apply(k *CheckRun, now time.Time) error {
	set := func(into *string, v *string) {
		if v != nil {
			*into = *v
		}
	}
	set(&k.Name, q.Name)
	set(&k.Status, q.Status)
	set(&k.DetailsURL, q.DetailsURL)
	set(&k.ExternalID, q.ExternalID)
	if q.Conclusion != nil {
		k.Conclusion, k.Status, k.CompletedAt = *q.Conclusion, "completed", now
	}
	if q.StartedAt != nil {
		k.StartedAt = *q.StartedAt
	}
	if q.CompletedAt != nil {
		k.CompletedAt = *q.CompletedAt
	}
	if q.Output != nil {
		k.Title, k.Summary = q.Output.Title, q.Output.Summary
		set(&k.Text, q.Output.Text)
	}
	if len([]rune(k.Summary)) > 65535 || len([]rune(k.Text)) > 65535 {
		return errInvalid("CheckRun", "output", "too_long")
	}
	if k.Status == "completed" && k.Conclusion == "" {
		return errInvalid("CheckRun", "conclusion", "missing_field")
	}
	return nil
}

func createCheckRun(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	var req checkRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if !c.viaApp() {
		return nil, errForbidden("You must authenticate via a GitHub App.")
	}
	if err := c.need(r, "checks", "write", RoleAdmin); err != nil {
		return nil, err
	}
	k, err := c.checks().addRun(r, req)
	if err != nil {
		return nil, err
	}
	return c.created(c.s.json.checkRun(r, k))
}

func (ch checks) addRun(r *Repo, req checkRequest) (*CheckRun, error) {
	if req.Name == nil || *req.Name == "" {
		return nil, errInvalid("CheckRun", "name", "missing_field")
	}
	if r.Git.Resolve(req.HeadSHA) != req.HeadSHA || req.HeadSHA == "" {
		return nil, errUnprocessable("No commit found for SHA: %s", req.HeadSHA)
	}
	k := &CheckRun{ID: ch.x.s.newID(), HeadSHA: req.HeadSHA, Status: "queued", ByApp: req.job == nil, StartedAt: ch.x.s.now(), job: req.job}
	k.NodeID = nodeID("CR", k.ID)
	if err := req.apply(k, ch.x.s.now()); err != nil {
		return nil, err
	}
	suite := ch.suite(r, k)
	k.SuiteID, k.attempt = suite.ID, suite.attempt
	r.CheckRuns = append(r.CheckRuns, k)
	ch.x.webhooks().checkRun("created", r, k)
	if k.Status == "completed" {
		ch.x.webhooks().checkRun("completed", r, k)
	}
	ch.judgeSuite(r, suite)
	ch.x.refs().mergeDue(r)
	return k, nil
}

func (c *call) theCheckRun(r *Repo) (*CheckRun, error) {
	n := slices.IndexFunc(r.CheckRuns, func(k *CheckRun) bool { return k.ID == c.id("id") })
	if n < 0 {
		return nil, errNotFound()
	}
	return r.CheckRuns[n], nil
}

func editCheckRun(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	if err := c.need(r, "checks", "write", RoleAdmin); err != nil {
		return nil, err
	}
	k, err := c.theCheckRun(r)
	if err != nil {
		return nil, err
	}
	var req checkRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	was := k.Status
	if err := req.apply(k, c.s.now()); err != nil {
		return nil, err
	}
	if was != "completed" && k.Status == "completed" {
		c.webhooks().checkRun("completed", r, k)
	}
	c.checks().judgeSuite(r, c.checks().suite(r, k))
	c.refs().mergeDue(r)
	return c.s.json.checkRun(r, k), nil
}

func getCheckRun(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	if err := c.need(r, "checks", "read", RoleRead); err != nil {
		return nil, err
	}
	k, err := c.theCheckRun(r)
	if err != nil {
		return nil, err
	}
	return c.s.json.checkRun(r, k), nil
}

func listCheckRuns(c *call, r *Repo, sha string) (any, error) {
	return c.listRuns(r, func(k *CheckRun) bool { return k.HeadSHA == sha })
}

func listSuiteRuns(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(r.CheckSuites, func(s *CheckSuite) bool { return s.ID == c.id("id") }) {
		return nil, errNotFound()
	}
	return c.listRuns(r, func(k *CheckRun) bool { return k.SuiteID == c.id("id") })
}

// listRuns lists some check runs: all, or the newest of each suite and name.
func (c *call) listRuns(r *Repo, belongs func(*CheckRun) bool) (any, error) {
	if err := c.need(r, "checks", "read", RoleRead); err != nil {
		return nil, err
	}
	var list []*CheckRun
	for _, k := range r.CheckRuns {
		if !belongs(k) || c.query("check_name") != "" && c.query("check_name") != k.Name {
			continue
		}
		if c.query("filter") != "all" {
			list = slices.DeleteFunc(list, func(o *CheckRun) bool { return o.SuiteID == k.SuiteID && o.Name == k.Name })
		}
		list = append(list, k)
	}
	total := len(list)
	return obj{
		"total_count": total, "check_runs": each(page(c, list), func(k *CheckRun) obj { return c.s.json.checkRun(r, k) }),
	}, nil
}
