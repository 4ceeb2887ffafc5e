package workflow

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/state"
)

// vet asks GitHub what the sender of an event may do, and returns the event with the answer. Bots
// may do nothing unless they are listed; a listed one needs write permission like anybody.
func (s *Steps) vet(ctx context.Context, w *unit) (state.Event, error) {
	e := *w.job.Event
	if e.By.Bot && !trust.ListedBot(s.AllowBots, e.By) {
		e.Permission = state.PermissionNone
		return e, nil
	}
	repo := w.repo
	if w.task == nil {
		repo = forge.Repo{Installation: e.Installation, Owner: e.Repo.Owner, Name: e.Repo.Name, ID: e.Repo.ID}
	}
	at := s.Now()
	p, err := s.GitHub.Permission(ctx, repo, e.By.Login, e.By.ID)
	if err != nil {
		return state.Event{}, insist(fmt.Errorf("vet %s of @%s: %w", e.Kind, e.By.Login, err))
	}
	e.Permission, e.Vetted = p, &state.Vetted{By: e.By, Permission: p, At: at}
	if p.CanWrite() && acts(e) {
		base := ""
		if w.task != nil {
			base = w.task.Branch.Base
		}
		return s.reread(ctx, repo, e, base)
	}
	return e, nil
}

// How long the answer about an event's sender serves the jobs that the event queued: what the sender's words
// may tell the agent, and the start of what the sender approved.
const (
	wordsFresh    = time.Minute
	approvalFresh = 10 * time.Second
)

// vettedWithin reports whether the job knows what GitHub answered about a person no longer ago than d.
func (s *Steps) vettedWithin(w *unit, userID int64, d time.Duration) bool {
	if w.job == nil || w.job.Vetted == nil || userID == 0 || w.job.Vetted.By.ID != userID {
		return false
	}
	age := s.Now().Sub(w.job.Vetted.At)
	return age >= 0 && age < d
}

// permission returns what a person may do: the answer that was read for the event that queued this job, while it
// is fresh, else GitHub's present one.
func (s *Steps) permission(ctx context.Context, w *unit, who state.Person) (state.Permission, error) {
	if s.vettedWithin(w, who.ID, wordsFresh) {
		return w.job.Vetted.Permission, nil
	}
	return s.GitHub.Permission(ctx, w.repo, who.Login, who.ID)
}

// react sets a reaction of ours. It may be repeated: GitHub keeps one of a kind per account.
func (s *Steps) react(ctx context.Context, w *unit) (state.Event, error) {
	a := w.job.Args
	repo := w.repo
	if w.task == nil {
		inst, err := strconv.ParseInt(a["installation"], 10, 64)
		if err != nil {
			return state.Event{}, fmt.Errorf("react: installation %q: %w", a["installation"], err)
		}
		repo = forge.Repo{Installation: inst, Owner: a["owner"], Name: a["name"], ID: w.job.Task.Repo}
	}
	target := forge.Target{Kind: forge.TargetIssue, ID: int64(w.job.Task.Issue)}
	if c := a["comment"]; c != "" {
		id, err := strconv.ParseInt(c, 10, 64)
		if err != nil {
			return state.Event{}, fmt.Errorf("react: comment %q: %w", c, err)
		}
		target = forge.Target{Kind: forge.TargetComment, ID: id}
		if a["review"] != "" {
			target.Kind = forge.TargetReviewComment
		}
	}
	ctx = forge.WithPriority(ctx, forge.PriorityReaction)
	switch err := s.GitHub.React(ctx, repo, target, a["content"]); {
	case errors.Is(err, forge.ErrLocked):
		w.log.Info().Err(err).Msg("no reaction where the conversation is locked")
	case errors.Is(err, forge.ErrNotFound) && a["comment"] != "":
		w.log.Info().Err(err).Msg("no reaction to a comment that was deleted")
	case err != nil:
		return state.Event{}, fmt.Errorf("react with %s: %w", a["content"], err)
	}
	return done(), nil
}
