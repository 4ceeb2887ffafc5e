package simgithub

import (
	"cmp"
	"time"
)

// AutoMerge is the request to merge a pull request as soon as nothing is missing. It stays when that has happened.
type AutoMerge struct {
	EnabledAt time.Time
	EnabledBy string // who will merge it
	Merge     Merge  // how; without a required head

	tok *token // of the installation that enabled it, or nil
}

// AllowAutoMerge sets whether auto-merge can be enabled for the pull requests of a repository. GitHub's default is no.
func (s *Sim) AllowAutoMerge(repo string, allow bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(repo)]
	if !ok {
		return errNotFound()
	}
	r.AutoMerge = allow
	return nil
}

// EnableAutoMerge merges a pull request as soon as nothing is missing; method is merge (default), squash or rebase.
func (p Person) EnableAutoMerge(repo string, number int, method string) error {
	return p.onPull(repo, number, func(x *session, pr *Pull) error { return x.refs().enableAutoMerge(pr, Merge{Method: method}) })
}

// DisableAutoMerge withdraws EnableAutoMerge. The author of the pull request may do it, too.
func (p Person) DisableAutoMerge(repo string, number int) error {
	return p.onPull(repo, number, func(x *session, pr *Pull) error { return x.refs().disableAutoMerge(pr) })
}

// mayWritePull returns an error if the actor may not merge pull requests by GraphQL.
func (u refs) mayWritePull(r *Repo) error {
	if err := u.x.need(r, "contents", "write", RoleWrite); err != nil {
		return err
	}
	return u.x.need(r, "pull_requests", "write", RoleRead)
}

// enableAutoMerge enables auto-merge for a pull request that cannot be merged yet. One whose base has a merge queue is added to the queue
// as soon as nothing is missing, which may be at once.
func (u refs) enableAutoMerge(p *Pull, in Merge) error {
	r := p.issue.repo
	if err := u.mayWritePull(r); err != nil {
		return err
	}
	_, state := u.x.s.pulls.mergeability(p)
	switch {
	case !r.AutoMerge:
		return errUnprocessable("Auto merge is not allowed for this repository")
	case p.issue.State != "open":
		return errUnprocessable("Pull request is closed")
	case p.Queued != nil:
		return errUnprocessable("Pull request is already in the merge queue")
	case state != "blocked" && state != "behind" && (!r.MergeQueues[p.Base] || state == "draft" || state == "dirty"):
		return errUnprocessable("Pull request Pull request is in %s status", state)
	}
	if err := u.mayUse(p, in); err != nil {
		return err
	}
	in.SHA, in.Method = "", cmp.Or(in.Method, "merge")
	p.AutoMerge = &AutoMerge{EnabledAt: u.x.s.now(), EnabledBy: u.x.login(), Merge: in, tok: u.x.tok}
	p.issue.UpdatedAt = u.x.s.now()
	u.x.webhooks().pull("auto_merge_enabled", p, obj{"reason": ""})
	u.mergeDue(r)
	return nil
}

func (u refs) disableAutoMerge(p *Pull) error {
	if u.x.viaApp() || u.x.login() != p.issue.Author {
		if err := u.mayWritePull(p.issue.repo); err != nil {
			return err
		}
	}
	if p.AutoMerge == nil || p.issue.State != "open" {
		return errUnprocessable("Can't disable auto-merge for this pull request.")
	}
	u.x.stopAutoMerge(p, "")
	return nil
}

// stopAutoMerge disables auto-merge, if it is enabled, for a reason that is empty if somebody asked for it.
func (x *session) stopAutoMerge(p *Pull, reason string) {
	if p.AutoMerge == nil {
		return
	}
	p.AutoMerge, p.issue.UpdatedAt = nil, x.s.now()
	x.webhooks().pull("auto_merge_disabled", p, obj{"reason": reason})
}

// stopMerging disables auto-merge and removes a pull request from the merge queue, because it cannot be merged any more.
func (x *session) stopMerging(p *Pull, reason string) {
	x.stopAutoMerge(p, reason)
	x.leaveQueue(p, "UNKNOWN_REMOVAL_REASON")
}

// mergeDue merges the pull requests of a repository that have auto-merge and lack nothing any more, each as the account that enabled it,
// or adds them to the merge queue of their base. It is called after each change that can be the last one missing. Failures of checks that
// are not required do not matter, as on GitHub.
func (u refs) mergeDue(r *Repo) {
	for _, i := range r.IssuesByNumber() {
		p := i.Pull
		if p == nil || p.AutoMerge == nil || i.State != "open" {
			continue
		}
		if _, state := u.x.s.pulls.mergeability(p); state != "clean" && state != "unstable" {
			continue
		}
		a := *p.AutoMerge
		by := &session{s: u.x.s, by: u.x.s.users[a.EnabledBy], tok: a.tok}
		var err error
		if r.MergeQueues[p.Base] {
			if _, err = by.refs().enqueue(p, "", false); err == nil {
				p.AutoMerge = nil // whoever leaves the queue without a merge has no auto-merge any more
			}
		} else {
			err = by.refs().merge(p, a.Merge)
		}
		if err != nil {
			by.stopAutoMerge(p, message(err))
		}
	}
}
