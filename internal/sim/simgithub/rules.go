package simgithub

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// RequiredCheck is a check that a branch requires before pull requests can be merged into it.
type RequiredCheck struct {
	Context string
	App     int64 // the only App whose check counts; 0: any
	Classic bool  // required by the branch's protection, not by a ruleset
}

// RequireChecks replaces the checks that a branch requires. The branch need not exist.
func (s *Sim) RequireChecks(repo, branch string, list ...RequiredCheck) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(repo)]
	if !ok {
		return errNotFound()
	}
	required := maps.Clone(r.RequiredChecks)
	if required == nil {
		required = map[string][]RequiredCheck{}
	}
	required[branch] = slices.Clone(list)
	r.RequiredChecks = required
	return nil
}

// RequireUpToDate sets whether only pull requests can be merged into a branch that have its newest commits. The branch need not exist.
func (s *Sim) RequireUpToDate(repo, branch string, require bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(repo)]
	if !ok {
		return errNotFound()
	}
	strict := maps.Clone(r.UpToDate)
	if strict == nil {
		strict = map[string]bool{}
	}
	strict[branch] = require
	r.UpToDate = strict
	return nil
}

// AllowMerges replaces the ways in which pull requests of a repository can be merged: merge, squash and rebase.
func (s *Sim) AllowMerges(repo string, methods ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(repo)]
	if !ok {
		return errNotFound()
	}
	r.MergeMethods = slices.Clone(methods)
	return nil
}

// allows reports whether pull requests can be merged in a way.
func (r *Repo) allows(method string) bool {
	return r.MergeMethods == nil || slices.Contains(r.MergeMethods, method)
}

// isOutdated reports whether a pull request must have the newest commits of its base, but does not. A merge queue adds them itself.
func (r *Repo) isOutdated(p *Pull) bool {
	return r.UpToDate[p.Base] && !r.MergeQueues[p.Base] && !r.Git.IsAncestor(r.Git.Branch(p.Base), p.HeadSHA)
}

// requires reports whether a branch requires a check of an App, which is 0 for a status.
func (r *Repo) requires(branch, context string, app int64) bool {
	return slices.ContainsFunc(r.RequiredChecks[branch], func(q RequiredCheck) bool {
		return q.Context == context && (q.App == 0 || q.App == app)
	})
}

// isProtected reports whether a branch has rules, of a ruleset or of its protection.
func (r *Repo) isProtected(branch string) bool {
	return len(r.RequiredChecks[branch]) > 0 || r.UpToDate[branch] || r.MergeQueues[branch]
}

// protection is what everybody may see of a branch's protection.
func (r *Repo) protection(branch string) obj {
	contexts, list, level := []string{}, []obj{}, "off"
	for _, q := range r.RequiredChecks[branch] {
		if !q.Classic {
			continue
		}
		o := obj{"context": q.Context, "app_id": nil}
		if q.App != 0 {
			o["app_id"] = q.App
		}
		contexts, list, level = append(contexts, q.Context), append(list, o), "non_admins"
	}
	return obj{"enabled": len(list) > 0, "required_status_checks": obj{"enforcement_level": level, "contexts": contexts, "checks": list}}
}

// IDs of Apps that report checks: GitHub Actions, and one that represents all others.
const (
	actionsApp = 15368
	foreignApp = 4242
)

func (s *Sim) appOf(k *CheckRun) int64 {
	switch {
	case k.ByApp:
		return s.app.ID
	case k.job.Foreign:
		return foreignApp
	}
	return actionsApp
}

func (s *Sim) suiteApp(c *CheckSuite) int64 {
	switch {
	case c.ByApp:
		return s.app.ID
	case c.Workflow == "":
		return foreignApp
	}
	return actionsApp
}

// violation begins GitHub's refusals because of a ruleset.
const violation = "Repository rule violations found\n\n"

// unmet returns the sentence by which GitHub refuses to merge a head whose required checks have not succeeded, or an empty string.
func (s *Sim) unmet(p *Pull) string {
	for _, q := range p.issue.repo.RequiredChecks[p.Base] {
		why := s.lacks(p, q)
		if why != "" && !q.Classic {
			why = violation + why
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// lacks is unmet for one check.
func (s *Sim) lacks(p *Pull, q RequiredCheck) string {
	r, reported := p.issue.repo, false
	for _, k := range r.newestRuns(p.HeadSHA) {
		if k.Name != q.Context || q.App != 0 && q.App != s.appOf(k) {
			continue
		}
		reported = true
		if k.Status != "completed" {
			return fmt.Sprintf("Required status check %q is in progress.", q.Context)
		}
		if !slices.Contains([]string{"success", "neutral", "skipped"}, k.Conclusion) {
			return fmt.Sprintf("Required status check %q is failing.", q.Context)
		}
	}
	_, statuses := r.CombinedStatus(p.HeadSHA)
	for _, k := range statuses {
		if k.Context != q.Context || q.App != 0 {
			continue
		}
		reported = true
		if k.State != "success" {
			return fmt.Sprintf("Required status check %q is %s.", q.Context, map[bool]string{true: "pending", false: "failing"}[k.State == "pending"])
		}
	}
	if !reported {
		return fmt.Sprintf("Required status check %q is expected.", q.Context)
	}
	return ""
}

func ruleRoutes() []route {
	return []route{{"GET", "/repos/{owner}/{repo}/rules/branches/{branch...}", listBranchRules}}
}

// listBranchRules lists the rules of rulesets that apply to a branch, which need not exist: those about checks and about a merge queue.
func listBranchRules(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	if err := c.need(r, "metadata", "read", RoleRead); err != nil {
		return nil, err
	}
	var checks []any
	for _, q := range r.RequiredChecks[c.vars["branch"]] {
		if q.Classic {
			continue
		}
		o := obj{"context": q.Context}
		if q.App != 0 {
			o["integration_id"] = q.App
		}
		checks = append(checks, o)
	}
	var rules []obj
	strict := r.UpToDate[c.vars["branch"]]
	if len(checks) > 0 || strict {
		rules = append(rules, obj{
			"type": "required_status_checks", "ruleset_source_type": "Repository", "ruleset_source": r.FullName(), "ruleset_id": 1,
			"parameters": obj{"required_status_checks": append([]any{}, checks...), "strict_required_status_checks_policy": strict, "do_not_enforce_on_create": false},
		})
	}
	if r.MergeQueues[c.vars["branch"]] {
		rules = append(rules, r.queueRule())
	}
	return each(page(c, rules), func(o obj) obj { return o }), nil
}

// mayMergeChecks returns GitHub's refusal to merge a pull request without its required checks, or without the newest commits of its base if
// these are required; nil if there is none.
func (u refs) mayMergeChecks(p *Pull) error {
	why := u.x.s.unmet(p)
	if why == "" && p.issue.repo.isOutdated(p) {
		why = "Head branch is out of date. Update it with the base branch and try the merge again."
	}
	if why != "" {
		return &Error{Status: http.StatusMethodNotAllowed, Message: why}
	}
	return nil
}
