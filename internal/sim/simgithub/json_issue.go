package simgithub

// issue encodes an issue, or the issue side of a pull request.
func (j encoder) issue(i *Issue) obj {
	r := i.repo
	api := j.api("/repos/%s/issues/%d", r.FullName(), i.Number)
	o := obj{
		"id": i.ID, "node_id": i.NodeID, "url": api, "repository_url": j.api("/repos/%s", r.FullName()),
		"labels_url": api + "/labels{/name}", "comments_url": api + "/comments", "events_url": api + "/events",
		"timeline_url": api + "/timeline", "html_url": j.issuePage(i), "number": i.Number, "state": i.State,
		"state_reason": orNull(i.StateReason), "title": i.Title, "body": orNull(i.Body), "user": j.user(i.Author),
		"labels": j.labels(i), "assignee": nil, "assignees": j.users(i.Assignees), "milestone": j.milestone(i),
		"locked": i.Locked, "active_lock_reason": orNull(i.LockReason), "comments": len(i.Comments),
		"closed_at": stamp(i.ClosedAt), "created_at": stamp(i.CreatedAt), "updated_at": stamp(i.UpdatedAt),
		"author_association": r.association(i.Author), "reactions": reactionRollup(i.Reactions, api+"/reactions"),
		"performed_via_github_app": j.performedVia(i.ViaApp), "type": j.issueType(i),
		"sub_issues_summary":         j.subIssueSummary(i),
		"issue_dependencies_summary": j.dependencySummary(i),
	}
	if len(i.Assignees) > 0 {
		o["assignee"] = j.user(i.Assignees[0])
	}
	if parent, ok := j.s.find.issue(i.Parent); ok {
		o["parent_issue_url"] = j.api("/repos/%s/issues/%d", parent.repo.FullName(), parent.Number)
	}
	if i.Pull != nil {
		o["draft"] = i.Pull.Draft
		o["pull_request"] = obj{
			"url":      j.api("/repos/%s/pulls/%d", r.FullName(), i.Number),
			"html_url": j.issuePage(i), "diff_url": j.issuePage(i) + ".diff", "patch_url": j.issuePage(i) + ".patch",
			"merged_at": stamp(i.Pull.MergedAt),
		}
	}
	return o
}

// fullIssue adds closed_by, which lists leave out.
func (j encoder) fullIssue(i *Issue) obj {
	o := j.issue(i)
	o["closed_by"] = j.user(i.ClosedBy)
	return o
}

// sentIssue encodes an issue as in payloads.
func (j encoder) sentIssue(i *Issue) obj {
	o := j.issue(i)
	delete(o, "parent_issue_url")
	return o
}

func (j encoder) issuePage(i *Issue) string {
	kind := "issues"
	if i.Pull != nil {
		kind = "pull"
	}
	return j.html("/%s/%s/%d", i.repo.FullName(), kind, i.Number)
}

func (j encoder) milestone(i *Issue) any {
	if i.Milestone == "" {
		return nil
	}
	api := j.api("/repos/%s/milestones/1", i.repo.FullName())
	return obj{
		"url": api, "html_url": j.html("/%s/milestone/1", i.repo.FullName()), "labels_url": api + "/labels", "id": 1,
		"node_id": nodeID("MI", 1), "number": 1, "title": i.Milestone, "description": nil, "creator": j.user(i.repo.Owner),
		"open_issues": 0, "closed_issues": 0, "state": "open", "created_at": stamp(i.repo.CreatedAt),
		"updated_at": stamp(i.repo.CreatedAt), "due_on": nil, "closed_at": nil,
	}
}

func (j encoder) issueType(i *Issue) any {
	if i.Type == "" {
		return nil
	}
	return obj{
		"id": 1, "node_id": nodeID("IT", 1), "name": i.Type, "description": nil, "color": "gray", "is_enabled": true,
		"created_at": stamp(i.repo.CreatedAt), "updated_at": stamp(i.repo.CreatedAt),
	}
}

func (j encoder) subIssueSummary(i *Issue) obj {
	done := 0
	for _, id := range i.SubIssues {
		if c, ok := j.s.find.issue(id); ok && c.State == "closed" {
			done++
		}
	}
	percent := 0
	if len(i.SubIssues) > 0 {
		percent = 100 * done / len(i.SubIssues)
	}
	return obj{"total": len(i.SubIssues), "completed": done, "percent_completed": percent}
}

func (j encoder) dependencySummary(i *Issue) obj {
	open := 0
	for _, id := range i.BlockedBy {
		if b, ok := j.s.find.issue(id); ok && b.State == "open" {
			open++
		}
	}
	blocking := j.s.find.blockedBy(i)
	openBlocking := 0
	if i.State == "open" {
		openBlocking = len(blocking)
	}
	return obj{
		"blocked_by": open, "total_blocked_by": len(i.BlockedBy), "blocking": openBlocking, "total_blocking": len(blocking),
	}
}

// comment encodes a comment of a conversation.
func (j encoder) comment(k *Comment) obj {
	r := k.issue.repo
	api := j.api("/repos/%s/issues/comments/%d", r.FullName(), k.ID)
	return obj{
		"id": k.ID, "node_id": k.NodeID, "url": api, "html_url": j.commentPage(k),
		"issue_url": j.api("/repos/%s/issues/%d", r.FullName(), k.issue.Number), "body": k.Body,
		"user": j.user(k.Author), "created_at": stamp(k.CreatedAt), "updated_at": stamp(k.UpdatedAt),
		"author_association": r.association(k.Author), "performed_via_github_app": j.performedVia(k.ViaApp),
		"reactions": reactionRollup(k.Reactions, api+"/reactions"),
	}
}

func (j encoder) commentPage(k *Comment) string {
	return j.issuePage(k.issue) + "#issuecomment-" + itoa(k.ID)
}

func (j encoder) reaction(re *Reaction) obj {
	return obj{
		"id": re.ID, "node_id": re.NodeID, "user": j.user(re.User), "content": re.Content,
		"created_at": stamp(re.CreatedAt),
	}
}

// event encodes an entry of an issue's events or timeline.
func (j encoder) event(i *Issue, e *Event) obj {
	api := j.api("/repos/%s/issues/events/%d", i.repo.FullName(), e.ID)
	o := obj{
		"id": e.ID, "node_id": e.NodeID, "url": api, "actor": j.user(e.Actor), "event": e.Event,
		"commit_id": orNull(e.CommitID), "commit_url": nil, "created_at": stamp(e.CreatedAt),
		"performed_via_github_app": j.performedVia(e.ViaApp),
	}
	if e.CommitID != "" {
		o["commit_url"] = j.api("/repos/%s/commits/%s", i.repo.FullName(), e.CommitID)
	}
	switch e.Event {
	case "labeled", "unlabeled":
		l := j.label(i.repo, e.Label)
		o["label"] = obj{"name": l["name"], "color": l["color"]}
	case "assigned", "unassigned":
		o["assignee"], o["assigner"] = j.user(e.Assignee), j.user(e.Actor)
	case "renamed":
		o["rename"] = obj{"from": e.RenameFrom, "to": e.RenameTo}
	case "locked", "unlocked":
		o["lock_reason"] = orNull(e.LockReason)
	case "review_requested", "review_request_removed":
		o["review_requester"], o["requested_reviewer"] = j.user(e.Actor), j.user(e.Reviewer)
	}
	return o
}
