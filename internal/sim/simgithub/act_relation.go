package simgithub

import "slices"

// issue returns an issue by its database id.
func (f finder) issue(id int64) (*Issue, bool) {
	i, ok := f.s.nodes[nodeID("I", id)].(*Issue)
	return i, ok
}

// setBlockedBy adds or removes a dependency of an issue on the issue with an id.
func (x *session) setBlockedBy(i *Issue, id int64, add bool) error {
	if err := x.triage(i); err != nil {
		return err
	}
	blocker, ok := x.s.find.issue(id)
	if !ok || !x.sees(blocker.repo) {
		return errNotFound()
	}
	has := slices.Contains(i.BlockedBy, id)
	if has == add {
		if add {
			return errCustom("IssueDependency", "Target issue has already been taken")
		}
		return errNotFound()
	}
	if blocker == i || add && slices.Contains(blocker.BlockedBy, i.ID) {
		return errCustom("IssueDependency", "A dependency cannot be circular")
	}
	action := "removed"
	if add {
		action = "added"
		i.BlockedBy = append(i.BlockedBy, id)
	} else {
		i.BlockedBy = slices.DeleteFunc(i.BlockedBy, func(o int64) bool { return o == id })
	}
	i.UpdatedAt = x.s.now()
	x.event(i, &Event{Event: "blocked_by_" + action, Source: id})
	x.webhooks().dependency("blocked_by_"+action, i, blocker)
	x.webhooks().dependency("blocking_"+action, i, blocker)
	return nil
}

// setSubIssue makes the issue with an id a sub-issue of i, or removes it from there.
func (x *session) setSubIssue(i *Issue, id int64, add, replace bool) error {
	if err := x.triage(i); err != nil {
		return err
	}
	child, ok := x.s.find.issue(id)
	if !ok || child == i || !x.sees(child.repo) {
		return errNotFound()
	}
	if add && child.Parent != 0 && !replace {
		return errCustom("SubIssue", "Sub issue may only have one parent")
	}
	if !add && child.Parent != i.ID {
		return errNotFound()
	}
	if old, ok := x.s.find.issue(child.Parent); ok && add {
		old.SubIssues = slices.DeleteFunc(old.SubIssues, func(o int64) bool { return o == id })
	}
	child.Parent = 0
	i.SubIssues = slices.DeleteFunc(i.SubIssues, func(o int64) bool { return o == id })
	action := "removed"
	if add {
		action = "added"
		child.Parent = i.ID
		i.SubIssues = append(i.SubIssues, id)
	}
	x.event(i, &Event{Event: "sub_issue_" + action, Source: id})
	x.webhooks().subIssue("sub_issue_"+action, i, child)
	x.webhooks().subIssue("parent_issue_"+action, i, child)
	return nil
}
