package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// A RefusedError is the reason, for people, why an issue cannot be adopted.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// Adopt starts the task of an issue that has errand's label or assignee, as if it had been set now by the person who set it: that
// person needs write access. repo is OWNER/NAME. It returns who set it, for people, or a RefusedError.
func (s *Sweeper) Adopt(ctx context.Context, repo string, number int) (string, error) {
	p, i, err := s.issueWithoutTask(ctx, repo, number, true)
	if err != nil {
		return "", err
	}
	f, err := s.triggerOf(ctx, p, i)
	if err != nil {
		return "", err
	}
	who := fmt.Sprintf("%s#%d, %s by @%s at %s", p.repo.FullName(), number, f.kind.action, f.by.Login, f.at.UTC().Format("2006-01-02 15:04 UTC"))
	return who, s.adopt(ctx, p, i, f)
}

// A Candidate is an open issue for which the operator can begin a task.
type Candidate struct {
	Repo         state.Repo
	Installation int64
	Issue        forge.Issue
}

// Candidate reads an issue for which the operator wants to begin a task. repo is OWNER/NAME. Its error is a RefusedError if that is not
// possible; the repository is known nevertheless if errand has access to it.
func (s *Sweeper) Candidate(ctx context.Context, repo string, number int) (Candidate, error) {
	p, i, err := s.issueWithoutTask(ctx, repo, number, false)
	return Candidate{Repo: p.repo, Installation: p.installation, Issue: i}, err
}

// issueWithoutTask returns an open issue on which errand does not work. Whether its task may have ended is up to the caller.
func (s *Sweeper) issueWithoutTask(ctx context.Context, repo string, number int, endedToo bool) (place, forge.Issue, error) {
	p, err := s.placeNamed(ctx, repo)
	if err != nil {
		return place{}, forge.Issue{}, err
	}
	name := fmt.Sprintf("%s#%d", p.repo.FullName(), number)
	t, err := s.cfg.Store.Task(ctx, state.TaskKey{Repo: p.repo.ID, Issue: number})
	if err != nil {
		return place{}, forge.Issue{}, err
	}
	if t != nil && (!endedToo || !t.Ended()) {
		return p, forge.Issue{}, &RefusedError{TaskExists(name, t)}
	}
	i, err := s.cfg.GitHub.Issue(ctx, p.forgeRepo(), number)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		err = refuse("there is no issue %s", name)
	case err != nil:
		err = fmt.Errorf("read %s: %w", name, err)
	case i.IsPR:
		err = refuse("%s is a pull request", name)
	case isElsewhere(p.repo.FullName(), number, i):
		err = refuse("%s was transferred: it is at %s now", name, i.URL)
	case i.Closed:
		err = refuse("%s is closed; reopen it first", name)
	}
	return p, i, err
}

// TaskExists explains why no task can begin for an issue, named OWNER/REPO#N, that has one.
func TaskExists(name string, t *state.Task) string {
	if t.Ended() {
		return fmt.Sprintf("the task of %s has ended (%s); `errand restart %s` begins it again", name, words.Phase(t.Phase), name)
	}
	return fmt.Sprintf("errand is already working on %s (%s)", name, words.Phase(t.Phase))
}

// placeNamed returns the repository of a name.
func (s *Sweeper) placeNamed(ctx context.Context, repo string) (place, error) {
	places, complete, err := s.places(ctx)
	if err != nil {
		return place{}, fmt.Errorf("list the repositories: %w", err)
	}
	for _, p := range places {
		if strings.EqualFold(p.repo.FullName(), repo) {
			return p, nil
		}
	}
	if !complete {
		return place{}, errors.New("some repositories cannot be listed at present")
	}
	return place{}, refuse("errand has no access to %s: install the App there", repo)
}

// triggerOf returns the trigger that an issue has.
func (s *Sweeper) triggerOf(ctx context.Context, p place, i forge.Issue) (foundTrigger, error) {
	for _, kind := range s.triggerKinds() {
		if kind.via == state.TriggerAssigned && !s.isAssigned(i) || kind.via == state.TriggerLabel && !s.isLabeled(i) {
			continue
		}
		by, at, err := s.cfg.GitHub.IssueActor(ctx, p.forgeRepo(), i.Number, kind.action, kind.subject)
		switch {
		case err == nil && by.ID != 0:
			return foundTrigger{kind: kind, by: by, at: at}, nil
		case err != nil && !errors.Is(err, forge.ErrNotFound):
			return foundTrigger{}, fmt.Errorf("find who triggered %s#%d: %w", p.repo.FullName(), i.Number, err)
		}
	}
	return foundTrigger{}, refuse("nobody is known who set errand's label or assignee on %s#%d: set it now, or mention errand there in a comment",
		p.repo.FullName(), i.Number)
}

// adopt reports a trigger as if it had been set now.
func (s *Sweeper) adopt(ctx context.Context, p place, i forge.Issue, f foundTrigger) error {
	if !f.by.Bot { // the permission of a listed bot is read with the event
		permission, err := s.cfg.GitHub.Permission(ctx, p.forgeRepo(), f.by.Login, f.by.ID)
		if err != nil {
			return fmt.Errorf("read the permission of @%s: %w", f.by.Login, err)
		}
		if !permission.CanWrite() {
			return refuse("@%s, who %s %s#%d, has no write access there: "+
				"a person with write access has to set it again, or mention errand there in a comment",
				f.by.Login, f.kind.action, p.repo.FullName(), i.Number)
		}
	}
	e, err := s.triggerEvent(ctx, p, i, f)
	if err != nil {
		return err
	}
	e.At = s.cfg.Now()
	e.ID = fmt.Sprintf("adopted:%s:%d", f.kind.via, e.At.UnixNano())
	if _, err := s.cfg.Store.Apply(ctx, e, store.Ack{}); err != nil {
		return fmt.Errorf("start the task: %w", err)
	}
	s.cfg.Log.Info().Str("task", e.Task.String()).Str("by", f.by.Login).Msg("adopted an issue")
	return nil
}
