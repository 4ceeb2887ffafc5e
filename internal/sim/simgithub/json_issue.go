package simgithub

// issueJSON is an issue, or the issue side of a pull request.
func (s *Sim) issueJSON(i *Issue) obj {
	r := i.repo
	api := s.api("/repos/%s/issues/%d", r.FullName(), i.Number)
	o := obj{
		"id": i.ID, "node_id": i.NodeID, "url": api, "repository_url": s.api("/repos/%s", r.FullName()),
		"labels_url": api + "/labels{/name}", "comments_url": api + "/comments", "events_url": api + "/events",
		"timeline_url": api + "/timeline", "html_url": s.issuePage(i), "number": i.Number, "state": i.State,
		"state_reason": orNull(i.StateReason), "title": i.Title, "body": orNull(i.Body), "user": s.userJSON(i.Author),
		"labels": s.labelsJSON(i), "assignee": nil, "assignees": s.usersJSON(i.Assignees), "milestone": s.milestoneJSON(i),
		"locked": i.Locked, "active_lock_reason": orNull(i.LockReason), "comments": len(i.Comments),
		"closed_at": stamp(i.ClosedAt), "created_at": stamp(i.CreatedAt), "updated_at": stamp(i.UpdatedAt),
		"author_association": r.association(i.Author), "reactions": reactionRollup(i.Reactions, api+"/reactions"),
		"performed_via_github_app": s.performedVia(i.ViaApp), "type": s.typeJSON(i),
		"sub_issues_summary":         s.subIssueSummary(i),
		"issue_dependencies_summary": s.dependencySummary(i),
	}
	if len(i.Assignees) > 0 {
		o["assignee"] = s.userJSON(i.Assignees[0])
	}
	if parent, ok := s.issueByID(i.Parent); ok {
		o["parent_issue_url"] = s.api("/repos/%s/issues/%d", parent.repo.FullName(), parent.Number)
	}
	if i.Pull != nil {
		o["draft"] = i.Pull.Draft
		o["pull_request"] = obj{
			"url":      s.api("/repos/%s/pulls/%d", r.FullName(), i.Number),
			"html_url": s.issuePage(i), "diff_url": s.issuePage(i) + ".diff", "patch_url": s.issuePage(i) + ".patch",
			"merged_at": stamp(i.Pull.MergedAt),
		}
	}
	return o
}

// fullIssueJSON has also who closed it, which lists leave out.
func (s *Sim) fullIssueJSON(i *Issue) obj {
	o := s.issueJSON(i)
	o["closed_by"] = s.userJSON(i.ClosedBy)
	return o
}

// sentIssueJSON is an issue as payloads hold it.
func (s *Sim) sentIssueJSON(i *Issue) obj {
	o := s.issueJSON(i)
	delete(o, "parent_issue_url")
	return o
}

func (s *Sim) issuePage(i *Issue) string {
	kind := "issues"
	if i.Pull != nil {
		kind = "pull"
	}
	return s.html("/%s/%s/%d", i.repo.FullName(), kind, i.Number)
}

func (s *Sim) milestoneJSON(i *Issue) any {
	if i.Milestone == "" {
		return nil
	}
	api := s.api("/repos/%s/milestones/1", i.repo.FullName())
	return obj{
		"url": api, "html_url": s.html("/%s/milestone/1", i.repo.FullName()), "labels_url": api + "/labels", "id": 1,
		"node_id": nodeID("MI", 1), "number": 1, "title": i.Milestone, "description": nil, "creator": s.userJSON(i.repo.Owner),
		"open_issues": 0, "closed_issues": 0, "state": "open", "created_at": stamp(i.repo.CreatedAt),
		"updated_at": stamp(i.repo.CreatedAt), "due_on": nil, "closed_at": nil,
	}
}

