package simgithub

import (
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func identityJSON(w git.Identity) obj {
	return obj{"name": w.Name, "email": w.Email, "date": stamp(w.At)}
}

// account encodes the user of a git identity, found by the noreply address or by the login as name.
func (j encoder) account(w git.Identity) any {
	local, ok := strings.CutSuffix(w.Email, "@users.noreply.github.com")
	if !ok {
		return nil
	}
	if _, login, found := strings.Cut(local, "+"); found {
		local = login
	}
	if _, ok := j.s.users[local]; !ok {
		return nil
	}
	return j.user(local)
}

func (j encoder) verification(sha string) obj {
	if j.s.verified[sha] {
		return obj{
			"verified": true, "reason": "valid", "signature": "-----BEGIN PGP SIGNATURE-----", "payload": "tree",
			"verified_at": stamp(j.s.now()),
		}
	}
	return obj{"verified": false, "reason": "unsigned", "signature": nil, "payload": nil, "verified_at": nil}
}

// gitCommit encodes a commit as in the Git Data API.
func (j encoder) gitCommit(r *Repo, c *git.Commit) obj {
	api := j.api("/repos/%s/git", r.FullName())
	parents := make([]any, 0, len(c.Parents))
	for _, p := range c.Parents {
		parents = append(parents, obj{
			"sha": p, "url": api + "/commits/" + p, "html_url": j.html("/%s/commit/%s", r.FullName(), p),
		})
	}
	return obj{
		"sha": c.SHA, "node_id": nodeID("C", 0) + c.SHA, "url": api + "/commits/" + c.SHA,
		"html_url": j.html("/%s/commit/%s", r.FullName(), c.SHA), "author": identityJSON(c.Author), "committer": identityJSON(c.Committer),
		"tree": obj{"sha": c.Tree, "url": api + "/trees/" + c.Tree}, "message": c.Message, "parents": parents,
		"verification": j.verification(c.SHA),
	}
}

// commit encodes a commit as in the repository API.
func (j encoder) commit(r *Repo, c *git.Commit) obj {
	api := j.api("/repos/%s", r.FullName())
	parents := make([]any, 0, len(c.Parents))
	for _, p := range c.Parents {
		parents = append(parents, obj{
			"sha": p, "url": api + "/commits/" + p, "html_url": j.html("/%s/commit/%s", r.FullName(), p),
		})
	}
	return obj{
		"url": api + "/commits/" + c.SHA, "sha": c.SHA, "node_id": nodeID("C", 0) + c.SHA,
		"html_url": j.html("/%s/commit/%s", r.FullName(), c.SHA), "comments_url": api + "/commits/" + c.SHA + "/comments",
		"commit": obj{
			"url": api + "/git/commits/" + c.SHA, "author": identityJSON(c.Author), "committer": identityJSON(c.Committer),
			"message": c.Message, "comment_count": 0, "tree": obj{"sha": c.Tree, "url": api + "/git/trees/" + c.Tree},
			"verification": j.verification(c.SHA),
		},
		"author": j.account(c.Author), "committer": j.account(c.Committer), "parents": parents,
	}
}

// shortCommit encodes a commit as in branches and tags.
func (j encoder) shortCommit(r *Repo, sha string) obj {
	return obj{"sha": sha, "url": j.api("/repos/%s/commits/%s", r.FullName(), sha)}
}

func (j encoder) ref(r *Repo, f git.Ref) obj {
	api := j.api("/repos/%s/git", r.FullName())
	return obj{
		"ref": f.Name, "node_id": nodeID("REF", 0) + f.Name, "url": api + "/" + f.Name,
		"object": obj{"type": f.Type, "sha": f.SHA, "url": api + "/" + f.Type + "s/" + f.SHA},
	}
}

// checkRun encodes a check run.
func (j encoder) checkRun(r *Repo, c *CheckRun) obj {
	api := j.api("/repos/%s/check-runs/%d", r.FullName(), c.ID)
	details := c.DetailsURL
	if details == "" {
		details = j.html("/%s/runs/%d", r.FullName(), c.ID)
	}
	return obj{
		"id": c.ID, "node_id": c.NodeID, "head_sha": c.HeadSHA, "external_id": c.ExternalID, "url": api,
		"html_url": j.html("/%s/runs/%d", r.FullName(), c.ID), "details_url": details, "status": c.Status,
		"conclusion": orNull(c.Conclusion), "started_at": stamp(c.StartedAt), "completed_at": stamp(c.CompletedAt),
		"name": c.Name, "check_suite": obj{"id": c.SuiteID}, "app": j.checkApp(r, j.s.appOf(c)),
		"pull_requests": j.pullsAt(r, c.HeadSHA),
		"output": obj{
			"title": orNull(c.Title), "summary": orNull(c.Summary), "text": orNull(c.Text), "annotations_count": len(c.annotations()),
			"annotations_url": api + "/annotations",
		},
	}
}

// job encodes a job of GitHub Actions, whose id is that of its check run.
func (j encoder) job(r *Repo, k *CheckRun, suite *CheckSuite) obj {
	api, run := j.api("/repos/%s", r.FullName()), suite.ID
	end := k.CompletedAt
	if end.IsZero() {
		end = k.StartedAt
	}
	steps, began := []any{}, end
	for n, s := range k.steps() {
		o := obj{"name": s.name, "status": "completed", "conclusion": orNull(s.conclusion), "number": n + 1, "started_at": stamp(end.Add(-s.from)), "completed_at": stamp(end.Add(-s.to))}
		if began.After(end.Add(-s.from)) {
			began = end.Add(-s.from)
		}
		if s.conclusion == "" { // it runs
			o["status"], o["completed_at"] = "in_progress", nil
			steps = append(steps, o)
			break
		}
		steps = append(steps, o)
	}
	return obj{
		"id": k.ID, "run_id": run, "run_url": api + "/actions/runs/" + itoa(run), "run_attempt": k.attempt, "node_id": k.NodeID, "head_sha": k.HeadSHA,
		"url": api + "/actions/jobs/" + itoa(k.ID), "html_url": j.html("/%s/actions/runs/%d/job/%d", r.FullName(), run, k.ID), "status": k.Status,
		"conclusion": orNull(k.Conclusion), "created_at": stamp(began), "started_at": stamp(began), "completed_at": stamp(k.CompletedAt), "name": k.Name,
		"steps": steps, "check_run_url": api + "/check-runs/" + itoa(k.ID), "labels": []string{"ubuntu-latest"}, "runner_id": 1, "runner_name": "GitHub Actions 1",
		"runner_group_id": 0, "runner_group_name": "GitHub Actions", "workflow_name": k.job.Workflow, "head_branch": orNull(suite.HeadBranch),
	}
}

// status encodes a commit status with its creator.
func (j encoder) status(r *Repo, c *Status) obj {
	o := j.shortStatus(r, c)
	o["creator"] = j.user(c.Creator)
	return o
}

// shortStatus encodes a commit status as in the combined status.
func (j encoder) shortStatus(r *Repo, c *Status) obj {
	return obj{
		"url": j.api("/repos/%s/statuses/%s", r.FullName(), c.SHA), "avatar_url": nil, "id": c.ID, "node_id": c.NodeID,
		"state": c.State, "description": orNull(c.Description), "target_url": orNull(c.TargetURL), "context": c.Context,
		"created_at": stamp(c.CreatedAt), "updated_at": stamp(c.CreatedAt),
	}
}

func (j encoder) app() obj {
	return obj{
		"id": j.s.app.ID, "slug": j.s.app.Slug, "node_id": j.s.app.NodeID, "client_id": j.s.app.ClientID,
		"owner": j.user(j.s.app.Owner), "name": j.s.app.Name, "description": "", "external_url": j.s.base,
		"html_url": j.html("/apps/%s", j.s.app.Slug), "created_at": "2026-01-01T00:00:00Z",
		"updated_at": "2026-01-01T00:00:00Z", "permissions": j.s.app.Permissions, "events": j.s.app.Events,
	}
}

func (j encoder) installation(in *Installation) obj {
	o := obj{
		"id": in.ID, "account": j.user(in.Account), "repository_selection": "selected",
		"access_tokens_url": j.api("/app/installations/%d/access_tokens", in.ID),
		"repositories_url":  j.api("/installation/repositories"),
		"html_url":          j.html("/settings/installations/%d", in.ID),
		"app_id":            j.s.app.ID, "client_id": j.s.app.ClientID, "target_id": 0, "target_type": "User", "permissions": in.Permissions,
		"events": j.s.app.Events, "created_at": stamp(in.CreatedAt), "updated_at": stamp(in.UpdatedAt),
		"single_file_name": nil, "has_multiple_single_files": false, "single_file_paths": []any{}, "app_slug": j.s.app.Slug,
		"suspended_by": nil, "suspended_at": nil,
	}
	if u, ok := j.s.users[in.Account]; ok {
		o["target_id"], o["target_type"] = u.ID, u.Type
	}
	if in.Suspended {
		o["suspended_by"], o["suspended_at"] = j.user(in.Account), stamp(in.UpdatedAt)
	}
	return o
}
