package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// act applies a command of an operator, or of a person who signed in, to a task in one transaction, with an entry in the audit log. The
// person is zero for an operator; of anybody else GitHub is asked whether they have write access now. The rules are those for the
// comment of a person with write access, except that the command does not accept edits of the issue: the text that the task knows
// stays, and an edit since is treated like any other.
func (s *Server) act(ctx context.Context, t *state.Task, by state.Person, order state.Order, a store.Action) (store.Action, error) {
	e := event.OperatorCommand(t.Key, a.ID, order, false)
	if by.ID != 0 {
		e = event.PersonCommand(t.Key, a.ID, by, order, false)
	}
	a.Task = t.Key
	repo := forge.RepoOf(t)
	if order.Verb == state.VerbRestart || order.Verb == state.VerbRetry && t.Ended() {
		refusal, err := s.readAgain(ctx, t, &e, by)
		switch {
		case err != nil:
			return a, admin.UnchangedError{Err: err}
		case refusal != "":
			a.Refused, a.Result = true, refusal
			return a, s.store.Audit.Add(ctx, a)
		}
		repo = forge.Repo{Installation: e.Installation, Owner: e.Repo.Owner, Name: e.Repo.Name, ID: e.Repo.ID}
	}
	switch refusal, err := s.checkWriter(ctx, repo, by); { // asked last, so that a permission that was just withdrawn does not count
	case err != nil:
		return a, admin.UnchangedError{Err: err}
	case refusal != "":
		a.Refused, a.Result = true, refusal
		return a, s.store.Audit.Add(ctx, a)
	}
	done, err := s.store.Act(ctx, e, a, judge(order))
	if err == nil && !done.Refused && (order.Verb == state.VerbRetry || order.Verb == state.VerbRestart) {
		done.Result += s.onceResumed(ctx, t.Key)
	}
	if err == nil {
		s.opts.Log.Info().Str("task", t.Key.String()).Str("by", done.By).Str("command", done.Command).Bool("refused", done.Refused).
			Str("result", done.Result).Msg("command given on errand's pages")
	}
	return done, err
}

// checkWriter returns why a person may give no command, or "" for an operator and for a person who has write access now.
func (s *Server) checkWriter(ctx context.Context, repo forge.Repo, by state.Person) (refusal string, err error) {
	if by.ID == 0 {
		return "", nil
	}
	p, err := s.forge.Permission(ctx, repo, by.Login, by.ID)
	switch {
	case err != nil:
		return "", fmt.Errorf("read your permission: %w", err)
	case !p.CanWrite():
		return "commands need write access to the repository", nil
	}
	return "", nil
}

// readAgain completes the event of a command that begins another life of a task: with the repository as it is now, of which webhooks may be
// lost since the task ended and which sweeps do not compare then, and with whether the issue is closed. It returns why the command is
// refused, or ""; a person without write access learns nothing about the issue.
func (s *Server) readAgain(ctx context.Context, t *state.Task, e *event.Event, by state.Person) (refusal string, err error) {
	repo, installation, err := s.forge.RepositoryByID(ctx, t.Key.Repo)
	switch {
	case errors.Is(err, forge.ErrNotFound), errors.Is(err, forge.ErrNotInstalled):
		return "errand has no access to the repository: install the App there", nil
	case err != nil:
		return "", fmt.Errorf("read the repository: %w", err)
	}
	e.Repo, e.Installation = &repo, installation
	now := *t
	now.Repo, now.Installation = repo, installation
	if refusal, err := s.checkWriter(ctx, forge.RepoOf(&now), by); refusal != "" || err != nil {
		return refusal, err
	}
	i, err := s.forge.Issue(ctx, forge.RepoOf(&now), t.Key.Issue)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return "the issue no longer exists, or errand has no access to it", nil
	case err != nil:
		return "", fmt.Errorf("read the issue: %w", err)
	case watch.IsTransferred(&now, i):
		return "the issue was transferred: it is at " + i.URL + " now", nil
	}
	said := event.Of[event.Commented](*e)
	said.Issue = &state.Issue{Closed: i.Closed}
	e.Payload = said
	return "", nil
}

// judge completes an action with the result of its command.
func judge(order state.Order) func(store.Applied, *store.Action) {
	return func(applied store.Applied, a *store.Action) {
		t := applied.Task
		switch {
		case t == nil || !applied.Changed:
			a.Refused, a.Result = true, applied.Note
		case applied.Answer == "" || applied.Answer == state.ReplyBudgetRaised:
			a.Result = doneText(order, t)
		default:
			a.Refused, a.Result = true, refusedText(applied.Answer, t)
		}
	}
}

// doneText describes the effect of a command in one line.
func doneText(order state.Order, t *state.Task) string {
	switch order.Verb {
	case state.VerbCancel:
		if t.End != nil && t.End.Saving {
			return "canceled; its work is being saved"
		}
		return "canceled"
	case state.VerbStop:
		return "stopped; `retry` continues it"
	case state.VerbBudget:
		s := "limit raised; spent so far: " + words.SpentOf(t.Money)
		if t.Money.CapTokens > 0 {
			s += fmt.Sprintf(", %s of %s tokens", words.Count(t.Money.Tokens()), words.Count(t.Money.CapTokens))
		}
		if order.VMHours > 0 {
			s += fmt.Sprintf("; %s more than the configured limit", words.Many(t.MoreVMHours, "VM hour"))
		}
		return s
	case state.VerbRestart:
		return "restarted: " + words.Phase(t.Phase)
	}
	return "continues: " + words.Phase(t.Phase)
}

// refusedText describes in one line why a command has no effect. The reason is one of state.Reply….
func refusedText(reason string, t *state.Task) string {
	if t.Ended() && !t.Purged.IsZero() {
		return "the task's texts were purged, so there is nothing to continue; begin it again on GitHub: assign the issue, set the label, or comment `restart`"
	}
	switch reason {
	case state.ReplyRetryClosed:
		return "the issue is closed; reopen it first"
	case state.ReplyNoBudget:
		return "the task runs on a subscription, which has no cost per call; raise the limit on tokens, as in `+500k tokens`"
	case state.ReplyNoTokenCap:
		return "there is nothing to raise: the task has no limit on tokens"
	case state.ReplyNothingToRetry:
		return "there is nothing to retry: " + words.PhaseClause(t.Phase)
	}
	if t.Ended() {
		return "the task has ended: " + words.Phase(t.Phase)
	}
	return "no agent is running: " + words.PhaseClause(t.Phase)
}
