// Package retention deletes data that is no longer needed: transcripts, changesets and egress logs past their
// retention, archives without a task, ended tasks, remembered delivery IDs and the audit log. VMs are the fleet's.
//
// Start with Cleaner.Clean.
package retention

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/state/store"
)

// Config is what a Cleaner needs. All fields are required.
type Config struct {
	Store   *store.Store
	Archive *archive.Dir
	Egress  *egress.Log
	// AfterEnd is how long an ended task is kept, Expire how long a task may wait before it ends, and Transcripts how
	// long transcripts are kept.
	AfterEnd, Expire, Transcripts time.Duration
	// Every is the time between two cleanups.
	Every time.Duration
	Now   func() time.Time
	Log   zerolog.Logger
}

// A Cleaner deletes data past its retention.
type Cleaner struct{ cfg Config }

// NewCleaner returns a Cleaner.
func NewCleaner(cfg Config) *Cleaner { return &Cleaner{cfg} }

// Run cleans at once and then regularly until ctx ends.
func (c *Cleaner) Run(ctx context.Context) error {
	for {
		c.Clean(ctx)
		if clock.Sleep(ctx, c.cfg.Every) != nil {
			return nil
		}
	}
}

// deliveryIDs is how long the IDs of webhook deliveries are remembered: longer than GitHub can redeliver one.
const deliveryIDs = 8 * 24 * time.Hour

// audit is how long the actions of operators are kept.
const audit = 400 * 24 * time.Hour

// Clean deletes once what has outlived its retention. Failures are logged, and do not keep it from the rest.
func (c *Cleaner) Clean(ctx context.Context) {
	now := c.cfg.Now()
	// `retry` continues with the changeset of a task that waited, was canceled, and is not to be forgotten yet.
	_, files := c.cfg.Archive.Prune(now.Add(-c.cfg.AfterEnd-c.cfg.Expire), now.Add(-c.cfg.Transcripts))
	_, ids := c.cfg.Store.PruneTombstones(ctx, now.Add(-deliveryIDs))
	_, tasks := c.cfg.Store.Prune(ctx, now.Add(-c.cfg.AfterEnd))
	actions := c.cfg.Store.Audit.Prune(ctx, now.Add(-audit))
	logs := c.cfg.Egress.Prune(now.Add(-c.cfg.Transcripts))
	for _, err := range []error{files, ids, tasks, actions, logs, c.pruneArchives(ctx, now), c.pruneAttachments(ctx, now)} {
		if err != nil && ctx.Err() == nil {
			c.cfg.Log.Error().Err(err).Msg("failed to clean up")
		}
	}
}
