package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// candidate reads an issue for which the operator wants to begin a task. Its error is an admin.Refusal if that is not possible.
func (s *Server) candidate(ctx context.Context, repo string, number int) (watch.Candidate, error) {
	sweeper := s.sweeper.Load()
	if sweeper == nil {
		return watch.Candidate{}, admin.Refusal("errand is not ready: it has not read its App from GitHub yet")
	}
	c, err := sweeper.Candidate(ctx, repo, number)
	var refused *watch.RefusedError
	if errors.As(err, &refused) {
		return c, admin.Refusal(refused.Reason)
	}
	return c, err
}

// previewRun returns an issue for which the operator wants to begin a task, as the task would freeze it.
func (s *Server) previewRun(ctx context.Context, repo string, number int) (admin.Preview, error) {
	c, err := s.candidate(ctx, repo, number)
	if err != nil {
		return admin.Preview{}, err
	}
	i := c.Issue
	t := &state.Task{Key: state.TaskKey{Repo: c.Repo.ID, Issue: number}, TaskIssue: state.TaskIssue{
		Installation: c.Installation, Repo: c.Repo, IssueNode: i.Node, Author: i.Author,
		Frozen: state.Frozen{Title: i.Title, Body: i.Body, By: state.Person{Operator: true}},
	}}
	waits, err := s.steps.Preview(ctx, t, i)
	if err != nil {
		return admin.Preview{}, err
	}
	p := admin.Preview{
		Issue: fmt.Sprintf("%s#%d", c.Repo.FullName(), number), URL: i.URL, Author: i.Author.Login, Title: i.Title, Body: i.Body,
		Text: state.FreezeHash(i.Title, i.Body), Files: s.steps.AttachedToIssue(t), Plan: string(t.Settings.Plan),
		Comments: []admin.PreviewComment{}, Hidden: append([]string{}, t.Context.Stripped...), Waits: []string{},
	}
	for _, m := range t.Context.Comments {
		p.Comments = append(p.Comments, admin.PreviewComment{By: m.By.Login})
	}
	for _, m := range t.Context.Withheld {
		p.Comments = append(p.Comments, admin.PreviewComment{By: m.By.Login, Withheld: m.Reason})
	}
	for _, w := range waits {
		p.Waits = append(p.Waits, w.Detail)
	}
	if i.Locked {
		p.Waits = append(p.Waits, "the conversation is locked, so errand cannot comment until somebody unlocks it")
	}
	return p, nil
}

// beginRun begins a task for an issue whose text of that hash the operator was shown and vouches for, in one transaction with its entry
// in the audit log.
func (s *Server) beginRun(ctx context.Context, repo string, number int, text string, a store.Action) (store.Action, error) {
	c, err := s.candidate(ctx, repo, number)
	e := event.OperatorRun(c.Repo, number, a.ID, c.Issue.Issue)
	name := fmt.Sprintf("%s#%d", c.Repo.FullName(), number)
	begun := false // by this call
	judge := func(applied store.Applied, a *store.Action) {
		begun = applied.Changed
		if a.Result = "started with the text " + text; !begun {
			a.Refused, a.Result = true, watch.TaskExists(name, applied.Task)
		}
	}
	var refusal admin.Refusal
	switch {
	case errors.As(err, &refusal):
		if t, err := s.store.Task(ctx, e.Task); err != nil || t == nil || !t.HasSeen(e.ID) {
			return a, refusal
		}
		a.Subject = name
		return s.store.Act(ctx, e, a, judge) // a repeated request changes nothing
	case err != nil:
		return a, admin.UnchangedError{Err: err}
	}
	if state.FreezeHash(c.Issue.Title, c.Issue.Body) != text {
		return a, admin.Refusal("the title or text of " + name + " has changed since it was shown to you; read it again")
	}
	e.Installation, e.At = c.Installation, c.Issue.UpdatedAt
	e.Payload = event.Triggered{Issue: &c.Issue.Issue, Base: command.Base(c.Issue.Body)}
	a.Subject = name
	done, err := s.store.Act(ctx, e, a, judge)
	if err != nil || !begun {
		return done, err
	}
	if c.Issue.Locked {
		if _, err := s.store.Apply(ctx, event.Event{Task: e.Task, Payload: event.Locked{}}, store.Ack{}); err != nil {
			s.opts.Log.Warn().Err(err).Str("task", e.Task.String()).Msg("failed to store that a conversation is locked; the next sweep does")
		}
	}
	done.Result += s.onceResumed(ctx, e.Task)
	s.opts.Log.Info().Str("task", e.Task.String()).Str("by", done.By).Str("text", text).Msg("the operator began a task")
	return done, nil
}
