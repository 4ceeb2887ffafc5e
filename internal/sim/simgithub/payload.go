package simgithub

import (
	"maps"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// base is what every payload of a repository's event holds.
func (x *session) payload(r *Repo, action string, more ...obj) obj {
	o := obj{"repository": x.s.sentRepoJSON(r), "sender": x.s.userJSON(x.login())}
	if action != "" {
		o["action"] = action
	}
	if u, ok := x.s.users[r.Owner]; ok && u.Type == TypeOrg {
		o["organization"] = x.s.orgJSON(u)
	}
	for _, m := range more {
		maps.Copy(o, m)
	}
	return o
}

// sentRepoJSON is a repository as payloads hold it.
func (s *Sim) sentRepoJSON(r *Repo) obj {
	o := s.repoJSON(r)
	o["custom_properties"] = obj{}
	return o
}

func (x *session) emitIssue(action string, i *Issue, more obj) {
	x.emit(i.repo, "issues", x.payload(i.repo, action, obj{"issue": x.s.sentIssueJSON(i)}, more))
}

// emitIssueOrPull sends issues.* for an issue and pull_request.* for a pull request.
func (x *session) emitIssueOrPull(action string, i *Issue, more obj) {
	if i.Pull != nil {
		x.emitPull(action, i.Pull, more)
		return
	}
	x.emitIssue(action, i, more)
}

func (x *session) emitComment(action string, k *Comment, more obj) {
	r := k.issue.repo
	x.emit(r, "issue_comment", x.payload(r, action,
		obj{"issue": x.s.sentIssueJSON(k.issue), "comment": x.s.commentJSON(k)}, more))
}

func (x *session) emitPull(action string, p *Pull, more obj) {
	r := p.issue.repo
	x.emit(r, "pull_request", x.payload(r, action,
		obj{"number": p.issue.Number, "pull_request": x.s.fullPullJSON(p)}, more))
}

func (x *session) emitReview(action string, v *Review, more obj) {
	r := v.pull.issue.repo
	review := x.s.reviewJSON(v)
	review["state"] = lower(v.State) // payloads write it small, REST writes it large
	review["body"] = orNull(v.Body)
	x.emit(r, "pull_request_review", x.payload(r, action,
		obj{"review": review, "pull_request": x.s.pullJSON(v.pull)}, more))
}

func (x *session) emitReviewComment(action string, k *ReviewComment, more obj) {
	r := k.thread.pull.issue.repo
	x.emit(r, "pull_request_review_comment", x.payload(r, action,
		obj{"comment": x.s.reviewCommentJSON(k), "pull_request": x.s.pullJSON(k.thread.pull)}, more))
}

func (x *session) emitThread(action string, t *Thread) {
	r := t.pull.issue.repo
	comments := make([]any, 0, len(t.Comments))
	for _, k := range t.Comments {
		comments = append(comments, x.s.reviewCommentJSON(k))
	}
	x.emit(r, "pull_request_review_thread", x.payload(r, action, obj{
		"thread": obj{"node_id": t.NodeID, "comments": comments}, "pull_request": x.s.pullJSON(t.pull),
	}))
}

func (x *session) emitDependency(action string, blocked, blocker *Issue) {
	o := obj{
		"blocked_issue_id": blocked.ID, "blocked_issue": x.s.issueJSON(blocked),
		"blocking_issue_id": blocker.ID, "blocking_issue": x.s.issueJSON(blocker),
	}
	if strings.HasPrefix(action, "blocked_by_") {
		o["blocking_issue_repo"] = x.s.repoJSON(blocker.repo)
	} else {
		o["blocked_issue_repo"] = x.s.repoJSON(blocked.repo)
	}
	x.emit(blocked.repo, "issue_dependencies", x.payload(blocked.repo, action, o))
}

func (x *session) emitSubIssue(action string, parent, child *Issue) {
	o := obj{
		"parent_issue_id": parent.ID, "parent_issue": x.s.issueJSON(parent),
		"sub_issue_id": child.ID, "sub_issue": x.s.issueJSON(child),
	}
	if strings.HasPrefix(action, "sub_issue_") {
		o["sub_issue_repo"] = x.s.repoJSON(child.repo)
	} else {
		o["parent_issue_repo"] = x.s.repoJSON(parent.repo)
	}
	x.emit(parent.repo, "sub_issues", x.payload(parent.repo, action, o))
}

func (x *session) emitMember(r *Repo, login string, role Role) {
	action := "edited"
	if role.Rank() == 0 {
		action = "removed"
	}
	x.emit(r, "member", x.payload(r, action, obj{"member": x.s.userJSON(login)}))
}

func (x *session) emitCheckRun(action string, r *Repo, c *CheckRun) {
	run := x.s.checkRunJSON(r, c)
	for _, k := range r.CheckSuites {
		if k.ID == c.SuiteID {
			run["check_suite"] = x.shortSuiteJSON(r, k)
		}
	}
	x.emit(r, "check_run", x.payload(r, action, obj{"check_run": run}))
}

func (x *session) emitRepository(action string, r *Repo, more obj) {
	x.emit(r, "repository", x.payload(r, action, more))
}

func (x *session) emitStatus(r *Repo, c *Status) {
	branches := []any{}
	o := x.s.statusJSON(r, c)
	commit := obj{"sha": c.SHA}
	if k := r.Git.Commit(c.SHA); k != nil {
		commit = x.s.commitJSON(r, k)
	}
	x.emit(r, "status", x.payload(r, "", obj{
		"id": c.ID, "sha": c.SHA, "name": r.FullName(), "target_url": o["target_url"], "context": c.Context,
		"description": o["description"], "state": c.State, "commit": commit, "branches": branches,
		"created_at": o["created_at"], "updated_at": o["updated_at"],
	}))
}

// emitPush sends push, and create or delete when a reference came or went.
func (x *session) emitPush(r *Repo, ref, before, after string) error {
	api := x.s.html("/%s", r.FullName())
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
			commits = append(commits, x.pushedCommit(r, &list[n]))
		}
		if c := r.Git.Commit(after); c != nil {
			head = x.pushedCommit(r, c)
		}
	}
	created, deleted := before == git.ZeroSHA, after == git.ZeroSHA
	x.emit(r, "push", x.payload(r, "", obj{
		"ref": ref, "before": before, "after": after, "created": created, "deleted": deleted,
		"forced":  !created && !deleted && !r.Git.IsAncestor(before, after),
		"compare": api + "/compare/" + before[:12] + "..." + after[:12], "base_ref": nil, "commits": commits, "head_commit": head,
		"pusher": obj{"name": x.login(), "email": x.identity().Email},
	}))
	x.emitRef(r, ref, created, deleted)
	return nil
}

// pushedCommit is a commit in a push payload.
func (x *session) pushedCommit(r *Repo, c *git.Commit) obj {
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
		"distinct": true, "url": x.s.html("/%s/commit/%s", r.FullName(), c.SHA), "added": added, "removed": removed, "modified": modified,
	})
	return o
}

// simpleCommit is a commit as checks name it.
func simpleCommit(c *git.Commit) obj {
	return obj{
		"id": c.SHA, "tree_id": c.Tree, "message": c.Message, "timestamp": stamp(c.Committer.At),
		"author": obj{"name": c.Author.Name, "email": c.Author.Email}, "committer": obj{"name": c.Committer.Name, "email": c.Committer.Email},
	}
}
