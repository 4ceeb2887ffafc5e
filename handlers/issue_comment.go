package handlers

import (
	"context"
	"fmt"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// issueComment maps comments on issues and in the conversation of pull requests.
func (m *Mapper) issueComment(ctx context.Context, payload []byte) ([]event.Event, string, error) {
	e, err := decode[github.IssueCommentEvent](payload)
	if err != nil {
		return nil, "", err
	}
	if e.Issue.GetNumber() <= 0 || e.Repo.GetID() <= 0 || e.Comment == nil {
		return nil, "", errIncomplete
	}
	if m.isOwn(e.Sender) {
		return nil, "errand's own action", nil
	}
	ev := event.Event{Task: key(e.Repo, e.Issue.GetNumber()), By: person(e.Sender), Repo: repoOf(e.Repo),
		Installation: e.Installation.GetID()}
	c, onPR := e.Comment, e.Issue.IsPullRequest()
	var issue *state.Issue
	if onPR {
		t, err := m.tasks.TaskByPR(ctx, e.Repo.GetID(), e.Issue.GetNumber())
		if err != nil || t == nil || !isPRof(t, e.Issue.GetNumber()) {
			return nil, "not one of errand's pull requests", err
		}
		ev.Task = t.Key
	} else if e.Issue.Title != nil { // a sweep leaves out a text that the comment's author has not seen
		issue = issueOf(e.Issue, extraOf(payload).issueType())
	}
	written := &state.Comment{ID: c.GetID(), Node: c.GetNodeID(), Body: c.GetBody(), At: at(c.CreatedAt), OnPR: onPR}
	if e.GetAction() == "deleted" {
		ev.Payload = event.CommentDeleted{Comment: written}
		return []event.Event{ev}, "", nil
	}
	if c.GetUser().GetID() == m.cfg.BotID {
		return m.ownCommentEdited(e, ev, written)
	}
	if e.GetAction() != "created" {
		return nil, "an edited comment: the agent sees its current text when it next reads", nil
	}
	parsed := m.parse(c.GetBody(), onPR)
	written.Mention, written.Quoted, written.Words, written.Remark = parsed.Mention, parsed.Quoted, parsed.Words, parsed.Remark
	ev.ID, ev.At = fmt.Sprintf("comment:%d", c.GetID()), at(c.CreatedAt)
	ev.Payload = event.Commented{
		Comment:     written,
		Orders:      ordersOf(parsed),
		Skipped:     parsed.Left,
		MoreSkipped: parsed.More,
		Issue:       issue,
		Base:        command.Base(c.GetBody()),
	}
	return []event.Event{ev}, "", nil
}

// ownCommentEdited maps a person's edit of one of errand's comments.
func (m *Mapper) ownCommentEdited(e *github.IssueCommentEvent, ev event.Event, written *state.Comment) ([]event.Event, string, error) {
	if e.GetAction() != "edited" {
		return nil, "errand ignores the action " + e.GetAction(), nil
	}
	if e.Changes == nil || e.Changes.Body == nil || e.Changes.Body.From == nil {
		return nil, "the text did not change", nil
	}
	edited := at(e.Comment.UpdatedAt)
	only, ticked, box := comment.BoxTicked(*e.Changes.Body.From, written.Body)
	edit := event.CommentEdited{Comment: written, OnlyBoxes: only, Ticked: ticked}
	if ticked {
		edit.Candidate = &state.Candidate{
			Comment:  written.ID,
			Named:    box.Hash,
			Approval: state.Approval{Via: state.ViaBox, Given: edited, Choice: box.Choice},
		}
	}
	ev.At, ev.Payload = edited, edit
	return []event.Event{ev}, "", nil
}
