package simgithub

import (
	"fmt"
	"net/url"
	"time"
)

// obj is a JSON object. Answers and payloads are built from the same ones, so that both have the same fields.
type obj = map[string]any

func (j encoder) api(format string, args ...any) string {
	return j.s.base + "/api/v3" + fmt.Sprintf(format, args...)
}

func (j encoder) html(format string, args ...any) string {
	return j.s.base + fmt.Sprintf(format, args...)
}

// stamp returns a time in GitHub's format. The zero time is null.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

// orNull returns null for an empty string.
func orNull(v string) any {
	if v == "" {
		return nil
	}
	return v
}

// user encodes the "simple user": null for an empty login, and the ghost for a deleted account.
func (j encoder) user(login string) any {
	if login == "" {
		return nil
	}
	u, ok := j.s.users[login]
	if !ok {
		u = &User{Login: login, Type: TypeUser, NodeID: nodeID("U", 0)}
	}
	api := j.api("/users/%s", url.PathEscape(u.Login))
	return obj{
		"login": u.Login, "id": u.ID, "node_id": u.NodeID, "type": u.Type, "site_admin": false, "user_view_type": "public",
		"avatar_url": j.html("/avatars/u/%d", u.ID), "gravatar_id": "", "url": api,
		"html_url": j.html("/%s", url.PathEscape(u.Login)), "followers_url": api + "/followers",
		"following_url": api + "/following{/other_user}", "gists_url": api + "/gists{/gist_id}",
		"starred_url": api + "/starred{/owner}{/repo}", "subscriptions_url": api + "/subscriptions",
		"organizations_url": api + "/orgs", "repos_url": api + "/repos", "events_url": api + "/events{/privacy}",
		"received_events_url": api + "/received_events",
	}
}

// org encodes an organization as in payloads.
func (j encoder) org(u *User) obj {
	api := j.api("/orgs/%s", u.Login)
	return obj{
		"login": u.Login, "id": u.ID, "node_id": u.NodeID, "url": api, "repos_url": api + "/repos", "events_url": api + "/events",
		"hooks_url": api + "/hooks", "issues_url": api + "/issues", "members_url": api + "/members{/member}",
		"public_members_url": api + "/public_members{/member}", "avatar_url": j.html("/avatars/u/%d", u.ID), "description": nil,
	}
}

func (j encoder) users(logins []string) []any {
	out := make([]any, 0, len(logins))
	for _, l := range logins {
		out = append(out, j.user(l))
	}
	return out
}

// repoLinks lists the addresses in every repository object, as suffixes of its API address.
var repoLinks = [...][2]string{
	{"archive_url", "/{archive_format}{/ref}"}, {"assignees_url", "/assignees{/user}"}, {"blobs_url", "/git/blobs{/sha}"},
	{"branches_url", "/branches{/branch}"}, {"collaborators_url", "/collaborators{/collaborator}"},
	{"comments_url", "/comments{/number}"}, {"commits_url", "/commits{/sha}"}, {"compare_url", "/compare/{base}...{head}"},
	{"contents_url", "/contents/{+path}"}, {"contributors_url", "/contributors"}, {"deployments_url", "/deployments"},
	{"downloads_url", "/downloads"}, {"events_url", "/events"}, {"forks_url", "/forks"}, {"git_commits_url", "/git/commits{/sha}"},
	{"git_refs_url", "/git/refs{/sha}"}, {"git_tags_url", "/git/tags{/sha}"}, {"hooks_url", "/hooks"},
	{"issue_comment_url", "/issues/comments{/number}"}, {"issue_events_url", "/issues/events{/number}"},
	{"issues_url", "/issues{/number}"}, {"keys_url", "/keys{/key_id}"}, {"labels_url", "/labels{/name}"},
	{"languages_url", "/languages"}, {"merges_url", "/merges"}, {"milestones_url", "/milestones{/number}"},
	{"notifications_url", "/notifications{?since,all,participating}"}, {"pulls_url", "/pulls{/number}"},
	{"releases_url", "/releases{/id}"}, {"stargazers_url", "/stargazers"}, {"statuses_url", "/statuses/{sha}"},
	{"subscribers_url", "/subscribers"}, {"subscription_url", "/subscription"}, {"tags_url", "/tags"},
	{"teams_url", "/teams"}, {"trees_url", "/git/trees{/sha}"},
}

