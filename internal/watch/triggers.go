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

// name identifies the trigger in the stored times of a repository.
func (k triggerKind) name() string { return string(k.via) + ":" + strings.ToLower(k.subject) }

// triggerKinds returns the configured triggers.
func (s *Sweeper) triggerKinds() (kinds []triggerKind) {
	if s.cfg.Assignee != "" {
		kinds = append(kinds, triggerKind{forge.IssueFilter{Assignee: s.cfg.Assignee}, state.TriggerAssigned, "assigned", s.cfg.Assignee})
	}
	if s.cfg.Label != "" {
		kinds = append(kinds, triggerKind{forge.IssueFilter{Label: s.cfg.Label}, state.TriggerLabel, "labeled", s.cfg.Label})
	}
	return kinds
}

// reportLostTriggers reports issues that have errand's assignee or label and no task. The issue's events show who set it, and
// that person's permission counts. Issues that had it before errand watched the repository are only listed. An unreadable
// issue does not affect the others.
func (s *Sweeper) reportLostTriggers(ctx context.Context, p place) error {
	found := oldTriggers{before: s.oldIn(p.repo.ID).seen, seen: map[triggerOn]time.Time{}}
	var errs []error
	for _, kind := range s.triggerKinds() {
		issues, err := s.cfg.GitHub.OpenIssuesFor(ctx, p.forgeRepo(), kind.filter)
		errs = append(errs, err)
		for _, i := range issues {
			var limit *forge.LimitError
			err := s.reportTrigger(ctx, p, i, kind, &found)
			if errs = append(errs, err); errors.As(err, &limit) || ctx.Err() != nil {
				return errors.Join(errs...) // the limit affects the others, too
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err // the previous list remains
	}
	s.setOld(p.repo.ID, found)
	return nil
}

// reportTrigger reports one issue, unless it has a task or its task ended after the trigger. An old trigger is added to old.
func (s *Sweeper) reportTrigger(ctx context.Context, p place, i forge.Issue, kind triggerKind, old *oldTriggers) error {
	key := state.TaskKey{Repo: p.repo.ID, Issue: i.Number}
	t, err := s.cfg.Store.Task(ctx, key)
	if err != nil || t != nil && !t.Ended() {
		return err
	}
	since := s.since.Repos[p.repo.ID][kind.name()]
	if t == nil && (i.UpdatedAt.Before(since) || old.isKnown(i, kind)) { // its events need not be read
		old.add(p, i, kind)
		return nil
	}
	by, at, err := s.cfg.GitHub.IssueActor(ctx, p.forgeRepo(), i.Number, kind.action, kind.subject)
	if err != nil {
		return fmt.Errorf("find who triggered %s#%d: %w", p.repo.FullName(), i.Number, err)
	}
	switch {
	case by.ID == 0 || t != nil && !at.After(t.EndedAt()):
		return nil
	case at.Before(since):
		old.add(p, i, kind)
		return nil
	}
	e, err := s.triggerEvent(ctx, p, i, foundTrigger{kind: kind, by: by, at: at})
	if err != nil {
		return err
	}
	if _, err := s.cfg.Store.Apply(ctx, e, store.Ack{}); err != nil {
		return fmt.Errorf("report a lost trigger: %w", err)
	}
	s.cfg.Log.Info().Str("task", key.String()).Msg("found an issue without a task")
	return nil
}

// foundTrigger is a trigger of an issue, with the person who set it and the time.
type foundTrigger struct {
	kind triggerKind
	by   state.Person
	at   time.Time
}

// triggerEvent returns the event of a trigger that was found on GitHub.
func (s *Sweeper) triggerEvent(ctx context.Context, p place, i forge.Issue, f foundTrigger) (event.Event, error) {
	issue, r := i.Issue, p.repo
	var err error
	if issue.Unvouched, err = s.changedSince(ctx, p.forgeRepo(), i, f.at); err != nil {
		return event.Event{}, fmt.Errorf("check for edits of %s#%d: %w", r.FullName(), i.Number, err)
	}
	return event.Event{
		Task:         state.TaskKey{Repo: r.ID, Issue: i.Number},
		ID:           fmt.Sprintf("swept:%s:%d", f.kind.via, f.at.Unix()),
		By:           f.by,
		Via:          f.kind.via,
		At:           f.at,
		Repo:         &r,
		Installation: p.installation,
		Payload:      event.Triggered{Issue: &issue},
	}, nil
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
