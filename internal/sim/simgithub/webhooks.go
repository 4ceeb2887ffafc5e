package simgithub

import (
	"maps"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// payload returns the fields that all payloads about a repository have, and more.
func (w webhooks) payload(r *Repo, action string, more ...obj) obj {
	o := obj{"repository": w.x.s.json.sentRepo(r), "sender": w.x.s.json.user(w.x.login())}
	if action != "" {
		o["action"] = action
	}
	if u, ok := w.x.s.users[r.Owner]; ok && u.Type == TypeOrg {
		o["organization"] = w.x.s.json.org(u)
	}
	for _, m := range more {
		maps.Copy(o, m)
	}
	return o
}

// sentRepo encodes a repository as in payloads.
func (j encoder) sentRepo(r *Repo) obj {
	o := j.repo(r)
	o["custom_properties"] = obj{}
	return o
}

func (w webhooks) issue(action string, i *Issue, more obj) {
	w.emit(i.repo, "issues", w.payload(i.repo, action, obj{"issue": w.x.s.json.sentIssue(i)}, more))
}

// issueOrPull sends issues.* for an issue and pull_request.* for a pull request.
func (w webhooks) issueOrPull(action string, i *Issue, more obj) {
	if i.Pull != nil {
		w.pull(action, i.Pull, more)
		return
	}
	w.issue(action, i, more)
}

func (w webhooks) comment(action string, k *Comment, more obj) {
	r := k.issue.repo
	w.emit(r, "issue_comment", w.payload(r, action,
		obj{"issue": w.x.s.json.sentIssue(k.issue), "comment": w.x.s.json.comment(k)}, more))
}

func (w webhooks) pull(action string, p *Pull, more obj) {
	r := p.issue.repo
	w.emit(r, "pull_request", w.payload(r, action,
		obj{"number": p.issue.Number, "pull_request": w.x.s.json.fullPull(p)}, more))
}

func (w webhooks) review(action string, v *Review, more obj) {
	r := v.pull.issue.repo
	review := w.x.s.json.review(v)
	review["state"] = lower(v.State) // lower case in payloads, upper case in REST
	review["body"] = orNull(v.Body)
	w.emit(r, "pull_request_review", w.payload(r, action,
		obj{"review": review, "pull_request": w.x.s.json.pull(v.pull)}, more))
}

func (w webhooks) reviewComment(action string, k *ReviewComment, more obj) {
	r := k.thread.pull.issue.repo
	w.emit(r, "pull_request_review_comment", w.payload(r, action,
		obj{"comment": w.x.s.json.reviewComment(k), "pull_request": w.x.s.json.pull(k.thread.pull)}, more))
}

func (w webhooks) thread(action string, t *Thread) {
	r := t.pull.issue.repo
	comments := make([]any, 0, len(t.Comments))
	for _, k := range t.Comments {
		comments = append(comments, w.x.s.json.reviewComment(k))
	}
	w.emit(r, "pull_request_review_thread", w.payload(r, action, obj{
		"thread": obj{"node_id": t.NodeID, "comments": comments}, "pull_request": w.x.s.json.pull(t.pull),
	}))
}

func (w webhooks) dependency(action string, blocked, blocker *Issue) {
	o := obj{
		"blocked_issue_id": blocked.ID, "blocked_issue": w.x.s.json.issue(blocked),
		"blocking_issue_id": blocker.ID, "blocking_issue": w.x.s.json.issue(blocker),
	}
	if strings.HasPrefix(action, "blocked_by_") {
		o["blocking_issue_repo"] = w.x.s.json.repo(blocker.repo)
	} else {
		o["blocked_issue_repo"] = w.x.s.json.repo(blocked.repo)
	}
	w.emit(blocked.repo, "issue_dependencies", w.payload(blocked.repo, action, o))
}

func (w webhooks) subIssue(action string, parent, child *Issue) {
	o := obj{
		"parent_issue_id": parent.ID, "parent_issue": w.x.s.json.issue(parent),
		"sub_issue_id": child.ID, "sub_issue": w.x.s.json.issue(child),
	}
	if strings.HasPrefix(action, "sub_issue_") {
		o["sub_issue_repo"] = w.x.s.json.repo(child.repo)
	} else {
		o["parent_issue_repo"] = w.x.s.json.repo(parent.repo)
	}
	w.emit(parent.repo, "sub_issues", w.payload(parent.repo, action, o))
}

func (w webhooks) member(r *Repo, login string, role Role) {
	action := "edited"
	if role.Rank() == 0 {
		action = "removed"
	}
	w.emit(r, "member", w.payload(r, action, obj{"member": w.x.s.json.user(login)}))
}

func (w webhooks) checkRun(action string, r *Repo, c *CheckRun) {
	run := w.x.s.json.checkRun(r, c)
	for _, k := range r.CheckSuites {
		if k.ID == c.SuiteID {
			run["check_suite"] = w.x.checks().shortSuiteJSON(r, k)
		}
	}
	w.emit(r, "check_run", w.payload(r, action, obj{"check_run": run}))
}

func (w webhooks) repository(action string, r *Repo, more obj) {
	w.emit(r, "repository", w.payload(r, action, more))
}

func (w webhooks) status(r *Repo, c *Status) {
	branches := []any{}
	o := w.x.s.json.status(r, c)
	commit := obj{"sha": c.SHA}
	if k := r.Git.Commit(c.SHA); k != nil {
		commit = w.x.s.json.commit(r, k)
	}
	w.emit(r, "status", w.payload(r, "", obj{
		"id": c.ID, "sha": c.SHA, "name": r.FullName(), "target_url": o["target_url"], "context": c.Context,
		"description": o["description"], "state": c.State, "commit": commit, "branches": branches,
		"created_at": o["created_at"], "updated_at": o["updated_at"],
	}))
}

// push sends push, and also create or delete if a reference was created or deleted.
func (w webhooks) push(r *Repo, ref, before, after string) error {
	api := w.x.s.json.html("/%s", r.FullName())
	revs := []string{after}
	switch {
	case after == git.ZeroSHA:
		revs = nil
	case before != git.ZeroSHA:
		revs = append(revs, "--not", before)
	case ref != "refs/heads/"+r.DefaultBranch:
		revs = append(revs, "--not", "refs/heads/"+r.DefaultBranch)
	}
	commits := []any{}
	var head any
	if revs != nil {
		list, err := r.Git.Commits(20, append(revs, "--")...)
		if err != nil {
			return err
		}
		for n := len(list) - 1; n >= 0; n-- {
			commits = append(commits, w.pushedCommit(r, &list[n]))
		}
		if c := r.Git.Commit(after); c != nil {
			head = w.pushedCommit(r, c)
		}
	}
	created, deleted := before == git.ZeroSHA, after == git.ZeroSHA
	w.emit(r, "push", w.payload(r, "", obj{
		"ref": ref, "before": before, "after": after, "created": created, "deleted": deleted,
		"forced":  !created && !deleted && !r.Git.IsAncestor(before, after),
		"compare": api + "/compare/" + before[:12] + "..." + after[:12], "base_ref": nil, "commits": commits, "head_commit": head,
		"pusher": obj{"name": w.x.login(), "email": w.x.identity().Email},
	}))
	w.ref(r, ref, created, deleted)
	return nil
}

// pushedCommit encodes a commit as in push payloads.
func (w webhooks) pushedCommit(r *Repo, c *git.Commit) obj {
	parent := ""
	if len(c.Parents) > 0 {
		parent = c.Parents[0]
	}
	added, removed, modified := []string{}, []string{}, []string{}
	for _, f := range r.Git.ChangedFiles(parent, c.SHA) {
		switch f.Status {
		case "added":
			added = append(added, f.Path)
		case "removed":
			removed = append(removed, f.Path)
		default:
			modified = append(modified, f.Path)
		}
	}
	o := simpleCommit(c)
	maps.Copy(o, obj{
		"distinct": true, "url": w.x.s.json.html("/%s/commit/%s", r.FullName(), c.SHA), "added": added, "removed": removed, "modified": modified,
	})
	return o
}

// simpleCommit encodes a commit as in checks.
func simpleCommit(c *git.Commit) obj {
	return obj{
		"id": c.SHA, "tree_id": c.Tree, "message": c.Message, "timestamp": stamp(c.Committer.At),
		"author": obj{"name": c.Author.Name, "email": c.Author.Email}, "committer": obj{"name": c.Committer.Name, "email": c.Committer.Email},
	}
}
