package simgithub

import (
	"strings"
	"time"
)

// token is the meaning of a credential: a person, or an installation with some of its repositories and permissions.
type token struct {
	user    *User
	install *Installation
	repos   []int64 // nil: all of the installation
	perms   map[string]string
	expires time.Time // zero: never
	signIn  bool      // of a person who authorized the App, by the web flow
}

// session is the sender of a request, or a person who acts. Its methods check permissions, and need the lock of the
// Sim.
type session struct {
	s   *Sim
	by  *User  // the actor; the bot account for an installation; nil without an account or for an App's JWT
	tok *token // set for an installation token
	jwt bool   // the App itself
	// signedIn is set for the token of a person who authorized the App.
	signedIn bool
	bad      error // credentials were sent but are not valid
}

func (s *Sim) session(u *User) *session { return &session{s: s, by: u} }

// viaApp reports whether the actor uses an installation token.
func (x *session) viaApp() bool { return x.tok != nil }

// login returns the login of the actor, or "ghost" without an account.
func (x *session) login() string {
	if x.by == nil {
		return "ghost"
	}
	return x.by.Login
}

func repoKey(full string) string { return strings.ToLower(full) }

// repo returns a repository that the actor may see. The error is a 404 for others.
func (x *session) repo(full string) (*Repo, error) {
	r, ok := x.s.repos[repoKey(full)]
	if !ok || !x.sees(r) {
		return nil, errNotFound()
	}
	return r, nil
}

func (x *session) sees(r *Repo) bool {
	switch {
	case x.viaApp():
		return x.granted(r) || !r.Private
	case x.by == nil:
		return !r.Private
	default:
		return r.RoleOf(x.by.Login).Rank() >= RoleRead.Rank()
	}
}

// granted reports whether the installation token may access a repository.
func (x *session) granted(r *Repo) bool {
	if x.tok == nil || !x.tok.install.has(r.ID) {
		return false
	}
	if x.tok.repos == nil {
		return true
	}
	for _, id := range x.tok.repos {
		if id == r.ID {
			return true
		}
	}
	return false
}

// need returns an error without a permission: an installation needs perm at a level, a person needs a role.
// Level is "read" or "write". Of several permissions separated by "|", one is enough.
func (x *session) need(r *Repo, perm, level string, role Role) error {
	if err := x.allowed(r, perm, level, role); err != nil {
		return err
	}
	if level != "read" && r.Archived {
		return errForbidden("Repository was archived so is read-only.")
	}
	return nil
}

func (x *session) allowed(r *Repo, perm, level string, role Role) error {
	if x.viaApp() {
		if !x.granted(r) {
			return errIntegration()
		}
		for p := range strings.SplitSeq(perm, "|") {
			if levelRank(x.tok.perms[p]) >= levelRank(level) && levelRank(x.tok.install.Permissions[p]) >= levelRank(level) {
				return nil
			}
		}
		return errIntegration()
	}
	if x.by == nil {
		if level == "read" && !r.Private {
			return nil
		}
		return errNeedAuth()
	}
	if r.RoleOf(x.by.Login).Rank() < role.Rank() {
		return errForbidden("Must have %s rights to Repository.", role)
	}
	return nil
}

func levelRank(level string) int {
	switch level {
	case "read":
		return 1
	case "write":
		return 2
	case "admin":
		return 3
	default:
		return 0
	}
}

// issue returns an issue or pull request by number.
func (x *session) issue(full string, number int) (*Issue, error) {
	r, err := x.repo(full)
	if err != nil {
		return nil, err
	}
	i, ok := r.Issues[number]
	if !ok {
		return nil, errNotFound()
	}
	if i.Pull != nil {
		return i, x.need(r, "issues|pull_requests", "read", RoleRead)
	}
	return i, x.need(r, "issues", "read", RoleRead)
}

// pull returns a pull request by number.
func (x *session) pull(full string, number int) (*Pull, error) {
	r, err := x.repo(full)
	if err != nil {
		return nil, err
	}
	i, ok := r.Issues[number]
	if !ok || i.Pull == nil {
		return nil, errNotFound()
	}
	return i.Pull, x.need(r, "pull_requests", "read", RoleRead)
}

// writeTalk returns an error if the actor may not comment. An App needs write permission for issues (or pull requests),
// and the conversation must not be locked. A person needs read access, or write access if it is locked.
func (x *session) writeTalk(i *Issue) error {
	perm := "issues"
	if i.Pull != nil {
		perm = "issues|pull_requests"
	}
	if err := x.need(i.repo, perm, "write", RoleRead); err != nil {
		return err
	}
	if x.by == nil {
		return errNeedAuth()
	}
	if i.Locked && (x.viaApp() || i.repo.RoleOf(x.by.Login).Rank() < RoleWrite.Rank()) {
		return errForbidden("Unable to create comment because issue is locked.")
	}
	return nil
}

// triage returns an error if the actor may not change labels, assignees and state of an issue.
func (x *session) triage(i *Issue) error {
	perm := "issues"
	if i.Pull != nil {
		perm = "issues|pull_requests"
	}
	return x.need(i.repo, perm, "write", RoleTriage)
}

// own returns an error if the actor may not change a text: neither its author nor a user with write access.
func (x *session) own(i *Issue, author string) error {
	if x.by != nil && !x.viaApp() && author == x.by.Login {
		return nil
	}
	perm := "issues"
	if i.Pull != nil {
		perm = "issues|pull_requests"
	}
	return x.need(i.repo, perm, "write", RoleWrite)
}
