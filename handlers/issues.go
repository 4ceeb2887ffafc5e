package handlers

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/state"
)

// issues maps actions on an issue itself.
func (m *Mapper) issues(ctx context.Context, payload []byte) ([]state.Event, string, error) {
	e, err := decode[github.IssuesEvent](payload)
	if err != nil {
		return nil, "", err
	}
	if e.Issue.GetNumber() <= 0 || e.Repo.GetID() <= 0 {
		return nil, "", errHollow
	}
	if m.own(e.Sender) {
		return nil, "our own act", nil
	}
	ev := state.Event{
		Task: key(e.Repo, e.Issue.GetNumber()), By: person(e.Sender), Repo: repoOf(e.Repo),
		Installation: e.Installation.GetID(), Issue: issueOf(e.Issue, issueType(payload)), At: at(e.Issue.UpdatedAt),
	}
	if e.Issue.IsPullRequest() {
		return nil, "a pull request", nil
	}
	return m.issueAction(ctx, e, ev)
}

// issueAction maps the action of an issues event.
func (m *Mapper) issueAction(ctx context.Context, e *github.IssuesEvent, ev state.Event) ([]state.Event, string, error) {
	switch e.GetAction() {
	case "assigned", "unassigned":
		if !m.isAssignee(e.Assignee) {
			return nil, "somebody else was assigned", nil
		}
		ev.Kind, ev.Via = triggerKind(e.GetAction() == "assigned"), "assigned"
	case "labeled", "unlabeled":
		if !m.isLabel(e.Label.GetName()) {
			return nil, "another label", nil
		}
		ev.Kind, ev.Via = triggerKind(e.GetAction() == "labeled"), "label"
	case "edited":
		if e.Changes == nil || e.Changes.Title == nil && e.Changes.Body == nil {
			return nil, "neither title nor text", nil
		}
		ev.Kind = state.EventIssueEdited
		ev.ID = fmt.Sprintf("edit:%s:%d", state.FreezeHash(ev.Issue.Title, ev.Issue.Body), ev.At.Unix())
	case "closed":
		return m.closed(ctx, ev)
	case "deleted", "transferred":
		ev.Kind, ev.Lost = state.EventIssueGone, "it was "+e.GetAction()
	case "locked":
		ev.Kind = state.EventLocked
	case "unlocked":
		ev.Kind = state.EventUnlocked
	default:
		return nil, "nothing follows from " + e.GetAction(), nil
	}
	if ev.Kind == state.EventTriggered {
		ev.Base = command.Base(ev.Issue.Body)
	}
	return []state.Event{ev}, "", nil
}

func triggerKind(on bool) state.EventKind {
	if on {
		return state.EventTriggered
	}
	return state.EventUntriggered
}

// closed ends the issue's own task and pokes the tasks that wait for the issue.
func (m *Mapper) closed(ctx context.Context, ev state.Event) ([]state.Event, string, error) {
	ev.Kind = state.EventIssueClosed
	events := []state.Event{ev}
	// A blocker may be in another repository.
	waiting, err := m.open(ctx, func(g state.Glance) bool { return g.Waiting == state.WaitBlocked && g.Key != ev.Task })
	return append(events, eventsFor(waiting, state.Event{Kind: state.EventPoked})...), "", err
}

// open returns the open tasks for which choose returns true.
func (m *Mapper) open(ctx context.Context, choose func(state.Glance) bool) ([]state.Glance, error) {
	open, err := m.tasks.Glances(ctx)
	if err != nil {
		return nil, fmt.Errorf("list open tasks: %w", err)
	}
	return slices.DeleteFunc(open, func(g state.Glance) bool { return !choose(g) }), nil
}

// eventsFor returns a copy of ev for each task.
func eventsFor(tasks []state.Glance, ev state.Event) []state.Event {
	var events []state.Event
	for _, g := range tasks {
		ev.Task = g.Key
		events = append(events, ev)
	}
	return events
}

// dependencies pokes tasks that wait for other issues, because a blocker or sub-issue was added or removed.
func (m *Mapper) dependencies(ctx context.Context, _ []byte) ([]state.Event, string, error) {
	waiting, err := m.open(ctx, func(g state.Glance) bool { return g.Waiting == state.WaitBlocked })
	return eventsFor(waiting, state.Event{Kind: state.EventPoked}), "nothing waits for other issues", err
}
