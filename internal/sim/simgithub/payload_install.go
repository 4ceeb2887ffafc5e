package simgithub

import "strings"

func lower(v string) string { return strings.ToLower(v) }

// emitRef sends create or delete for a branch or tag.
func (x *session) emitRef(r *Repo, ref string, created, deleted bool) {
	kind, name := "branch", strings.TrimPrefix(ref, "refs/heads/")
	if tag, ok := strings.CutPrefix(ref, "refs/tags/"); ok {
		kind, name = "tag", tag
	}
	more := obj{"ref": name, "ref_type": kind, "pusher_type": "user"}
	switch {
	case created:
		more["master_branch"], more["description"] = r.DefaultBranch, nil
		x.emit(r, "create", x.payload(r, "", more))
	case deleted:
		x.emit(r, "delete", x.payload(r, "", more))
	}
}

// emitInstallation sends installation.*, which every App gets without subscribing.
func (x *session) emitInstallation(in *Installation, action string) {
	x.s.hooks.enqueue(x.s.newDelivery(delivery{Event: "installation", Action: action, Installation: in.ID}, obj{
		"action": action, "installation": x.s.installationJSON(in), "sender": x.s.userJSON(x.login()),
		"repositories": x.s.shortRepos(in.RepoIDs),
	}))
}

// emitInstallationRepos sends installation_repositories.added or removed.
func (x *session) emitInstallationRepos(in *Installation, action string, r *Repo) {
	o := obj{
		"action": action, "installation": x.s.installationJSON(in), "sender": x.s.userJSON(x.login()),
		"repository_selection": "selected", "repositories_added": []any{}, "repositories_removed": []any{}, "requester": nil,
	}
	o["repositories_"+action] = x.s.shortRepos([]int64{r.ID})
	x.s.hooks.enqueue(x.s.newDelivery(
		delivery{Event: "installation_repositories", Action: action, Installation: in.ID}, o))
}

func (s *Sim) shortRepos(ids []int64) []any {
	out := []any{}
	for _, id := range ids {
		if r, ok := s.repoByID(id); ok {
			out = append(out, obj{"id": r.ID, "node_id": r.NodeID, "name": r.Name, "full_name": r.FullName(), "private": r.Private})
		}
	}
	return out
}

func (s *Sim) repoByID(id int64) (*Repo, bool) {
	r, ok := s.nodes[nodeID("R", id)].(*Repo)
	return r, ok
}

// eventPermission is what an installation must have been granted to be sent an event.
func eventPermission(event string) string {
	switch event {
	case "issues", "issue_comment", "sub_issues", "issue_dependencies":
		return "issues"
	case "pull_request", "pull_request_review", "pull_request_review_comment", "pull_request_review_thread":
		return "pull_requests"
	case "push", "create", "delete":
		return "contents"
	case "check_run", "check_suite":
		return "checks"
	case "status":
		return "statuses"
	default:
		return "metadata"
	}
}

// emit sends an event to the App, if it is installed there, has subscribed and was granted the right to see it.
func (x *session) emit(r *Repo, event string, payload obj) {
	for _, in := range x.s.installs {
		if !in.has(r.ID) || in.Suspended || !x.s.subscribed(event) {
			continue
		}
		perm := eventPermission(event)
		if perm != "metadata" && levelRank(in.Permissions[perm]) < levelRank("read") {
			continue
		}
		payload["installation"] = obj{"id": in.ID, "node_id": in.NodeID}
		action, _ := payload["action"].(string)
		x.s.hooks.enqueue(x.s.newDelivery(
			delivery{Event: event, Action: action, Installation: in.ID, Repository: r.ID}, payload))
	}
}

func (s *Sim) subscribed(event string) bool {
	for _, e := range s.app.Events {
		if e == event {
			return true
		}
	}
	return false
}
