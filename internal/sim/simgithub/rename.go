package simgithub

// RenameUser changes the login of an account. Its id, node id and token stay, and the old login can be used by others.
func (s *Sim) RenameUser(from, to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.users[from]
	if !ok {
		return errNotFound()
	}
	if _, taken := s.users[to]; taken {
		return errInvalid("User", "login", "already_exists")
	}
	for _, r := range s.repos {
		if r.Owner == from {
			return errUnprocessable("renaming the owner of a repository is not simulated")
		}
	}
	renamed := *u
	renamed.Login = to
	delete(s.users, from)
	s.users[to] = &renamed
	s.nodes[u.NodeID] = &renamed
	for _, t := range s.tokens {
		if t.user == u {
			t.user = &renamed
		}
	}
	rename := func(login *string) {
		if *login == from {
			*login = to
		}
	}
	for _, r := range s.repos {
		r.rename(from, to, rename)
	}
	return nil
}

// rename changes a login everywhere in a repository.
func (r *Repo) rename(from, to string, rename func(*string)) {
	if role, ok := r.Collaborators[from]; ok {
		delete(r.Collaborators, from)
		r.Collaborators[to] = role
	}
	for _, k := range r.Statuses {
		rename(&k.Creator)
	}
	for _, i := range r.Issues {
		i.rename(rename)
		if i.Pull != nil {
			i.Pull.rename(rename)
		}
	}
}

func (i *Issue) rename(rename func(*string)) {
	rename(&i.Author)
	rename(&i.ClosedBy)
	for n := range i.Assignees {
		rename(&i.Assignees[n])
	}
	for _, e := range i.Events {
		rename(&e.Actor)
		rename(&e.Assignee)
		rename(&e.Reviewer)
	}
	renameAll(i.Reactions, i.Edits, rename)
	for _, k := range i.Comments {
		rename(&k.Author)
		renameAll(k.Reactions, k.Edits, rename)
	}
}

func (p *Pull) rename(rename func(*string)) {
	rename(&p.MergedBy)
	if p.AutoMerge != nil {
		rename(&p.AutoMerge.EnabledBy)
	}
	if p.Queued != nil {
		rename(&p.Queued.Enqueuer)
	}
	for n := range p.RequestedReviewers {
		rename(&p.RequestedReviewers[n])
	}
	for _, v := range p.Reviews {
		rename(&v.Author)
	}
	for _, t := range p.Threads {
		rename(&t.ResolvedBy)
		for _, k := range t.Comments {
			rename(&k.Author)
			renameAll(k.Reactions, k.Edits, rename)
		}
	}
}

func renameAll(reactions []*Reaction, edits []Edit, rename func(*string)) {
	for _, re := range reactions {
		rename(&re.User)
	}
	for n := range edits {
		rename(&edits[n].Editor)
	}
}
