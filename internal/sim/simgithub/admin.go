package simgithub

import (
	"net/http"
	"slices"
	"strings"
)

// RenameRepo renames a repository. Its id stays, and GET requests of the old address are redirected, as on GitHub.
func (s *Sim) RenameRepo(full, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(full)]
	if !ok {
		return errNotFound()
	}
	if _, taken := s.repos[repoKey(r.Owner+"/"+name)]; taken {
		return errInvalid("Repository", "name", "already_exists")
	}
	from := r.Name
	delete(s.repos, repoKey(full))
	s.moved[repoKey(full)] = r.ID
	r.Name = name
	s.repos[repoKey(r.FullName())] = r
	delete(s.moved, repoKey(r.FullName()))
	s.session(s.users[r.Owner]).webhooks().repository("renamed", r, obj{
		"changes": obj{"repository": obj{"name": obj{"from": from}}},
	})
	return nil
}

// SetPrivate changes the visibility of a repository.
func (s *Sim) SetPrivate(full string, private bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(full)]
	if !ok {
		return errNotFound()
	}
	r.Private = private
	action := "publicized"
	if private {
		action = "privatized"
	}
	s.session(s.users[r.Owner]).webhooks().repository(action, r, nil)
	return nil
}

// ArchiveRepo makes a repository read-only.
func (s *Sim) ArchiveRepo(full string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(full)]
	if !ok {
		return errNotFound()
	}
	r.Archived = true
	s.session(s.users[r.Owner]).webhooks().repository("archived", r, nil)
	return nil
}

// RemoveFromInstallation removes a repository from its installation of the App.
func (s *Sim) RemoveFromInstallation(full string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(full)]
	if !ok {
		return errNotFound()
	}
	for _, in := range s.installs {
		if in.has(r.ID) {
			in.RepoIDs = slices.DeleteFunc(in.RepoIDs, func(id int64) bool { return id == r.ID })
			in.UpdatedAt = s.now()
			s.session(s.users[r.Owner]).webhooks().installationRepos(in, "removed", r)
		}
	}
	return nil
}

// redirect returns the answer for a renamed repository; ok is false if it was not renamed.
func (c *call) redirect() (a answer, ok bool) {
	id, ok := c.s.moved[repoKey(c.full())]
	if !ok {
		return answer{}, false
	}
	_, rest, _ := strings.Cut(strings.TrimPrefix(c.r.URL.Path, "/api/v3/repos/"+c.vars["owner"]+"/"), "/")
	to := c.s.json.api("/repositories/%d", id)
	if rest != "" {
		to += "/" + rest
	}
	if q := c.r.URL.RawQuery; q != "" {
		to += "?" + q
	}
	c.header.Set("Location", to)
	status := http.StatusMovedPermanently
	if c.r.Method != http.MethodGet {
		status = http.StatusTemporaryRedirect
	}
	e := &Error{Status: status, Message: "Moved Permanently"}
	return answer{status: status, header: c.header, body: e.json()}, true
}
