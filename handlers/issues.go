package handlers

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// issues maps actions on an issue itself.
func (m *Mapper) issues(ctx context.Context, payload []byte) ([]event.Event, string, error) {
	e, err := decode[github.IssuesEvent](payload)
	if err != nil {
		return nil, "", err
	}
	if e.Issue.GetNumber() <= 0 || e.Repo.GetID() <= 0 {
		return nil, "", errIncomplete
	}
	if m.isOwn(e.Sender) {
		return nil, "errand's own action", nil
	}
	if e.Issue.IsPullRequest() {
		return nil, "a pull request", nil
	}
	ev := event.Event{
		Task:         key(e.Repo, e.Issue.GetNumber()),
		By:           person(e.Sender),
		Repo:         repoOf(e.Repo),
		Installation: e.Installation.GetID(),
		At:           at(e.Issue.UpdatedAt),
	}
	more := extraOf(payload)
	if e.GetAction() == "opened" && more.Changes.OldIssue != nil {
		return nil, "a transferred issue: errand works on it only when somebody requests it", nil
	}
	return m.issueAction(ctx, e, ev, issueOf(e.Issue, more.issueType()))
}

// issueAction maps the action of an issues event.
func (m *Mapper) issueAction(ctx context.Context, e *github.IssuesEvent, ev event.Event, issue *state.Issue) ([]event.Event, string, error) {
	switch e.GetAction() {
	case "assigned", "unassigned":
		if !m.isAssignee(e.Assignee) {
			return nil, "somebody other than errand was assigned", nil
		}
		ev.Via, ev.Payload = state.TriggerAssigned, triggerPayload(e.GetAction() == "assigned", issue)
	case "labeled", "unlabeled":
		if !m.isLabel(e.Label.GetName()) {
			return nil, "not errand's label", nil
		}
		ev.Via, ev.Payload = state.TriggerLabel, triggerPayload(e.GetAction() == "labeled", issue)
	case "edited":
		if e.Changes == nil || e.Changes.Title == nil && e.Changes.Body == nil {
			return nil, "neither title nor text changed", nil
		}
		ev.ID = fmt.Sprintf("edit:%s:%d", state.FreezeHash(issue.Title, issue.Body), ev.At.Unix())
		ev.Payload = event.IssueEdited{Issue: issue}
		if mention := m.mentionAdded(e, ev, issue); mention != nil {
			return []event.Event{ev, *mention}, "", nil
		}
	case "opened":
		ev.At = at(e.Issue.CreatedAt)
		if mention := m.mentionIn(issue, ev); mention != nil {
			return []event.Event{*mention}, "", nil
		}
		return nil, "its text does not mention errand; assignees and labels arrive in separate webhooks", nil
	case "closed":
		return m.closed(ctx, ev)
	case "deleted", "transferred":
		ev.Payload = event.IssueGone{Lost: "it was " + e.GetAction()}
	case "locked":
		ev.Payload = event.Locked{}
	case "unlocked":
		ev.Payload = event.Unlocked{}
	default:
		return nil, "errand ignores the action " + e.GetAction(), nil
	}
	return []event.Event{ev}, "", nil
}

// mentionIn returns the event for a mention of errand in the text of an issue, or nil. It is read like a comment by the sender.
func (m *Mapper) mentionIn(issue *state.Issue, ev event.Event) *event.Event {
	parsed := m.parse(issue.Body, false)
	if !parsed.Mention {
		return nil
	}
	ev.ID = "issue-text:" + issue.Node
	ev.Payload = event.Commented{
		Comment:     &state.Comment{Body: issue.Body, At: ev.At, InIssue: true, Mention: true, Remark: parsed.Remark},
		Orders:      ordersOf(parsed),
		Skipped:     parsed.Left,
		MoreSkipped: parsed.More,
		Issue:       issue,
		Base:        parsed.Base,
	}
	return &ev
}

// mentionAdded returns the event for an edit that adds a mention of errand to the text of an issue, or nil. Of the commands
// only the one to start counts, as edited comments give no commands either.
func (m *Mapper) mentionAdded(e *github.IssuesEvent, ev event.Event, issue *state.Issue) *event.Event {
	if e.Changes.Body == nil || e.Changes.Body.From != nil && m.parse(*e.Changes.Body.From, false).Mention {
		return nil // without From, the text was empty
	}
	mention := m.mentionIn(issue, ev)
	if mention == nil {
		return nil
	}
	text := event.Of[event.Commented](*mention)
	if !slices.ContainsFunc(text.Orders, func(o state.Order) bool { return o.Verb == state.VerbPlan || o.Verb == state.VerbMessage }) {
		return nil
	}
	mention.ID = "issue-text:" + ev.ID
	text.Orders, text.Skipped, text.MoreSkipped = []state.Order{{Verb: state.VerbPlan}}, nil, 0
	mention.Payload = text
	return mention
}

// triggerPayload returns the payload of an assignment or a label, or that of its removal.
func triggerPayload(on bool, issue *state.Issue) event.Payload {
	if on {
		return event.Triggered{Issue: issue, Base: command.Base(issue.Body)}
	}
	return event.Untriggered{}
}

// closed ends the issue's own task and pokes the tasks that wait for the issue.
func (m *Mapper) closed(ctx context.Context, ev event.Event) ([]event.Event, string, error) {
	ev.Payload = event.IssueClosed{}
	events := []event.Event{ev}
	// A blocker may be in another repository.
	waiting, err := m.openTasks(ctx, func(g state.TaskOverview) bool { return g.Waiting == state.WaitBlocked && g.Key != ev.Task })
	return append(events, eventsFor(waiting, event.Event{Payload: event.ConditionChanged{}})...), "", err
}

// openTasks returns the open tasks for which choose returns true.
func (m *Mapper) openTasks(ctx context.Context, choose func(state.TaskOverview) bool) ([]state.TaskOverview, error) {
	open, err := m.tasks.Overviews(ctx)
	if err != nil {
		return nil, fmt.Errorf("list open tasks: %w", err)
	}
	return slices.DeleteFunc(open, func(g state.TaskOverview) bool { return !choose(g) }), nil
}

// eventsFor returns a copy of ev for each task.
func eventsFor(tasks []state.TaskOverview, ev event.Event) []event.Event {
	var events []event.Event
	for _, g := range tasks {
		ev.Task = g.Key
		events = append(events, ev)
	}
	return events
}

// dependencies pokes tasks that wait for other issues, because a blocker or sub-issue was added or removed.
func (m *Mapper) dependencies(ctx context.Context, _ []byte) ([]event.Event, string, error) {
	waiting, err := m.openTasks(ctx, func(g state.TaskOverview) bool { return g.Waiting == state.WaitBlocked })
	return eventsFor(waiting, event.Event{Payload: event.ConditionChanged{}}), "nothing waits for other issues", err
}
