package simgithub

import (
	"slices"
	"strings"
)

// addLabels adds labels to an issue, and creates labels that the repository does not have.
func (x *session) addLabels(i *Issue, names []string) {
	for _, name := range names {
		l := x.label(i.repo, name)
		if l.Name == "" || slices.Contains(i.Labels, l.Name) {
			continue
		}
		i.Labels = append(i.Labels, l.Name)
		i.UpdatedAt = x.s.now()
		x.event(i, &Event{Event: "labeled", Label: l.Name})
		x.webhooks().issueOrPull("labeled", i, obj{"label": x.s.json.label(i.repo, l.Name)})
	}
}

// removeLabel removes a label. The error is a 404 if the issue does not have it.
func (x *session) removeLabel(i *Issue, name string) error {
	n := slices.IndexFunc(i.Labels, func(l string) bool { return strings.EqualFold(l, name) })
	if n < 0 {
		return &Error{Status: 404, Message: "Label does not exist"}
	}
	name = i.Labels[n]
	i.Labels = slices.Delete(i.Labels, n, n+1)
	i.UpdatedAt = x.s.now()
	x.event(i, &Event{Event: "unlabeled", Label: name})
	x.webhooks().issueOrPull("unlabeled", i, obj{"label": x.s.json.label(i.repo, name)})
	return nil
}

func (x *session) setLabels(i *Issue, names []string) {
	for _, name := range without(i.Labels, names) {
		_ = x.removeLabel(i, name) // it exists: it was just listed
	}
	x.addLabels(i, names)
}

// label returns a label of a repository, ignoring case. It creates the label if there is none.
func (x *session) label(r *Repo, name string) Label {
	name = strings.TrimSpace(name)
	if name == "" {
		return Label{}
	}
	for _, l := range r.Labels {
		if strings.EqualFold(l.Name, name) {
			return l
		}
	}
	l := Label{ID: x.s.newID(), Name: name, Color: "ededed"}
	l.NodeID = nodeID("LA", l.ID)
	r.Labels = append(r.Labels, l)
	return l
}

// assignable reports whether a login can be assigned: people with an explicit role, and those who commented, but never
// bots.
func (f finder) assignable(i *Issue, login string) bool {
	u, ok := f.s.users[login]
	if !ok || u.Type != TypeUser {
		return false
	}
	if f.assignableIn(i.repo, login) {
		return true
	}
	return slices.ContainsFunc(i.Comments, func(k *Comment) bool { return k.Author == login })
}

func (f finder) assignableIn(r *Repo, login string) bool {
	u, ok := f.s.users[login]
	if !ok || u.Type != TypeUser {
		return false
	}
	_, explicit := r.Collaborators[login]
	return login == r.Owner || explicit && r.RoleOf(login).Rank() >= RoleRead.Rank()
}

// assign adds assignees, at most ten. As on GitHub, it silently ignores logins that cannot be assigned.
func (x *session) assign(i *Issue, logins []string) {
	for _, login := range logins {
		if slices.Contains(i.Assignees, login) || len(i.Assignees) >= 10 || !x.s.find.assignable(i, login) {
			continue
		}
		i.Assignees = append(i.Assignees, login)
		i.UpdatedAt = x.s.now()
		x.event(i, &Event{Event: "assigned", Assignee: login})
		x.webhooks().issueOrPull("assigned", i, obj{"assignee": x.s.json.user(login)})
	}
}

// unassign removes assignees. It ignores logins that are not assigned.
func (x *session) unassign(i *Issue, logins []string) {
	for _, login := range logins {
		n := slices.Index(i.Assignees, login)
		if n < 0 {
			continue
		}
		i.Assignees = slices.Delete(i.Assignees, n, n+1)
		i.UpdatedAt = x.s.now()
		x.event(i, &Event{Event: "unassigned", Assignee: login})
		x.webhooks().issueOrPull("unassigned", i, obj{"assignee": x.s.json.user(login)})
	}
}
