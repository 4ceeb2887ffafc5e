package simgithub

import (
	"net/http"
	"slices"
	"strings"
)

// TransferRepo transfers a repository to another owner, whose account it creates if there is none. The id stays. GET
// requests of the old address are redirected. The installation of the old owner loses it without a webhook. Only if the
// new owner has the App, too (installed), it receives repository.transferred from that installation.
func (s *Sim) TransferRepo(full, owner string, installed bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(full)]
	if !ok {
		return errNotFound()
	}
	if _, taken := s.repos[repoKey(owner+"/"+r.Name)]; taken {
		return errInvalid("Repository", "name", "already_exists")
	}
	to, from := s.addUser(owner, TypeUser), s.users[r.Owner]
	for _, in := range s.installs {
		in.RepoIDs = slices.DeleteFunc(in.RepoIDs, func(id int64) bool { return id == r.ID })
	}
	delete(s.repos, repoKey(full))
	s.moved[repoKey(full)] = r.ID
	r.Collaborators[r.Owner] = RoleWrite
	delete(r.Collaborators, owner)
	r.Owner = owner
	s.repos[repoKey(r.FullName())] = r
	delete(s.moved, repoKey(r.FullName()))
	if installed {
		s.install(r)
		s.session(to).webhooks().repository("transferred", r, obj{"changes": obj{"owner": obj{"from": obj{"user": s.json.user(from.Login)}}}})
	}
	return nil
}

// DeleteIssue deletes an issue: later requests for it get a 410.
func (p Person) DeleteIssue(repo string, number int) error {
	return p.onIssue(repo, number, func(x *session, i *Issue) error {
		if err := x.need(i.repo, "issues", "write", RoleAdmin); err != nil {
			return err
		}
		x.webhooks().issue("deleted", i, nil)
		x.forget(i)
		i.repo.left[i.Number] = nil
		return nil
	})
}

// TransferIssue moves an issue with its conversation to another repository of the same owner and returns its new
// number. Its labels are dropped. The old address is redirected.
func (p Person) TransferIssue(repo string, number int, target string) (out int, err error) {
	err = p.onIssue(repo, number, func(x *session, i *Issue) error {
		r, err := x.repo(target)
		if err != nil {
			return err
		}
		for _, at := range []*Repo{i.repo, r} {
			if err := x.need(at, "issues", "write", RoleWrite); err != nil {
				return err
			}
		}
		if r == i.repo || r.Owner != i.repo.Owner || i.Pull != nil {
			return errUnprocessable("issues are transferred between repositories of one owner")
		}
		moved := x.movedTo(i, r)
		out = moved.Number
		x.webhooks().issue("transferred", i, obj{"changes": obj{"new_issue": x.s.json.sentIssue(moved), "new_repository": x.s.json.sentRepo(r)}})
		old, from := x.s.json.sentIssue(i), x.s.json.sentRepo(i.repo)
		x.forget(i)
		i.repo.left[i.Number] = moved
		x.webhooks().issue("opened", moved, obj{"changes": obj{"old_issue": old, "old_repository": from}})
		return nil
	})
	return out, err
}

// movedTo returns a copy of an issue for another repository.
func (x *session) movedTo(i *Issue, r *Repo) *Issue {
	n := x.newIssue(r, i.Title, i.Body)
	n.Author, n.ViaApp, n.CreatedAt, n.State, n.StateReason, n.Locked = i.Author, i.ViaApp, i.CreatedAt, i.State, i.StateReason, i.Locked
	n.Events, n.Reactions, n.Edits, n.Comments = i.Events, i.Reactions, i.Edits, i.Comments
	n.Assignees = slices.DeleteFunc(slices.Clone(i.Assignees), func(login string) bool { return !x.s.find.assignable(n, login) })
	for _, k := range n.Comments {
		k.issue = n
	}
	return n
}

// forget removes an issue from its repository.
func (x *session) forget(i *Issue) {
	delete(i.repo.Issues, i.Number)
	delete(x.s.nodes, i.NodeID)
	if i.repo.left == nil {
		i.repo.left = map[int]*Issue{}
	}
}

// left returns the error for a deleted or transferred issue, or nil.
func (c *call) left(number int) error {
	r, err := c.repository()
	if err != nil {
		return nil
	}
	to, ok := r.left[number]
	switch {
	case !ok:
		return nil
	case to == nil:
		return &Error{Status: http.StatusGone, Message: "This issue was deleted"}
	}
	_, rest, _ := strings.Cut(c.r.URL.Path, "/issues/"+itoa(int64(number)))
	e := &Error{Status: http.StatusMovedPermanently, Message: "Moved Permanently", Header: http.Header{}}
	e.Header.Set("Location", c.s.json.api("/repositories/%d/issues/%d%s", to.repo.ID, to.Number, rest))
	return e
}

// byID converts a path with the id of a repository to one with its current name.
func (rs restServer) byID(path string) string {
	rest, ok := strings.CutPrefix(path, "/repositories/")
	id, rest, more := strings.Cut(rest, "/")
	if !ok || !more {
		return path
	}
	rs.s.mu.Lock()
	defer rs.s.mu.Unlock()
	for _, r := range rs.s.repos {
		if itoa(r.ID) == id {
			return "/repos/" + r.FullName() + "/" + rest
		}
	}
	return path
}
