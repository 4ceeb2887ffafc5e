package simgithub

import (
	"net/http"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

func repoRoutes() []route {
	return []route{
		{"GET", "/repos/{owner}/{repo}", getRepo},
		{"GET", "/repositories/{id}", getRepoByID},
		{"GET", "/repos/{owner}/{repo}/branches", listBranches},
		{"GET", "/repos/{owner}/{repo}/branches/{branch...}", getBranch},
		{"GET", "/repos/{owner}/{repo}/collaborators", listCollaborators},
		{"GET", "/repos/{owner}/{repo}/collaborators/{login}/permission", getPermission},
		{"GET", "/repos/{owner}/{repo}/collaborators/{login}", isCollaborator},
		{"GET", "/repos/{owner}/{repo}/assignees", listAssignees},
		{"GET", "/repos/{owner}/{repo}/assignees/{login}", isAssignee},
	}
}

func getRepo(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	return c.fullRepoJSON(r), nil
}

func getRepoByID(c *call) (any, error) {
	r, ok := c.s.find.repo(c.id("id"))
	if !ok || !c.sees(r) {
		return nil, errNotFound()
	}
	return c.fullRepoJSON(r), nil
}

func (c *call) readable() (*Repo, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	return r, c.need(r, "contents", "read", RoleRead)
}

func listBranches(c *call) (any, error) {
	r, err := c.readable()
	if err != nil {
		return nil, err
	}
	refs, err := r.Git.Refs("refs/heads/")
	if err != nil {
		return nil, err
	}
	return each(page(c, refs), func(f git.Ref) obj {
		name := f.Name[len("refs/heads/"):]
		return obj{"name": name, "commit": c.s.json.shortCommit(r, f.SHA), "protected": r.isProtected(name)}
	}), nil
}

func getBranch(c *call) (any, error) {
	r, err := c.readable()
	if err != nil {
		return nil, err
	}
	name := c.vars["branch"]
	commit := r.Git.Commit("refs/heads/" + name)
	if commit == nil {
		return nil, &Error{Status: http.StatusNotFound, Message: "Branch not found"}
	}
	api := c.s.json.api("/repos/%s/branches/%s", r.FullName(), name)
	return obj{
		"name": name, "commit": c.s.json.commit(r, commit), "protected": r.isProtected(name), "protection_url": api + "/protection",
		"_links":     obj{"self": api, "html": c.s.json.html("/%s/tree/%s", r.FullName(), name)},
		"protection": r.protection(name),
	}, nil
}

func listCollaborators(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	if err := c.need(r, "metadata", "read", RoleWrite); err != nil {
		return nil, err
	}
	return each(page(c, r.Explicit()), func(login string) obj {
		o, _ := c.s.json.user(login).(obj)
		o["permissions"], o["role_name"] = rolePermissions(r.RoleOf(login)), string(r.RoleOf(login))
		return o
	}), nil
}

func getPermission(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	if err := c.need(r, "metadata", "read", RoleWrite); err != nil {
		return nil, err
	}
	u, ok := c.s.users[c.vars["login"]]
	if !ok || u.Type != TypeUser {
		return nil, &Error{Status: http.StatusNotFound, Message: c.vars["login"] + " is not a user"}
	}
	role := r.RoleOf(u.Login)
	user, _ := c.s.json.user(u.Login).(obj)
	user["permissions"], user["role_name"] = rolePermissions(role), string(role)
	return obj{"permission": role.legacy(), "role_name": string(role), "user": user}, nil
}

func isCollaborator(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	if _, ok := r.Collaborators[c.vars["login"]]; !ok && c.vars["login"] != r.Owner {
		return nil, errNotFound()
	}
	return nil, nil
}

func listAssignees(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	var logins []string
	for _, login := range r.Explicit() {
		if c.s.find.assignableIn(r, login) {
			logins = append(logins, login)
		}
	}
	return c.s.json.users(page(c, logins)), nil
}

func isAssignee(c *call) (any, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	if !c.s.find.assignableIn(r, c.vars["login"]) {
		return nil, errNotFound()
	}
	return nil, nil
}
