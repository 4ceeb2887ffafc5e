package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/pause"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// makePause creates the keeper of the operator's pauses.
func (s *Server) makePause(context.Context) error {
	s.pause = pause.New(pause.Config{
		Store:      s.store,
		Repository: s.repositoryToPause,
		Redact: func(text string) string {
			text, _ = s.redact.Redact(text)
			return text
		},
		BakesBeginning: func() int { return int(s.bakesBeginning.Load()) },
		Log:            s.opts.Log,
		Every:          time.Minute,
		Again:          5 * time.Second,
	})
	return nil
}

// repositoryToPause returns the repository of a name: that of an open task, which is known without GitHub, or one that the App has
// access to.
func (s *Server) repositoryToPause(ctx context.Context, name string) (state.Repo, error) {
	var found state.Repo
	err := s.store.EachOpen(ctx, func(l store.Listed) error {
		if found.ID != 0 {
			return nil
		}
		t, err := l.Load()
		if err == nil && strings.EqualFold(t.Repo.FullName(), name) {
			found = t.Repo
			found.ID = t.Key.Repo
		}
		return err
	})
	if err != nil || found.ID != 0 {
		return found, err
	}
	_, found, err = s.repositoryNamed(ctx, name)
	if errors.Is(err, forge.ErrNotInstalled) {
		return found, &pause.RefusedError{Reason: fmt.Sprintf("errand has no access to %s: check the name, or install the App there", name)}
	}
	if err != nil {
		return found, admin.UnchangedError{Err: fmt.Errorf("find the repository on GitHub: %w", err)}
	}
	return found, nil
}

// repositoryNamed returns one of the App's repositories. The error for another name is forge.ErrNotInstalled.
func (s *Server) repositoryNamed(ctx context.Context, name string) (forge.Repo, state.Repo, error) {
	installations, err := s.forge.Installations(ctx)
	if err != nil {
		return forge.Repo{}, state.Repo{}, err
	}
	for _, i := range installations {
		repos, err := s.forge.InstallationRepos(ctx, i.ID)
		if err != nil {
			return forge.Repo{}, state.Repo{}, err
		}
		for _, r := range repos {
			if strings.EqualFold(r.FullName(), name) {
				return forge.Repo{Installation: i.ID, Owner: r.Owner, Name: r.Name, ID: r.ID}, r, nil
			}
		}
	}
	return forge.Repo{}, state.Repo{}, fmt.Errorf("%w: %s", forge.ErrNotInstalled, name)
}

// pauses returns what the pages need to pause and resume.
func (s *Server) pauses() *admin.Pauses {
	refusal := func(a store.Action, err error) (store.Action, error) {
		var refused *pause.RefusedError
		if errors.As(err, &refused) {
			return a, admin.Refusal(refused.Reason)
		}
		return a, err
	}
	return &admin.Pauses{
		List: s.pause.List,
		Pause: func(ctx context.Context, repo, reason string, a store.Action) (store.Action, error) {
			return refusal(s.pause.Pause(ctx, repo, reason, a))
		},
		Resume: func(ctx context.Context, repo string, all bool, a store.Action) (store.Action, error) {
			return refusal(s.pause.Resume(ctx, repo, all, a))
		},
		UnderWay: func(ctx context.Context) (list []admin.Work, err error) {
			work, err := s.pause.UnderWay(ctx)
			for _, w := range work {
				list = append(list, admin.Work{Task: w.Task, Doing: w.Doing})
			}
			return list, err
		},
	}
}

// mayBake returns an error while everything is paused, so that no VM may be created to bake an image.
func (s *Server) mayBake(ctx context.Context) error {
	p, err := s.store.Pauses.Of(ctx, 0)
	if p == nil || err != nil {
		return err
	}
	return fmt.Errorf("%s, so no VM is created; `errand resume` ends that", p.Waiting().Detail)
}

// beginBake registers that a VM is about to be created to bake an image, until begun is called, unless everything is paused. It
// registers before it reads the pauses: a bake that a later pause does not keep from beginning is under way for that pause.
func (s *Server) beginBake(ctx context.Context) (begun func(), err error) {
	s.bakesBeginning.Add(1)
	begun = sync.OnceFunc(func() { s.bakesBeginning.Add(-1) })
	if err := s.mayBake(ctx); err != nil {
		begun()
		return nil, err
	}
	return begun, nil
}

// onceResumed is added to the result of a command that lets a task continue while a pause applies to it.
func (s *Server) onceResumed(ctx context.Context, t state.TaskKey) string {
	w, err := s.pause.Waiting(ctx, t.Repo)
	if err != nil {
		s.opts.Log.Warn().Err(err).Msg("failed to read the pauses")
	}
	if w == nil {
		return ""
	}
	return "; it waits: " + w.Detail
}
