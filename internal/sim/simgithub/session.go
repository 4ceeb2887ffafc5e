package simgithub

import (
	"strings"
	"time"
)

// token is what a credential stands for: a person, or an installation with a subset of its repositories and permissions.
type token struct {
	user    *User
	install *Installation
	repos   []int64 // nil: all of the installation
	perms   map[string]string
	expires time.Time // zero: never
	key     string
}

// session is one actor acting. All its methods need the lock of the Sim.
type session struct {
	s   *Sim
	by  *User  // who acts; the bot account for an installation; nil for a stranger or an App's JWT
	tok *token // set for an installation token
	jwt bool   // the App itself
	bad error  // credentials were sent but are not valid
}

func (s *Sim) session(u *User) *session { return &session{s: s, by: u} }

// viaApp tells whether the act is done with an installation token.
func (x *session) viaApp() bool { return x.tok != nil }

// login is who acts, "ghost" for nobody.
func (x *session) login() string {
	if x.by == nil {
		return "ghost"
	}
	return x.by.Login
}

func repoKey(full string) string { return strings.ToLower(full) }

// repo finds a repository that the actor may know of; others are a 404.
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

// granted tells whether the installation token reaches a repository.
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

// need asks for a permission: an installation needs perm at a level, a person needs a role.
// level is "read" or "write". Several permissions parted by "|" mean that any of them will do.
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

// issue finds an issue or pull request by number.
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

// pull finds a pull request by number.
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

// writeTalk asks for the right to take part in a conversation: an App needs issues (or pull requests for those) and may
// not when it is locked, a person needs read, and write when it is locked.
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

// triage asks for the right to change what an issue is: labels, assignees, state.
func (x *session) triage(i *Issue) error {
	perm := "issues"
	if i.Pull != nil {
		perm = "issues|pull_requests"
	}
	return x.need(i.repo, perm, "write", RoleTriage)
}

// own asks for the right to change a text: its author may, and who has write.
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
