package simgithub

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"github.com/errand-bot/errand/internal/sim/simgithub/delivery"
)

func lower(v string) string { return strings.ToLower(v) }

// ref sends create or delete for a branch or tag.
func (w webhooks) ref(r *Repo, ref string, created, deleted bool) {
	kind, name := "branch", strings.TrimPrefix(ref, "refs/heads/")
	if tag, ok := strings.CutPrefix(ref, "refs/tags/"); ok {
		kind, name = "tag", tag
	}
	more := obj{"ref": name, "ref_type": kind, "pusher_type": "user"}
	switch {
	case created:
		more["master_branch"], more["description"] = r.DefaultBranch, nil
		w.emit(r, "create", w.payload(r, "", more))
	case deleted:
		w.emit(r, "delete", w.payload(r, "", more))
	}
}

// installation sends installation.*, which every App receives without subscribing.
func (w webhooks) installation(in *Installation, action string) {
	w.send(delivery.Delivery{Event: "installation", Action: action, Installation: in.ID}, obj{
		"action": action, "installation": w.x.s.json.installation(in), "sender": w.x.s.json.user(w.x.login()),
		"repositories": w.x.s.json.shortRepos(in.RepoIDs),
	})
}

// installationRepos sends installation_repositories.added or removed.
func (w webhooks) installationRepos(in *Installation, action string, r *Repo) {
	o := obj{
		"action": action, "installation": w.x.s.json.installation(in), "sender": w.x.s.json.user(w.x.login()),
		"repository_selection": "selected", "repositories_added": []any{}, "repositories_removed": []any{}, "requester": nil,
	}
	o["repositories_"+action] = w.x.s.json.shortRepos([]int64{r.ID})
	w.send(delivery.Delivery{Event: "installation_repositories", Action: action, Installation: in.ID}, o)
}

func (j encoder) shortRepos(ids []int64) []any {
	out := []any{}
	for _, id := range ids {
		if r, ok := j.s.find.repo(id); ok {
			out = append(out, obj{"id": r.ID, "node_id": r.NodeID, "name": r.Name, "full_name": r.FullName(), "private": r.Private})
		}
	}
	return out
}

func (f finder) repo(id int64) (*Repo, bool) {
	r, ok := f.s.nodes[nodeID("R", id)].(*Repo)
	return r, ok
}

// eventPermission returns the permission that an installation needs to receive an event.
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

// emit sends an event to the App if it is installed on the repository, has subscribed to the event and has the
// permission.
func (w webhooks) emit(r *Repo, event string, payload obj) {
	for _, in := range w.x.s.installs {
		if !in.has(r.ID) || in.Suspended || !w.subscribed(event) {
			continue
		}
		perm := eventPermission(event)
		if perm != "metadata" && levelRank(in.Permissions[perm]) < levelRank("read") {
			continue
		}
		payload["installation"] = obj{"id": in.ID, "node_id": in.NodeID}
		action, _ := payload["action"].(string)
		w.send(delivery.Delivery{Event: event, Action: action, Installation: in.ID, Repository: r.ID}, payload)
	}
}

// subscribed reports whether the App subscribes to an event.
func (w webhooks) subscribed(event string) bool {
	for _, e := range w.x.s.app.Events {
		if e == event {
			return true
		}
	}
	return false
}

// send delivers a payload as it is now.
func (w webhooks) send(d delivery.Delivery, payload obj) {
	s := w.x.s
	body, err := json.Marshal(payload)
	if err != nil { // payloads contain only values that can be marshaled
		s.log.Error().Err(err).Str("event", d.Event).Msg("failed to marshal the payload of a webhook")
	}
	d.ID, d.GUID, d.Payload, d.URL, d.Secret = s.newID(), uuid.NewString(), body, s.app.WebhookURL, s.app.WebhookSecret
	s.hooks.Send(&d)
}
