package handlers

import (
	"context"
	"fmt"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/state"
)

// issueComment maps comments on issues and in the conversation of pull requests.
func (m *Mapper) issueComment(ctx context.Context, payload []byte) ([]state.Event, string, error) {
	e, err := decode[github.IssueCommentEvent](payload)
	if err != nil {
		return nil, "", err
	}
	if e.Issue.GetNumber() <= 0 || e.Repo.GetID() <= 0 || e.Comment == nil {
		return nil, "", errHollow
	}
	if m.own(e.Sender) {
		return nil, "our own act", nil
	}
	ev := state.Event{Task: key(e.Repo, e.Issue.GetNumber()), By: person(e.Sender), Repo: repoOf(e.Repo), Installation: e.Installation.GetID()}
	onPR := e.Issue.IsPullRequest()
	if onPR {
		t, err := m.tasks.TaskByPR(ctx, e.Repo.GetID(), e.Issue.GetNumber())
		if err != nil || t == nil {
			return nil, "not a pull request of ours", err
		}
		ev.Task = t.Key
	} else {
		ev.Issue = issueOf(e.Issue, issueType(payload))
	}
	c := e.Comment
	ev.Comment = &state.Comment{ID: c.GetID(), Node: c.GetNodeID(), Body: c.GetBody(), At: at(c.CreatedAt), OnPR: onPR}
	if c.GetUser().GetID() == m.cfg.BotID {
		return m.ownCommentTouched(e, ev)
	}
	if e.GetAction() == "deleted" {
		ev.Kind = state.EventPlanDeleted
		return []state.Event{ev}, "", nil
	}
	if e.GetAction() != "created" {
		return nil, "an edit of a comment: it is read as it stands when the agent next reads", nil
	}
	parsed := m.parse(c.GetBody(), onPR)
	ev.Kind, ev.ID, ev.At = state.EventCommented, fmt.Sprintf("comment:%d", c.GetID()), at(c.CreatedAt)
	ev.Comment.Mention, ev.Comment.Quoted, ev.Orders, ev.Left, ev.More = parsed.Mention, parsed.Quoted, parsed.Orders, parsed.Left, parsed.More
	if parsed.Mention && len(parsed.Orders) == 0 {
		ev.Orders = []state.Order{{Verb: state.VerbPlan}}
	}
	ev.Base = command.Base(c.GetBody())
	return []state.Event{ev}, "", nil
}

// ownCommentTouched maps a person's edit or deletion of one of errand's comments.
func (m *Mapper) ownCommentTouched(e *github.IssueCommentEvent, ev state.Event) ([]state.Event, string, error) {
	c := e.Comment
	switch e.GetAction() {
	case "deleted":
		ev.Kind = state.EventPlanDeleted
	case "edited":
		if e.Changes == nil || e.Changes.Body == nil || e.Changes.Body.From == nil {
			return nil, "nothing of the text changed", nil
		}
		only, ticked, box := comment.BoxTicked(*e.Changes.Body.From, c.GetBody())
		ev.Kind, ev.OnlyBoxes, ev.Ticked, ev.At = state.EventPlanEdited, only, ticked, at(c.UpdatedAt)
		if ticked {
			ev.Candidate = &state.Candidate{Comment: c.GetID(), Named: box.Hash, Approval: state.Approval{Via: state.ViaBox, Given: at(c.UpdatedAt), Choice: box.Choice}}
		}
	default:
		return nil, "nothing follows from " + e.GetAction(), nil
	}
	return []state.Event{ev}, "", nil
}
