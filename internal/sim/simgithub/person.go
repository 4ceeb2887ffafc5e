package simgithub

import "maps"

// Person acts as one account, as its owner would in a browser: with that account's permissions, and with every webhook
// that GitHub would send. Repositories are named "owner/name". A refusal is an *Error. Results are copies.
type Person struct {
	s     *Sim
	login string
}

// As returns the person with a login. It creates the account if there is none.
func (s *Sim) As(login string) Person {
	s.AddUser(login)
	return Person{s: s, login: login}
}

// Login returns the login.
func (p Person) Login() string { return p.login }

// do runs one act with the lock of the Sim.
func (p Person) do(act func(x *session) error) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return act(p.s.session(p.s.users[p.login]))
}

// onIssue runs one act on an issue or pull request.
func (p Person) onIssue(repo string, number int, act func(x *session, i *Issue) error) error {
	return p.do(func(x *session) error {
		i, err := x.issue(repo, number)
		if err != nil {
			return err
		}
		return act(x, i)
	})
}

// onPull runs one act on a pull request.
func (p Person) onPull(repo string, number int, act func(x *session, pr *Pull) error) error {
	return p.do(func(x *session) error {
		pr, err := x.pull(repo, number)
		if err != nil {
			return err
		}
		return act(x, pr)
	})
}

// OpenIssue opens an issue.
func (p Person) OpenIssue(repo string, in NewIssue) (out *Issue, err error) {
	err = p.do(func(x *session) error {
		i, err := x.openIssue(repo, in)
		if err == nil {
			out = i.clone()
		}
		return err
	})
	return out, err
}

// EditIssue changes title, body, state, labels or assignees of an issue or pull request.
func (p Person) EditIssue(repo string, number int, in IssueEdit) error {
	return p.onIssue(repo, number, func(x *session, i *Issue) error { return x.editIssue(i, in) })
}

// Close closes an issue or pull request; reason is completed, not_planned or empty.
func (p Person) Close(repo string, number int, reason string) error {
	state := "closed"
	return p.EditIssue(repo, number, IssueEdit{State: &state, StateReason: &reason})
}

// Reopen opens a closed issue or pull request again.
func (p Person) Reopen(repo string, number int) error {
	state := "open"
	return p.EditIssue(repo, number, IssueEdit{State: &state})
}

// Assign adds assignees. It silently ignores those who cannot be assigned.
func (p Person) Assign(repo string, number int, logins ...string) error {
	return p.onIssue(repo, number, func(x *session, i *Issue) error {
		if err := x.triage(i); err != nil {
			return err
		}
		x.assign(i, logins)
		return nil
	})
}

// Unassign removes assignees.
func (p Person) Unassign(repo string, number int, logins ...string) error {
	return p.onIssue(repo, number, func(x *session, i *Issue) error {
		if err := x.triage(i); err != nil {
			return err
		}
		x.unassign(i, logins)
		return nil
	})
}

// AddLabels adds labels to an issue, and creates missing ones.
func (p Person) AddLabels(repo string, number int, names ...string) error {
	return p.onIssue(repo, number, func(x *session, i *Issue) error {
		if err := x.triage(i); err != nil {
			return err
		}
		x.addLabels(i, names)
		return nil
	})
}

// RemoveLabel removes a label from an issue.
func (p Person) RemoveLabel(repo string, number int, name string) error {
	return p.onIssue(repo, number, func(x *session, i *Issue) error {
		if err := x.triage(i); err != nil {
			return err
		}
		return x.removeLabel(i, name)
	})
}

// Lock locks a conversation to users with write access.
func (p Person) Lock(repo string, number int, reason string) error {
	return p.onIssue(repo, number, func(x *session, i *Issue) error { return x.lock(i, true, reason) })
}

// Unlock unlocks a conversation.
func (p Person) Unlock(repo string, number int) error {
	return p.onIssue(repo, number, func(x *session, i *Issue) error { return x.lock(i, false, "") })
}

