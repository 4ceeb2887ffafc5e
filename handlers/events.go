package handlers

import "slices"

// mapped marks an action that is mapped to an event if it concerns a task.
const mapped = ""

// treatments returns, for each event that errand subscribes to and each of its actions, either mapped or the reason why
// it has no effect. Events without actions use the empty action.
func treatments() map[string]map[string]string {
	const (
		another  = "it changes neither who should work on the issue nor the task's description"
		display  = "it changes only how the issue is displayed"
		gathered = "errand reads reviews, threads and heads when a review round begins"
		suites   = "errand waits for the suite's completed event"
		own      = "errand creates no check runs that could be requested"
		lists    = "errand reads milestone and type when a run begins"
	)
	return map[string]map[string]string{
		"issues": {
			"assigned": mapped, "unassigned": mapped, "labeled": mapped, "unlabeled": mapped, "edited": mapped, "closed": mapped, "deleted": mapped,
			"transferred": mapped, "locked": mapped, "unlocked": mapped, "opened": mapped,
			"reopened": "errand works on it again only when somebody requests it",
			"pinned":   display, "unpinned": display, "milestoned": lists, "demilestoned": lists, "typed": lists, "untyped": lists,
			"field_added": another, "field_removed": another,
		},
		"issue_comment": {
			"created": mapped, "edited": mapped, "deleted": mapped, "pinned": display, "unpinned": display,
		},
		"pull_request": {
			"closed": mapped, "reopened": mapped, "converted_to_draft": mapped, "ready_for_review": mapped, "dequeued": mapped, "opened": "errand opened it itself, or it is not errand's",
			"edited": gathered, "synchronize": "the push arrives as a push event", "review_requested": gathered, "review_request_removed": gathered,
			"assigned": another, "unassigned": another, "labeled": another,
			"unlabeled": another, "milestoned": another, "demilestoned": another, "locked": "errand notices the lock when it posts a comment",
			"unlocked": "errand notices the lock when it posts a comment", "auto_merge_enabled": "the merge arrives as a closed event",
			"auto_merge_disabled": "the merge arrives as a closed event", "enqueued": "the merge arrives as a closed event",
		},
		"pull_request_review":         {"submitted": mapped, "edited": gathered, "dismissed": mapped},
		"pull_request_review_comment": {"created": mapped, "edited": gathered, "deleted": gathered},
		"pull_request_review_thread":  {"resolved": mapped, "unresolved": gathered},
		"push":                        {"": mapped},
		"check_run":                   {"created": mapped, "completed": mapped, "rerequested": own, "requested_action": own},
		"check_suite":                 {"completed": mapped, "requested": suites, "rerequested": suites},
		"workflow_run":                {"requested": suites, "in_progress": suites, "completed": "its checks arrive as check_suite events"},
		"status":                      {"": mapped},
		"installation": {
			"created": mapped, "deleted": mapped, "suspend": mapped, "unsuspend": mapped, "new_permissions_accepted": mapped,
		},
		"installation_repositories": {"added": mapped, "removed": mapped},
		"repository": {
			"renamed": mapped, "transferred": mapped, "edited": mapped, "deleted": mapped, "publicized": mapped, "privatized": mapped,
			"created": "a new repository has no tasks", "archived": "GitHub rejects writes to it, and the task reports that", "unarchived": "people can retry their tasks",
		},
		"issue_dependencies": {"blocked_by_added": mapped, "blocked_by_removed": mapped, "blocking_added": mapped, "blocking_removed": mapped},
		"sub_issues":         {"parent_issue_added": mapped, "parent_issue_removed": mapped, "sub_issue_added": mapped, "sub_issue_removed": mapped},
		"ping":               {"": "GitHub's test event for a new webhook"},
	}
}

// unsubscribed returns the events that errand does not subscribe to, by reason. GitHub sends some of them anyway; they are
// dropped for the same reason.
func unsubscribed() map[string][]string {
	return map[string][]string{
		"GitHub enforces at every call who may use the App":                      {"github_app_authorization", "installation_target", "marketplace_purchase"},
		"errand asks for permissions when it needs them and does not store them": {"member", "membership", "organization", "org_block", "team", "team_add", "public"},
		"changes to branches and tags arrive as push events": {
			"create", "delete", "branch_protection_rule", "branch_protection_configuration", "repository_ruleset",
		},
		"its outcome arrives as check_suite and status events": {
			"deployment", "deployment_status", "deployment_review", "deployment_protection_rule", "workflow_dispatch", "workflow_job", "merge_group",
		},
		"it concerns no issue or pull request of a task": {
			"commit_comment", "discussion", "discussion_comment", "fork", "gollum", "label", "milestone", "package", "registry_package", "page_build", "project",
			"project_card", "project_column", "projects_v2", "projects_v2_item", "projects_v2_status_update", "release", "repository_dispatch", "repository_import",
			"sponsorship", "star", "watch", "custom_property", "custom_property_values", "custom_property_promoted_to_enterprise", "meta", "deploy_key",
		},
		"errand does not process security alerts": {
			"code_scanning_alert", "dependabot_alert", "repository_vulnerability_alert", "repository_advisory", "secret_scanning_alert",
			"secret_scanning_alert_location", "secret_scanning_scan", "security_advisory", "security_and_analysis",
			"bypass_request_push_ruleset", "bypass_request_secret_scanning", "dismissal_request_code_scanning",
			"dismissal_request_dependabot", "dismissal_request_secret_scanning", "exemption_request_push_ruleset", "exemption_request_secret_scanning",
			"personal_access_token_request",
		},
	}
}

// Treatment reports whether a webhook is handled, or why it has no effect. A handled webhook can still have no effect,
// for example if it concerns no task; Map returns the reason. known is false for events and actions that this version
// does not list, which are ignored.
func Treatment(event, action string) (handled bool, reason string, known bool) {
	if actions, ok := treatments()[event]; ok {
		reason, known = actions[action]
		if !known {
			reason = "errand does not know this action"
		}
		return known && reason == mapped, reason, known
	}
	for reason, events := range unsubscribed() {
		if slices.Contains(events, event) {
			return false, reason, true
		}
	}
	return false, "errand does not know this event", false
}
