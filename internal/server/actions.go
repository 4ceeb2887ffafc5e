package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/forge"
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
	if by.ID != 0 {
		p, err := s.forge.Permission(ctx, forge.RepoOf(t), by.Login, by.ID)
		if err != nil {
			return a, admin.UnchangedError{Err: fmt.Errorf("read your permission: %w", err)}
		}
		if !p.CanWrite() {
			a.Task, a.Refused, a.Result = t.Key, true, "commands need write access to the repository"
			return a, s.store.Audit.Add(ctx, a)
		}
	}
	closed := false
	if order.Verb == state.VerbRestart || order.Verb == state.VerbRetry && t.Ended() {
		i, err := s.forge.Issue(ctx, forge.RepoOf(t), t.Key.Issue)
		switch {
		case errors.Is(err, forge.ErrNotFound):
			a.Task, a.Refused, a.Result = t.Key, true, "the issue no longer exists, or errand has no access to it"
			return a, s.store.Audit.Add(ctx, a)
		case err != nil:
			return a, admin.UnchangedError{Err: fmt.Errorf("read the issue: %w", err)}
		}
		closed = i.Closed
	}
	e := event.OperatorCommand(t.Key, a.ID, order, closed)
	if by.ID != 0 {
		e = event.PersonCommand(t.Key, a.ID, by, order, closed)
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