// AddBlockedBy adds a dependency on another issue, given by its database id.
func (p Person) AddBlockedBy(repo string, number int, blocker int64) error {
	return p.onIssue(repo, number, func(x *session, i *Issue) error { return x.setBlockedBy(i, blocker, true) })
}

// RemoveBlockedBy removes a dependency.
func (p Person) RemoveBlockedBy(repo string, number int, blocker int64) error {
	return p.onIssue(repo, number, func(x *session, i *Issue) error { return x.setBlockedBy(i, blocker, false) })
}

// AddSubIssue makes another issue, given by its database id, a sub-issue of this one.
func (p Person) AddSubIssue(repo string, number int, child int64) error {
	return p.onIssue(repo, number, func(x *session, i *Issue) error { return x.setSubIssue(i, child, true, false) })
}

// Comment adds a comment to an issue or pull request.
func (p Person) Comment(repo string, number int, body string) (out *Comment, err error) {
	err = p.onIssue(repo, number, func(x *session, i *Issue) error {
		k, err := x.comment(i, body)
		if err == nil {
			out = k.clone()
		}
		return err
	})
	return out, err
}

// EditComment changes a comment. Comments of others need write access.
func (p Person) EditComment(repo string, id int64, body string) error {
	return p.do(func(x *session) error {
		k, err := x.commentByID(repo, id)
		if err != nil {
			return err
		}
		return x.editComment(k, body)
	})
}

// DeleteComment deletes a comment. Comments of others need write access.
func (p Person) DeleteComment(repo string, id int64) error {
	return p.do(func(x *session) error {
		k, err := x.commentByID(repo, id)
		if err != nil {
			return err
		}
		return x.deleteComment(k)
	})
}

// MinimizeComment hides a comment for a reason (outdated, resolved, spam, …) or, if reason is empty, shows it again.
func (p Person) MinimizeComment(repo string, id int64, reason string) error {
	return p.do(func(x *session) error {
		k, err := x.commentByID(repo, id)
		if err != nil {
			return err
		}
		return x.minimize(k, reason != "", reason)
	})
}

// React adds a reaction to a comment: +1, -1, laugh, hooray, confused, heart, rocket or eyes. GitHub sends no webhook
// for it.
func (p Person) React(repo string, commentID int64, content string) error {
	return p.do(func(x *session) error {
		k, err := x.commentByID(repo, commentID)
		if err != nil {
			return err
		}
		_, _, err = x.react(k.issue, &k.Reactions, content)
		return err
	})
}

// Unreact removes a reaction to a comment.
func (p Person) Unreact(repo string, commentID int64, content string) error {
	return p.do(func(x *session) error {
		k, err := x.commentByID(repo, commentID)
		if err != nil {
			return err
		}
		return x.unreact(k.issue, &k.Reactions, 0, content)
	})
}

// ReactToIssue adds a reaction to an issue or pull request itself.
func (p Person) ReactToIssue(repo string, number int, content string) error {
	return p.onIssue(repo, number, func(x *session, i *Issue) error {
		_, _, err := x.react(i, &i.Reactions, content)
		return err
	})
}

// UnreactToIssue removes a reaction to an issue.
func (p Person) UnreactToIssue(repo string, number int, content string) error {
	return p.onIssue(repo, number, func(x *session, i *Issue) error { return x.unreact(i, &i.Reactions, 0, content) })
}

// SetName changes the name in the person's profile.
func (p Person) SetName(name string) error {
	return p.do(func(x *session) error {
		x.by.Name = name
		return nil
	})
}

// SetPermission gives a login a role; RoleNone removes the collaborator. The actor must be an admin.
func (p Person) SetPermission(repo, login string, role Role) error {
	return p.do(func(x *session) error {
		r, err := x.repo(repo)
		if err != nil {
			return err
		}
		if err := x.need(r, "administration", "write", RoleAdmin); err != nil {
			return err
		}
		x.s.addUser(login, TypeUser)
		collab := maps.Clone(r.Collaborators)
		if role.Rank() == 0 {
			delete(collab, login)
		} else {
			collab[login] = role
		}
		r.Collaborators = collab
		x.webhooks().member(r, login, role)
		return nil
	})
}
