package handlers

import (
	"context"
	"fmt"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// pullRequest maps the closing and the reopening of one of errand's pull requests, and changes that decide whether it can be merged.
func (m *Mapper) pullRequest(ctx context.Context, payload []byte) ([]event.Event, string, error) {
	e, err := decode[github.PullRequestEvent](payload)
	if err != nil {
		return nil, "", err
	}
	if e.PullRequest == nil {
		return nil, "", errIncomplete
	}
	switch e.GetAction() {
	case "closed", "reopened":
	case "converted_to_draft", "ready_for_review", "dequeued":
		return m.prChanged(ctx, e.Repo, e.PullRequest.GetNumber(), e.PullRequest.Draft)
	default:
		return nil, "errand ignores the action " + e.GetAction(), nil
	}
	number := e.PullRequest.GetNumber()
	t, err := m.tasks.TaskByPR(ctx, e.Repo.GetID(), number)
	if err != nil || t == nil || !isPRof(t, number) && (e.GetAction() == "closed" || !t.IsReplacedPR(number)) {
		return nil, "not one of errand's pull requests", err
	}
	ev := event.Event{Task: t.Key, By: person(e.Sender), Repo: repoOf(e.Repo)}
	if e.GetAction() == "reopened" {
		ev.At, ev.Payload = at(e.PullRequest.UpdatedAt), event.PRReopened{Number: number, Head: e.PullRequest.GetHead().GetSHA()}
		return []event.Event{ev}, "", nil
	}
	ev.At, ev.Payload = at(e.PullRequest.ClosedAt), event.PRClosed{Merged: e.PullRequest.GetMerged()}
	return []event.Event{ev}, "", nil
}

// prChanged maps a change that decides whether one of errand's pull requests can be merged. draft is nil if the webhook does not say whether it
// is one.
func (m *Mapper) prChanged(ctx context.Context, r *github.Repository, number int, draft *bool) ([]event.Event, string, error) {
	ev, ok, err := m.onPR(ctx, r, number, nil)
	if err != nil || !ok {
		return nil, "not one of errand's pull requests", err
	}
	ev.By, ev.Payload = state.Person{}, event.PRChanged{Draft: draft}
	return []event.Event{ev}, "", nil
}

// thread maps the resolution of a review thread.
func (m *Mapper) thread(ctx context.Context, payload []byte) ([]event.Event, string, error) {
	e, err := decode[github.PullRequestReviewThreadEvent](payload)
	if err != nil {
		return nil, "", err
	}
	if e.GetAction() != "resolved" {
		return nil, "errand ignores the action " + e.GetAction(), nil
	}
	return m.prChanged(ctx, e.Repo, e.PullRequest.GetNumber(), nil)
}

// onPR returns the beginning of an event about a pull request, and whether it is one of errand's.
func (m *Mapper) onPR(ctx context.Context, r *github.Repository, number int, by *github.User) (event.Event, bool, error) {
	t, err := m.tasks.TaskByPR(ctx, r.GetID(), number)
	if err != nil || t == nil || !isPRof(t, number) {
		return event.Event{}, false, err
	}
	return event.Event{Task: t.Key, By: person(by), Repo: repoOf(r)}, true, nil
}

// isPRof reports whether a pull request is the present one of a task, not one that was replaced.
func isPRof(t *state.Task, number int) bool { return t.PR != nil && t.PR.Number == number }

// review maps a submitted review. Its threads are read when the round is gathered.
func (m *Mapper) review(ctx context.Context, payload []byte) ([]event.Event, string, error) {
	e, err := decode[github.PullRequestReviewEvent](payload)
	if err != nil {
		return nil, "", err
	}
	if e.Review == nil {
		return nil, "", errIncomplete
	}
	if m.isOwn(e.Review.GetUser()) {
		return nil, "errand's own review", nil
	}
	if e.GetAction() == "dismissed" {
		return m.prChanged(ctx, e.Repo, e.PullRequest.GetNumber(), nil)
	}
	if e.GetAction() != "submitted" {
		return nil, "errand ignores the action " + e.GetAction(), nil
	}
	ev, ok, err := m.onPR(ctx, e.Repo, e.PullRequest.GetNumber(), e.Sender)
	if err != nil || !ok {
		return nil, "not one of errand's pull requests", err
	}
	v := e.Review
	ev.ID, ev.At = fmt.Sprintf("review-event:%d", v.GetID()), at(v.SubmittedAt)
	ev.Payload = event.Reviewed{Review: state.Review{
		ID:     v.GetID(),
		State:  state.ReviewState(lower(v.GetState())),
		Body:   v.GetBody(),
		At:     at(v.SubmittedAt),
		Head:   v.GetCommitID(),
		Remark: m.parse(v.GetBody(), true).Remark, Machine: m.isAssignee(v.GetUser()),
	}}
	return []event.Event{ev}, "", nil
}

// reviewComment maps a comment in a review thread. Only its commands are mapped: the rest is gathered with the review
// that it belongs to.
func (m *Mapper) reviewComment(ctx context.Context, payload []byte) ([]event.Event, string, error) {
	e, err := decode[github.PullRequestReviewCommentEvent](payload)
	if err != nil {
		return nil, "", err
	}
	c := e.Comment
	if c == nil {
		return nil, "", errIncomplete
	}
	if m.isOwn(e.Sender) || m.isOwn(c.GetUser()) {
		return nil, "errand's own comment", nil
	}
	if e.GetAction() != "created" {
		return nil, "errand ignores the action " + e.GetAction(), nil
	}
	parsed := m.parse(c.GetBody(), true)
	var orders []state.Order
	for _, o := range parsed.Orders {
		if o.Verb != state.VerbMessage {
			orders = append(orders, o)
		}
	}
	if len(orders) == 0 {
		return nil, "gathered with its review", nil
	}
	ev, ok, err := m.onPR(ctx, e.Repo, e.PullRequest.GetNumber(), e.Sender)
	if err != nil || !ok {
		return nil, "not one of errand's pull requests", err
	}
	top := c.GetInReplyTo()
	if top == 0 {
		top = c.GetID()
	}
	ev.ID, ev.At = fmt.Sprintf("review-comment:%d", c.GetID()), at(c.CreatedAt)
	ev.Payload = event.Commented{
		Comment: &state.Comment{ID: c.GetID(), Node: c.GetNodeID(), Body: c.GetBody(), At: at(c.CreatedAt), OnPR: true,
			Thread: top, Mention: true},
		Orders:      orders,
		Skipped:     parsed.Left,
		MoreSkipped: parsed.More,
	}
	return []event.Event{ev}, "", nil
}