func (s *Sim) typeJSON(i *Issue) any {
	if i.Type == "" {
		return nil
	}
	return obj{
		"id": 1, "node_id": nodeID("IT", 1), "name": i.Type, "description": nil, "color": "gray", "is_enabled": true,
		"created_at": stamp(i.repo.CreatedAt), "updated_at": stamp(i.repo.CreatedAt),
	}
}

func (s *Sim) subIssueSummary(i *Issue) obj {
	done := 0
	for _, id := range i.SubIssues {
		if c, ok := s.issueByID(id); ok && c.State == "closed" {
			done++
		}
	}
	percent := 0
	if len(i.SubIssues) > 0 {
		percent = 100 * done / len(i.SubIssues)
	}
	return obj{"total": len(i.SubIssues), "completed": done, "percent_completed": percent}
}

func (s *Sim) dependencySummary(i *Issue) obj {
	open := 0
	for _, id := range i.BlockedBy {
		if b, ok := s.issueByID(id); ok && b.State == "open" {
			open++
		}
	}
	blocking := s.blocking(i)
	openBlocking := 0
	if i.State == "open" {
		openBlocking = len(blocking)
	}
	return obj{
		"blocked_by": open, "total_blocked_by": len(i.BlockedBy), "blocking": openBlocking, "total_blocking": len(blocking),
	}
}

// commentJSON is a comment of a conversation.
func (s *Sim) commentJSON(k *Comment) obj {
	r := k.issue.repo
	api := s.api("/repos/%s/issues/comments/%d", r.FullName(), k.ID)
	return obj{
		"id": k.ID, "node_id": k.NodeID, "url": api, "html_url": s.commentPage(k),
		"issue_url": s.api("/repos/%s/issues/%d", r.FullName(), k.issue.Number), "body": k.Body,
		"user": s.userJSON(k.Author), "created_at": stamp(k.CreatedAt), "updated_at": stamp(k.UpdatedAt),
		"author_association": r.association(k.Author), "performed_via_github_app": s.performedVia(k.ViaApp),
		"reactions": reactionRollup(k.Reactions, api+"/reactions"),
	}
}

func (s *Sim) commentPage(k *Comment) string {
	return s.issuePage(k.issue) + "#issuecomment-" + itoa(k.ID)
}

func (s *Sim) reactionJSON(re *Reaction) obj {
	return obj{
		"id": re.ID, "node_id": re.NodeID, "user": s.userJSON(re.User), "content": re.Content,
		"created_at": stamp(re.CreatedAt),
	}
}

// eventJSON is an entry of an issue's events or timeline.
func (s *Sim) eventJSON(i *Issue, e *Event) obj {
	api := s.api("/repos/%s/issues/events/%d", i.repo.FullName(), e.ID)
	o := obj{
		"id": e.ID, "node_id": e.NodeID, "url": api, "actor": s.userJSON(e.Actor), "event": e.Event,
		"commit_id": orNull(e.CommitID), "commit_url": nil, "created_at": stamp(e.CreatedAt),
		"performed_via_github_app": s.performedVia(e.ViaApp),
	}
	if e.CommitID != "" {
		o["commit_url"] = s.api("/repos/%s/commits/%s", i.repo.FullName(), e.CommitID)
	}
	switch e.Event {
	case "labeled", "unlabeled":
		l := s.labelJSON(i.repo, e.Label)
		o["label"] = obj{"name": l["name"], "color": l["color"]}
	case "assigned", "unassigned":
		o["assignee"], o["assigner"] = s.userJSON(e.Assignee), s.userJSON(e.Actor)
	case "renamed":
		o["rename"] = obj{"from": e.RenameFrom, "to": e.RenameTo}
	case "locked", "unlocked":
		o["lock_reason"] = orNull(e.LockReason)
	case "review_requested", "review_request_removed":
		o["review_requester"], o["requested_reviewer"] = s.userJSON(e.Actor), s.userJSON(e.Reviewer)
	case "closed":
		o["state_reason"] = orNull(i.StateReason)
	}
	return o
}
