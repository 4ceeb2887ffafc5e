package simgithub

import (
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// CheckSuite contains the check runs of one App on one commit, of GitHub Actions those of one workflow. It is completed when all of them are.
type CheckSuite struct {
	ID         int64
	NodeID     string
	HeadSHA    string
	HeadBranch string // a branch whose head was the commit when the suite was created, or empty
	ByApp      bool   // belongs to the simulator's App, otherwise to a CI
	Workflow   string // file of the workflow, if it belongs to GitHub Actions
	Status     string // queued, in_progress or completed
	Conclusion string // empty until completed
	CreatedAt  time.Time
	UpdatedAt  time.Time

	attempt int // of the workflow run, whose id is that of the suite
}

// suite returns the suite of a check run, and creates it if there is none.
func (ch checks) suite(r *Repo, k *CheckRun) *CheckSuite {
	workflow := ""
	if k.job != nil {
		workflow = k.job.Workflow
	}
	for _, c := range r.CheckSuites {
		if c.ID == k.SuiteID || k.SuiteID == 0 && c.HeadSHA == k.HeadSHA && c.ByApp == k.ByApp && c.Workflow == workflow {
			return c
		}
	}
	c := &CheckSuite{ID: ch.x.s.newID(), HeadSHA: k.HeadSHA, ByApp: k.ByApp, Workflow: workflow, Status: "queued", CreatedAt: ch.x.s.now(), UpdatedAt: ch.x.s.now(), attempt: 1}
	c.NodeID = nodeID("CS", c.ID)
	refs, err := r.Git.Refs("refs/heads/")
	if err != nil {
		ch.x.s.log.Warn().Err(err).Msg("failed to find the branch of a check suite")
	}
	for _, f := range refs {
		if f.SHA == k.HeadSHA {
			c.HeadBranch = f.Name[len("refs/heads/"):]
		}
	}
	r.CheckSuites = append(r.CheckSuites, c)
	return c
}

// requestSuite creates a suite of the App when a commit is pushed, as GitHub does for each App with write access to
// checks. It stays queued until the App adds a check run to it.
func (ch checks) requestSuite(r *Repo, branch, sha string) {
	for _, in := range ch.x.s.installs {
		if in.has(r.ID) && levelRank(in.Permissions["checks"]) >= levelRank("write") && !r.hasSuite(sha) {
			c := ch.suite(r, &CheckRun{HeadSHA: sha, ByApp: true})
			c.HeadBranch = branch
			ch.x.webhooks().emit(r, "check_suite", ch.x.webhooks().payload(r, "requested", obj{"check_suite": ch.suiteJSON(r, c)}))
		}
	}
}

// hasSuite reports whether the App has a suite on a commit.
func (r *Repo) hasSuite(sha string) bool {
	return slices.ContainsFunc(r.CheckSuites, func(c *CheckSuite) bool { return c.ByApp && c.HeadSHA == sha })
}

// judgeSuite updates a suite after a change of its runs, and sends a webhook when the last of them has completed.
func (ch checks) judgeSuite(r *Repo, c *CheckSuite) {
	status, conclusion := r.suiteResult(c)
	if c.Status == status && c.Conclusion == conclusion {
		return
	}
	c.Status, c.Conclusion, c.UpdatedAt = status, conclusion, ch.x.s.now()
	if status == "completed" {
		ch.x.webhooks().emit(r, "check_suite", ch.x.webhooks().payload(r, "completed", obj{"check_suite": ch.suiteJSON(r, c)}))
	}
}

// suiteResult returns the combined result of the newest run of each name.
func (r *Repo) suiteResult(c *CheckSuite) (status, conclusion string) {
	order := []string{"", "skipped", "neutral", "success", "stale", "action_required", "cancelled", "timed_out", "failure"}
	worst := 0
	for _, k := range r.latestRuns(c) {
		if k.Status != "completed" {
			return "in_progress", ""
		}
		worst = max(worst, slices.Index(order, k.Conclusion))
	}
	return "completed", order[worst]
}

// latestRuns returns the newest run of each name in a suite.
func (r *Repo) latestRuns(c *CheckSuite) []*CheckRun {
	var list []*CheckRun
	for _, k := range r.CheckRuns {
		if k.SuiteID == c.ID {
			list = slices.DeleteFunc(list, func(o *CheckRun) bool { return o.Name == k.Name })
			list = append(list, k)
		}
	}
	return list
}

// suiteJSON encodes a check suite with its commit.
func (ch checks) suiteJSON(r *Repo, c *CheckSuite) obj {
	o := ch.shortSuiteJSON(r, c)
	o["latest_check_runs_count"], o["check_runs_url"] = len(r.latestRuns(c)), ch.x.s.json.api("/repos/%s/check-suites/%d/check-runs", r.FullName(), c.ID)
	if k := r.Git.Commit(c.HeadSHA); k != nil {
		o["head_commit"] = simpleCommit(k)
	}
	return o
}

// shortSuiteJSON encodes a check suite as payloads about its runs contain it.
func (ch checks) shortSuiteJSON(r *Repo, c *CheckSuite) obj {
	api := ch.x.s.json.api("/repos/%s/check-suites/%d", r.FullName(), c.ID)
	return obj{
		"id": c.ID, "node_id": c.NodeID, "head_branch": orNull(c.HeadBranch), "head_sha": c.HeadSHA, "status": c.Status,
		"conclusion": orNull(c.Conclusion), "url": api, "before": git.ZeroSHA, "after": c.HeadSHA,
		"pull_requests": ch.x.s.json.pullsAt(r, c.HeadSHA), "app": ch.x.s.json.checkApp(r, ch.x.s.suiteApp(c)), "created_at": stamp(c.CreatedAt),
		"updated_at": stamp(c.UpdatedAt),
	}
}

// checkApp encodes the App of a check: the simulator's, GitHub Actions, or one that represents all others.
func (j encoder) checkApp(r *Repo, id int64) obj {
	slug, name := "github-actions", "GitHub Actions"
	switch id {
	case j.s.app.ID:
		return j.app()
	case foreignApp:
		slug, name = "code-quality", "Code Quality"
	}
	return obj{
		"id": id, "slug": slug, "node_id": nodeID("A", id), "owner": j.user(r.Owner),
		"name": name, "description": "", "external_url": j.s.base, "html_url": j.html("/apps/%s", slug),
		"created_at": stamp(r.CreatedAt), "updated_at": stamp(r.CreatedAt),
		"permissions": obj{"checks": "write"}, "events": []string{"check_run"},
	}
}

// pullsAt encodes the open pull requests whose head is a commit, in the short form of checks.
func (j encoder) pullsAt(r *Repo, sha string) []any {
	out := []any{}
	end := func(branch, sha string) obj {
		return obj{"ref": branch, "sha": sha, "repo": obj{"id": r.ID, "name": r.Name, "url": j.api("/repos/%s", r.FullName())}}
	}
	for _, i := range r.IssuesByNumber() {
		if i.Pull != nil && i.State == "open" && i.Pull.HeadSHA == sha {
			out = append(out, obj{
				"id": i.Pull.ID, "number": i.Number, "url": j.api("/repos/%s/pulls/%d", r.FullName(), i.Number),
				"head": end(i.Pull.Head, sha), "base": end(i.Pull.Base, i.Pull.BaseSHA),
			})
		}
	}
	return out
}

func listCheckSuites(c *call, r *Repo, sha string) (any, error) {
	if err := c.need(r, "checks", "read", RoleRead); err != nil {
		return nil, err
	}
	var list []*CheckSuite
	for _, k := range r.CheckSuites {
		if k.HeadSHA == sha {
			list = append(list, k)
		}
	}
	total := len(list)
	return obj{"total_count": total, "check_suites": each(page(c, list), func(k *CheckSuite) obj {
		o := c.checks().suiteJSON(r, k)
		o["repository"] = c.s.json.repo(r)
		return o
	})}, nil
}
