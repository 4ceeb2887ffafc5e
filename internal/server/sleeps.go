package server

import (
	"context"
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
)

// strayAfter is how long an archive of work that was put away may lie before it is asked whose it is: a job may be
// about to report it.
const strayAfter = time.Hour

// pruneSleeps deletes archives that no task names, such as one that was written by a process that died before the
// store knew of it.
func (s *Server) pruneSleeps(ctx context.Context, now time.Time) error {
	list, err := s.archive.Sleeps()
	if err != nil {
		return err
	}
	for _, a := range list {
		if a.Saved.After(now.Add(-max(strayAfter, s.cfg.Keep.AfterEnd))) {
			continue
		}
		var key state.TaskKey
		if _, err := fmt.Sscanf(a.Ref, "%d-%d-", &key.Repo, &key.Issue); err != nil {
			continue // not of ours
		}
		t, err := s.store.Task(ctx, key)
		if err != nil {
			return err
		}
		if t != nil && t.Asleep != nil && t.Asleep.Ref == a.Ref {
			continue
		}
		s.opts.Log.Info().Str("archive", a.Ref).Int64("bytes", a.Bytes).Msg("delete an archive that no task names")
		if err := s.archive.DeleteSleep(a.Ref); err != nil {
			return err
		}
	}
	return nil
}
