package simgithub

import (
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// pull encodes a pull request as in lists.
func (j encoder) pull(p *Pull) obj {
	i, r := p.issue, p.issue.repo
	api := j.api("/repos/%s/pulls/%d", r.FullName(), i.Number)
	issue := j.api("/repos/%s/issues/%d", r.FullName(), i.Number)
	page := j.issuePage(i)
	o := obj{
		"id": p.ID, "node_id": p.NodeID, "url": api, "html_url": page, "diff_url": page + ".diff", "patch_url": page + ".patch",
		"issue_url": issue, "commits_url": api + "/commits", "review_comments_url": api + "/comments",
		"review_comment_url": j.api("/repos/%s/pulls/comments{/number}", r.FullName()), "comments_url": issue + "/comments",
		"statuses_url": j.api("/repos/%s/statuses/%s", r.FullName(), p.HeadSHA), "number": i.Number, "state": i.State,
		"locked": i.Locked, "title": i.Title, "user": j.user(i.Author), "body": orNull(i.Body), "labels": j.labels(i),
		"milestone": j.milestone(i), "active_lock_reason": orNull(i.LockReason), "created_at": stamp(i.CreatedAt),
		"updated_at": stamp(i.UpdatedAt), "closed_at": stamp(i.ClosedAt), "merged_at": stamp(p.MergedAt),
		"merge_commit_sha": orNull(p.MergeCommit), "assignee": nil, "assignees": j.users(i.Assignees),
		"requested_reviewers": j.users(p.RequestedReviewers), "requested_teams": []any{},
		"head": j.branch(r, p.Head, p.HeadSHA), "base": j.branch(r, p.Base, p.BaseSHA),
		"author_association": r.association(i.Author), "auto_merge": j.autoMerge(p), "draft": p.Draft,
		"_links": obj{
			"self": obj{"href": api}, "html": obj{"href": page}, "issue": obj{"href": issue},
			"comments": obj{"href": issue + "/comments"}, "review_comments": obj{"href": api + "/comments"},
			"review_comment": obj{"href": j.api("/repos/%s/pulls/comments{/number}", r.FullName())},
			"commits":        obj{"href": api + "/commits"},
			"statuses":       obj{"href": j.api("/repos/%s/statuses/%s", r.FullName(), p.HeadSHA)},
		},
	}
	if len(i.Assignees) > 0 {
		o["assignee"] = j.user(i.Assignees[0])
	}
	return o
}

// autoMerge encodes how a pull request will be merged, or was, or null.
func (j encoder) autoMerge(p *Pull) any {
	a := p.AutoMerge
	if a == nil {
		return nil
	}
	title, message := a.Merge.text(p)
	return obj{
		"enabled_by": j.user(a.EnabledBy), "merge_method": a.Merge.Method, "commit_title": title, "commit_message": message,
	}
}

// branch encodes the head or the base of a pull request.
func (j encoder) branch(r *Repo, branch, sha string) obj {
	return obj{
		"label": r.Owner + ":" + branch, "ref": branch, "sha": sha, "user": j.user(r.Owner), "repo": j.repo(r),
	}
}

// fullPull encodes a pull request with counts and mergeability, as in single answers and payloads.
func (j encoder) fullPull(p *Pull) obj {
	o := j.pull(p)
	r := p.issue.repo
	additions, deletions, files, commits := 0, 0, 0, 0
	if list, err := j.s.pulls.files(p); err == nil {
		for _, f := range list {
			additions += f.Additions
			deletions += f.Deletions
		}
		files = len(list)
	}
	if ahead, _, err := r.Git.CountBetween(p.BaseSHA, p.HeadSHA); err == nil {
		commits = ahead
	}
	mergeable, state := j.s.pulls.knownMergeability(p)
	o["merged"], o["merged_by"], o["mergeable"] = p.Merged, j.user(p.MergedBy), mergeable
	o["mergeable_state"], o["rebaseable"] = state, mergeable
	o["comments"], o["review_comments"], o["commits"] = len(p.issue.Comments), j.reviewCommentCount(p), commits
	o["additions"], o["deletions"], o["changed_files"] = additions, deletions, files
	o["maintainer_can_modify"] = false
	return o
}

func (j encoder) reviewCommentCount(p *Pull) int {
	n := 0
	for _, t := range p.Threads {
		for _, k := range t.Comments {
			if !p.IsPending(k) {
				n++
			}
		}
	}
	return n
}

// knownMergeability returns null until mergeability was requested once after the last change of both branches: GitHub
// computes it in the background when it is first read.
func (ps pulls) knownMergeability(p *Pull) (mergeable any, state string) {
	if p.issue.State != "open" || p.judged != ps.ends(p) {
		return nil, "unknown"
	}
	return ps.mergeability(p)
}

// ends returns the two commits on which mergeability depends.
func (ps pulls) ends(p *Pull) string { return p.issue.repo.Git.Branch(p.Base) + " " + p.HeadSHA }

// mergeability reports whether a pull request can be merged automatically: nil if it is not open.
func (ps pulls) mergeability(p *Pull) (mergeable any, state string) {
	if p.issue.State != "open" {
		return nil, "unknown"
	}
	r := p.issue.repo
	if _, err := r.Git.MergeTree(r.Git.Branch(p.Base), p.HeadSHA); err != nil {
		return false, "dirty"
	}
	if p.Draft {
		return true, "draft"
	}
	if ps.s.unmet(p) != "" {
		return true, "blocked"
	}
	if r.isOutdated(p) {
		return true, "behind"
	}
	switch state, _ := r.CombinedStatus(p.HeadSHA); state {
	case "failure", "pending":
		return true, "unstable"
	}
	return true, "clean"
}

// files returns the files that a pull request changes, compared with the merge base.
func (ps pulls) files(p *Pull) ([]git.FileChange, error) {
	r := p.issue.repo
	return r.Git.Diff(r.Git.MergeBase(p.BaseSHA, p.HeadSHA), p.HeadSHA)
}

func (j encoder) review(v *Review) obj {
	i := v.pull.issue
	api := j.api("/repos/%s/pulls/%d", i.repo.FullName(), i.Number)
	page := j.issuePage(i) + "#pullrequestreview-" + itoa(v.ID)
	o := obj{
		"id": v.ID, "node_id": v.NodeID, "user": j.user(v.Author), "body": v.Body, "state": v.State, "html_url": page,
		"pull_request_url": api, "_links": obj{"html": obj{"href": page}, "pull_request": obj{"href": api}},
		"commit_id": v.CommitID, "author_association": i.repo.association(v.Author), "submitted_at": stamp(v.SubmittedAt),
	}
	if v.State == ReviewPending {
		delete(o, "submitted_at")
	}
	return o
}

func (j encoder) reviewComment(k *ReviewComment) obj {
	t, i := k.thread, k.thread.pull.issue
	r := i.repo
	api := j.api("/repos/%s/pulls/comments/%d", r.FullName(), k.ID)
	pull := j.api("/repos/%s/pulls/%d", r.FullName(), i.Number)
	page := j.issuePage(i) + "#discussion_r" + itoa(k.ID)
	o := obj{
		"id": k.ID, "node_id": k.NodeID, "url": api, "pull_request_review_id": k.ReviewID, "diff_hunk": t.DiffHunk,
		"path": t.Path, "commit_id": t.pull.HeadSHA, "original_commit_id": t.OriginalCommitID, "user": j.user(k.Author),
		"body": k.Body, "created_at": stamp(k.CreatedAt), "updated_at": stamp(k.UpdatedAt), "html_url": page,
		"pull_request_url": pull, "author_association": r.association(k.Author),
		"_links":    obj{"self": obj{"href": api}, "html": obj{"href": page}, "pull_request": obj{"href": pull}},
		"reactions": reactionRollup(k.Reactions, api+"/reactions"), "side": t.Side, "start_line": nil, "start_side": nil,
		"original_start_line": nil, "line": nil, "original_line": t.OriginalLine, "position": nil, "original_position": 1,
		"subject_type": "line",
	}
	if t.Line > 0 {
		o["line"], o["position"] = t.Line, len(strings.Split(t.DiffHunk, "\n"))-1
	}
	if t.OriginalLine == 0 {
		o["subject_type"], o["original_line"] = "file", nil
	}
	if t.StartLine > 0 {
		o["start_line"], o["start_side"], o["original_start_line"] = t.StartLine, t.Side, t.StartLine
	}
	if k.InReplyTo != 0 {
		o["in_reply_to_id"] = k.InReplyTo
	}
	return o
}

// file encodes one file of a pull request or comparison.
func (j encoder) file(r *Repo, f git.FileChange, ref string) obj {
	o := obj{
		"sha": f.SHA, "filename": f.Path, "status": f.Status, "additions": f.Additions, "deletions": f.Deletions,
		"changes": f.Additions + f.Deletions, "blob_url": j.html("/%s/blob/%s/%s", r.FullName(), ref, f.Path),
		"raw_url":      j.html("/%s/raw/%s/%s", r.FullName(), ref, f.Path),
		"contents_url": j.api("/repos/%s/contents/%s?ref=%s", r.FullName(), f.Path, ref),
	}
	if f.Patch != "" {
		o["patch"] = f.Patch
	}
	if f.OldPath != "" {
		o["previous_filename"] = f.OldPath
	}
	return o
}
