package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/backup"
	"github.com/errand-bot/errand/internal/purge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// purgePatience is how long a purge waits for work on its task that is under way, such as the last comment.
const purgePatience = 20 * time.Second

// makePurger creates the purger of tasks.
func (s *Server) makePurger(context.Context) error {
	s.purger = purge.New(purge.Config{
		Store:    s.store,
		Files:    s.archive,
		Requests: s.reached,
		Compact:  s.file.Compact,
		Release:  s.fleet.Release,
		Follows:  s.super.Follows,
		Copies:   func() ([]string, error) { return backup.PutAside(s.cfg.Data) },
		Patience: purgePatience,
		Now:      s.opts.Now,
		Log:      s.opts.Log,
	})
	return nil
}

// purge deletes the texts of an ended task, for one request.
func (s *Server) purge(ctx context.Context, key state.TaskKey, a store.Action) (store.Purged, error) {
	if err := s.mayChange(ctx); errors.Is(err, ErrRestored) {
		return store.Purged{}, admin.Refusal(err.Error())
	} else if err != nil {
		return store.Purged{}, err
	}
	if !s.copying.TryLock() {
		return store.Purged{}, admin.Refusal("a backup is being made, which would contain the texts, or another task is being purged; try again when that has ended")
	}
	defer s.copying.Unlock()
	done, err := s.purger.Purge(ctx, key, a)
	var refused *purge.RefusedError
	if errors.As(err, &refused) {
		return done, admin.Refusal(refused.Reason)
	}
	return done, err
}

// resumePurges completes the purges that an earlier process began.
func (s *Server) resumePurges(ctx context.Context) {
	s.copying.Lock()
	defer s.copying.Unlock()
	if err := s.purger.Resume(ctx); err != nil && ctx.Err() == nil {
		s.opts.Log.Error().Err(fmt.Errorf("complete an interrupted purge: %w", err)).Msg("texts of a purged task are left on the disk")
	}
}
