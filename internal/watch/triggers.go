package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

func (s *Sweeper) isAssigned(i forge.Issue) bool {
	for _, p := range i.Assignees {
		if p.ID == s.cfg.BotID || s.cfg.Assignee != "" && strings.EqualFold(p.Login, s.cfg.Assignee) {
			return true
		}
	}
	return false
}

func (s *Sweeper) isLabeled(i forge.Issue) bool {
	for _, l := range i.Labels {
		if strings.EqualFold(l, s.cfg.Label) {
			return true
		}
	}
	return false
}

// triggerKind is a kind of trigger that the sweep looks for.
type triggerKind struct {
	filter  forge.IssueFilter // the issues that have it
	via     state.TriggerVia  // state.Trigger.Via
	action  string            // the action of the issue's event, in GitHub's terms
	subject string            // the assignee or the label
}

// reportLostTriggers reports issues that have errand's assignee or label and no task. The issue's events show who set it, and
// that person's permission counts. An unreadable issue does not affect the others.
func (s *Sweeper) reportLostTriggers(ctx context.Context, installation int64, r state.Repo) error {
	repo := forge.Repo{Installation: installation, Owner: r.Owner, Name: r.Name, ID: r.ID}
	var kinds []triggerKind
	if s.cfg.Assignee != "" {
		kinds = append(kinds, triggerKind{forge.IssueFilter{Assignee: s.cfg.Assignee}, state.TriggerAssigned, "assigned", s.cfg.Assignee})
	}
	if s.cfg.Label != "" {
		kinds = append(kinds, triggerKind{forge.IssueFilter{Label: s.cfg.Label}, state.TriggerLabel, "labeled", s.cfg.Label})
	}
	var errs []error
	for _, kind := range kinds {
		issues, err := s.cfg.GitHub.OpenIssuesFor(ctx, repo, kind.filter)
		errs = append(errs, err)
		for _, i := range issues {
			var limit *forge.LimitError
			err := s.reportTrigger(ctx, repo, r, i, kind)
			if errs = append(errs, err); errors.As(err, &limit) || ctx.Err() != nil {
				return errors.Join(errs...) // the limit affects the others, too
			}
		}
	}
	return errors.Join(errs...)
}

// reportTrigger reports one issue, unless it has a task or its task ended after the trigger.
func (s *Sweeper) reportTrigger(ctx context.Context, repo forge.Repo, r state.Repo, i forge.Issue, kind triggerKind) error {
	key := state.TaskKey{Repo: r.ID, Issue: i.Number}
	t, err := s.cfg.Store.Task(ctx, key)
	if err != nil || t != nil && !t.Ended() {
		return err
	}
	by, at, err := s.cfg.GitHub.IssueActor(ctx, repo, i.Number, kind.action, kind.subject)
	if err != nil {
		return fmt.Errorf("find who triggered %s#%d: %w", repo.FullName(), i.Number, err)
	}
	if by.ID == 0 || t != nil && !at.After(t.EndedAt()) {
		return nil
	}
	issue := i.Issue
	if issue.Unvouched, err = s.changedSince(ctx, repo, i, at); err != nil {
		return fmt.Errorf("check for edits of %s#%d: %w", repo.FullName(), i.Number, err)
	}
	e := event.Event{
		Task:         key,
		ID:           fmt.Sprintf("swept:%s:%d", kind.via, at.Unix()),
		By:           by,
		Via:          kind.via,
		At:           at,
		Repo:         &r,
		Installation: repo.Installation,
		Payload:      event.Triggered{Issue: &issue},
	}
	if _, err := s.cfg.Store.Apply(ctx, e, store.Ack{}); err != nil {
		return fmt.Errorf("report a lost trigger: %w", err)
	}
	s.cfg.Log.Info().Str("task", key.String()).Msg("found an issue without a task")
	return nil
}

// changedSince reports whether the title or body may have changed after the trigger. No webhook has their earlier
// version.
func (s *Sweeper) changedSince(ctx context.Context, repo forge.Repo, i forge.Issue, at time.Time) (bool, error) {
	text, err := s.cfg.GitHub.IssueText(ctx, repo, i.Node)
	if err != nil || !text.EditedAt.Before(at) {
		return true, err
	}
	_, renamed, err := s.cfg.GitHub.IssueActor(ctx, repo, i.Number, "renamed", "")
	if errors.Is(err, forge.ErrNotFound) {
		return false, nil
	}
	return !renamed.Before(at), err
}