// repo encodes a repository as in lists, payloads and pull requests.
func (j encoder) repo(r *Repo) obj {
	api, page := j.api("/repos/%s", r.FullName()), j.html("/%s", r.FullName())
	visibility := "public"
	if r.Private {
		visibility = "private"
	}
	open := 0
	for _, i := range r.Issues {
		if i.State == "open" {
			open++
		}
	}
	o := obj{
		"id": r.ID, "node_id": r.NodeID, "name": r.Name, "full_name": r.FullName(), "private": r.Private,
		"owner": j.user(r.Owner), "html_url": page, "description": nil, "fork": false, "url": api,
		"git_url": page + ".git", "ssh_url": "git@localhost:" + r.FullName() + ".git", "clone_url": page + ".git",
		"svn_url": page, "mirror_url": nil, "homepage": nil, "language": nil, "forks_count": 0, "forks": 0,
		"stargazers_count": 0, "watchers_count": 0, "watchers": 0, "size": 1, "default_branch": r.DefaultBranch,
		"open_issues_count": open, "open_issues": open, "is_template": false, "topics": []any{}, "has_issues": true,
		"has_projects": false, "has_wiki": false, "has_pages": false, "has_downloads": true, "has_discussions": false,
		"archived": r.Archived, "disabled": false, "visibility": visibility, "license": nil, "allow_forking": true,
		"web_commit_signoff_required": false, "created_at": stamp(r.CreatedAt), "updated_at": stamp(r.UpdatedAt),
		"pushed_at": stamp(r.PushedAt),
	}
	for _, l := range repoLinks {
		o[l[0]] = api + l[1]
	}
	return o
}

// fullRepoJSON encodes the answer to GET /repos/{owner}/{repo}.
func (x *session) fullRepoJSON(r *Repo) obj {
	o := x.listedRepoJSON(r)
	o["network_count"], o["subscribers_count"] = 0, 0
	return o
}

// listedRepoJSON encodes a repository as in the list of an installation.
func (x *session) listedRepoJSON(r *Repo) obj {
	o := x.s.json.repo(r)
	for k, v := range (obj{
		"allow_rebase_merge": r.allows("rebase"), "allow_squash_merge": r.allows("squash"),
		"allow_merge_commit": r.allows("merge"), "allow_auto_merge": r.AutoMerge, "delete_branch_on_merge": false,
		"allow_update_branch": false, "use_squash_pr_title_as_default": false, "temp_clone_token": "",
		"squash_merge_commit_message": "COMMIT_MESSAGES", "squash_merge_commit_title": "COMMIT_OR_PR_TITLE",
		"merge_commit_message": "PR_TITLE", "merge_commit_title": "MERGE_MESSAGE", "permissions": x.permissionsOf(r),
	}) {
		o[k] = v
	}
	return o
}

// permissionsOf encodes the permissions of the actor in a repository.
func (x *session) permissionsOf(r *Repo) obj {
	role := RoleRead
	if x.viaApp() {
		if x.granted(r) && levelRank(x.tok.perms["contents"]) >= levelRank("write") {
			role = RoleWrite
		}
	} else if x.by != nil {
		role = r.RoleOf(x.by.Login)
	}
	return rolePermissions(role)
}

func rolePermissions(role Role) obj {
	n := role.Rank()
	return obj{
		"pull": n >= RoleRead.Rank(), "triage": n >= RoleTriage.Rank(), "push": n >= RoleWrite.Rank(),
		"maintain": n >= RoleMaintain.Rank(), "admin": n >= RoleAdmin.Rank(),
	}
}

func (j encoder) label(r *Repo, name string) obj {
	for _, l := range r.Labels {
		if l.Name == name {
			return obj{
				"id": l.ID, "node_id": l.NodeID, "url": j.api("/repos/%s/labels/%s", r.FullName(), url.PathEscape(name)),
				"name": l.Name, "description": orNull(l.Description), "color": l.Color, "default": false,
			}
		}
	}
	return obj{"id": 0, "node_id": "", "url": "", "name": name, "description": nil, "color": "ededed", "default": false}
}

func (j encoder) labels(i *Issue) []any {
	out := make([]any, 0, len(i.Labels))
	for _, l := range i.Labels {
		out = append(out, j.label(i.repo, l))
	}
	return out
}

// association returns the public relation of an author to a repository.
func (r *Repo) association(login string) string {
	switch {
	case login == r.Owner:
		return "OWNER"
	case r.Collaborators[login].Rank() > 0:
		return "COLLABORATOR"
	default:
		return "NONE"
	}
}

// performedVia encodes the App with which something was written, or null.
func (j encoder) performedVia(viaApp bool) any {
	if !viaApp {
		return nil
	}
	o := j.app()
	delete(o, "client_id") // GitHub's descriptions of some webhooks do not have it there
	return o
}

// reactionRollup encodes the number of reactions of each kind.
func reactionRollup(list []*Reaction, address string) obj {
	o := obj{"url": address, "total_count": len(list)}
	for _, c := range reactionContents() {
		o[c] = 0
	}
	for _, re := range list {
		if n, ok := o[re.Content].(int); ok {
			o[re.Content] = n + 1
		}
	}
	return o
}
