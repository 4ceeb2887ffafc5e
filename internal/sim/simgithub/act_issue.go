package simgithub

import (
	"slices"
	"strings"
	"time"
)

// NewIssue describes an issue to be opened.
type NewIssue struct {
	Title     string
	Body      string
	Labels    []string
	Assignees []string
	Type      string
}

// openIssue opens an issue. As on GitHub, it silently ignores labels and assignees if the actor has no triage access.
func (x *session) openIssue(full string, in NewIssue) (*Issue, error) {
	r, err := x.repo(full)
	if err != nil {
		return nil, err
	}
	if err := x.need(r, "issues", "write", RoleRead); err != nil {
		return nil, err
	}
	if x.by == nil {
		return nil, errNeedAuth()
	}
	if strings.TrimSpace(in.Title) == "" {
		return nil, errInvalid("Issue", "title", "missing_field")
	}
	if err := checkBody("Issue", in.Body); err != nil {
		return nil, err
	}
	i := x.newIssue(r, in.Title, in.Body)
	i.Type = in.Type
	x.webhooks().issue("opened", i, nil)
	x.crossReference(i, i.Body)
	if x.triage(i) == nil {
		x.addLabels(i, in.Labels)
		x.assign(i, in.Assignees)
	}
	return i, nil
}

// newIssue creates an issue, or the issue side of a pull request, without sending an event.
func (x *session) newIssue(r *Repo, title, body string) *Issue {
	r.lastNumber++
	i := &Issue{
		ID: x.s.newID(), Number: r.lastNumber, Title: title, Body: body, Author: x.login(), State: "open",
		ViaApp: x.viaApp(), CreatedAt: x.s.now(), UpdatedAt: x.s.now(), repo: r,
	}
	i.NodeID = nodeID("I", i.ID)
	r.Issues[i.Number] = i
	x.s.nodes[i.NodeID] = i
	return i
}

// maxBody is the maximum length of the text of an issue or a comment, in characters.
const maxBody = 65536

func checkBody(resource, body string) error {
	if len([]rune(body)) > maxBody {
		return errCustom(resource, "body is too long (maximum is 65536 characters)")
	}
	return nil
}

// IssueEdit describes a change of an issue. A nil field stays unchanged.
type IssueEdit struct {
	Title       *string
	Body        *string
	State       *string // open or closed
	StateReason *string
	Labels      *[]string
	Assignees   *[]string
	Type        *string
	Milestone   *string
}

// editIssue changes an issue or the issue side of a pull request. It sends one event per kind of change.
func (x *session) editIssue(i *Issue, in IssueEdit) error {
	if err := x.editText(i, in); err != nil {
		return err
	}
	if in.Labels == nil && in.Assignees == nil && in.State == nil && in.Type == nil && in.Milestone == nil {
		return nil
	}
	if err := x.triage(i); err != nil && (x.viaApp() || x.by == nil || x.by.Login != i.Author) {
		return err
	}
	if in.Type != nil {
		i.Type = *in.Type
	}
	if in.Milestone != nil {
		i.Milestone = *in.Milestone
	}
	if in.Labels != nil {
		x.setLabels(i, *in.Labels)
	}
	if in.Assignees != nil {
		x.unassign(i, without(i.Assignees, *in.Assignees))
		x.assign(i, *in.Assignees)
	}
	if in.State != nil {
		reason := ""
		if in.StateReason != nil {
			reason = *in.StateReason
		}
		return x.setState(i, *in.State, reason, "")
	}
	return nil
}

func (x *session) editText(i *Issue, in IssueEdit) error {
	changes := obj{}
	now := x.s.now()
	if in.Title != nil && *in.Title != i.Title || in.Body != nil && *in.Body != i.Body {
		if err := x.own(i, i.Author); err != nil {
			return err
		}
	}
	if in.Title != nil && *in.Title != i.Title {
		if strings.TrimSpace(*in.Title) == "" {
			return errInvalid("Issue", "title", "missing_field")
		}
		changes["title"] = obj{"from": i.Title}
		x.event(i, &Event{Event: "renamed", RenameFrom: i.Title, RenameTo: *in.Title})
		i.Title = *in.Title
	}
	if in.Body != nil && *in.Body != i.Body {
		if err := checkBody("Issue", *in.Body); err != nil {
			return err
		}
		changes["body"] = obj{"from": i.Body}
		i.Edits = append(i.Edits, Edit{At: now, Editor: x.login(), From: i.Body})
		i.Body = *in.Body
	}
	if len(changes) == 0 {
		return nil
	}
	i.UpdatedAt = now
	x.webhooks().issueOrPull("edited", i, obj{"changes": changes})
	x.crossReference(i, i.Body)
	return nil
}

// setState closes or reopens an issue. Commit is the commit that closed it, or empty.
func (x *session) setState(i *Issue, state, reason, commit string) error {
	if state != "open" && state != "closed" {
		return errInvalid("Issue", "state", "invalid")
	}
	if state == i.State {
		return nil
	}
	if i.Pull != nil && state == "open" {
		if err := x.reopenable(i.Pull); err != nil {
			return err
		}
	}
	if i.Pull != nil {
		x.stopMerging(i.Pull, "Pull request was closed")
	}
	i.State, i.UpdatedAt = state, x.s.now()
	action := "reopened"
	i.StateReason, i.ClosedAt, i.ClosedBy = "reopened", time.Time{}, ""
	if state == "closed" {
		action = "closed"
		if reason == "" {
			reason = "completed"
		}
		i.StateReason, i.ClosedAt, i.ClosedBy = reason, x.s.now(), x.login()
	}
	if i.Pull != nil {
		i.StateReason = ""
	}
	x.event(i, &Event{Event: action, CommitID: commit})
	if i.Pull != nil {
		x.webhooks().pull(action, i.Pull, nil)
		return nil
	}
	x.webhooks().issue(action, i, nil)
	return nil
}

// event adds an entry to the history of an issue.
func (x *session) event(i *Issue, e *Event) {
	e.ID = x.s.newID()
	e.NodeID = nodeID("EV", e.ID)
	e.Actor, e.ViaApp, e.CreatedAt = x.login(), x.viaApp(), x.s.now()
	i.Events = append(i.Events, e)
}

// lock locks a conversation to users with write access, or unlocks it.
func (x *session) lock(i *Issue, locked bool, reason string) error {
	if err := x.need(i.repo, "issues|pull_requests", "write", RoleTriage); err != nil {
		return err
	}
	if i.Locked == locked {
		return nil
	}
	i.Locked, i.LockReason, i.UpdatedAt = locked, reason, x.s.now()
	action := "unlocked"
	if locked {
		action = "locked"
	}
	x.event(i, &Event{Event: action, LockReason: reason})
	x.webhooks().issueOrPull(action, i, nil)
	return nil
}

// without returns the elements of a that are not in b.
func without(a, b []string) []string {
	var out []string
	for _, v := range a {
		if !slices.ContainsFunc(b, func(w string) bool { return strings.EqualFold(v, w) }) {
			out = append(out, v)
		}
	}
	return out
}
