package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
)

// claimTime is the time in which a job reports an archive that it has written; younger archives are kept.
const claimTime = time.Hour

// pruneArchives deletes archives of suspended work that no task refers to, such as one whose writer died before it had
// reported it.
func (c *Cleaner) pruneArchives(ctx context.Context, now time.Time) error {
	list, err := c.cfg.Archive.Sleeps()
	if err != nil {
		return err
	}
	for _, a := range list {
		if a.Saved.After(now.Add(-max(claimTime, c.cfg.AfterEnd))) {
			continue
		}
		var key state.TaskKey
		if _, err := fmt.Sscanf(a.Ref, "%d-%d-", &key.Repo, &key.Issue); err != nil {
			continue // not a file of errand
		}
		t, err := c.cfg.Store.Task(ctx, key)
		if err != nil {
			return err
		}
		if t != nil && t.Suspended != nil && t.Suspended.Ref == a.Ref {
			continue
		}
		c.cfg.Log.Info().Str("archive", a.Ref).Int64("bytes", a.Bytes).Msg("deleting an archive that no task uses")
		if err := c.cfg.Archive.DeleteSleep(a.Ref); err != nil {
			return err
		}
	}
	return nil
}
