package retention

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// pruneAttachments deletes attachments that no task refers to, or whose task ended longer ago than ended tasks are kept.
func (c *Cleaner) pruneAttachments(ctx context.Context, now time.Time) error {
	list, err := c.cfg.Archive.Attachments()
	if err != nil {
		return err
	}
	for _, a := range list {
		if a.Saved.After(now.Add(-claimTime)) {
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
		uses := func(x state.Attachment) bool { return x.SHA256 != "" && strings.HasSuffix(a.Ref, "-"+x.SHA256) }
		if t != nil && slices.ContainsFunc(t.Attachments, uses) && (t.End == nil || t.End.At.After(now.Add(-c.cfg.AfterEnd))) {
			continue
		}
		if err := c.cfg.Archive.DeleteAttachment(a.Ref); err != nil {
			return err
		}
	}
	return nil
}
