package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/forge"
)

const (
	// deliveryRetention is how long GitHub keeps deliveries.
	deliveryRetention = 72 * time.Hour
	// readBack is how far ReadWebhooks goes back in GitHub's log. GitHub adds a webhook to the log after its attempt to deliver it,
	// and errand's clock may differ. What appears even later is found by the sweep for lost webhooks.
	readBack = 10 * time.Minute
	// lostMargin extends the time for which a store from a backup lacks webhooks. errand's clock may differ from GitHub's, and at the time
	// of the backup webhooks were on their way. One that the store knows is not fetched again.
	lostMargin = 10 * time.Minute
	// maxReadPause is the longest pause after failures to read the log.
	maxReadPause = 5 * time.Minute
)

// fetchLost fetches webhooks for which every delivery attempt failed. If GitHub sends none to errand, it fetches all that are unknown.
func (s *Sweeper) fetchLost(ctx context.Context) error {
	failed, err := s.fetch(ctx, s.cfg.Now().Add(-deliveryRetention))
	return errors.Join(failed, err)
}

// FetchOnly fetches lost webhooks periodically until ctx ends, and compares nothing.
func (s *Sweeper) FetchOnly(ctx context.Context) error {
	ctx = forge.WithPurpose(ctx, forge.ForSweep)
	for {
		if err := s.fetchLost(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn().Err(err).Msg("failed to sweep for lost webhooks")
		}
		if !pause(ctx, s.cfg.Deliveries, nil) {
			return nil
		}
	}
}

// ReadWebhooks reads all webhooks from GitHub's log until ctx ends, for an errand that GitHub cannot reach. It returns at once if
// GitHub sends webhooks to errand. One that cannot be fetched is tried again as long as it is listed, and does not delay the others.
func (s *Sweeper) ReadWebhooks(ctx context.Context) error {
	every := s.cfg.ReadWebhooks
	if every == 0 {
		return nil
	}
	ctx = forge.WithPurpose(ctx, forge.ForPoll)
	for wait := every; ; {
		failed, err := s.fetch(ctx, s.cfg.Now().Add(-readBack))
		var limit *forge.LimitError
		if err != nil || errors.As(failed, &limit) {
			wait = max(every, min(2*wait, maxReadPause))
		} else {
			wait = every
		}
		if err = errors.Join(failed, err); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn().Err(err).Dur("retry_in", wait).Msg("failed to read webhooks from GitHub")
		}
		if !pause(ctx, wait, nil) {
			return nil
		}
	}
}

// fetch fetches the webhooks since a time that errand lacks. failed has the errors with single ones, which do not affect the others.
func (s *Sweeper) fetch(ctx context.Context, since time.Time) (failed, err error) {
	if s.cfg.ReadWebhooks != 0 {
		// Older webhooks are not for this errand: perhaps an earlier one with another store has handled them.
		first, err := s.firstRun(ctx)
		if err != nil {
			return nil, err
		}
		if since.Before(first) {
			since = first
		}
	}
	list, err := s.cfg.GitHub.Deliveries(ctx, since)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, d := range list {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		lost := !s.cfg.LostUntil.IsZero() && d.At.After(s.cfg.LostFrom.Add(-lostMargin)) && d.At.Before(s.cfg.LostUntil.Add(lostMargin))
		if !d.OK || lost || s.cfg.ReadWebhooks != 0 { // without a webhook of errand's, something else has answered with success
			errs = append(errs, s.fetchDelivery(ctx, d))
		}
	}
	return errors.Join(errs...), nil
}

// fetchDelivery stores a delivery unless it is known.
func (s *Sweeper) fetchDelivery(ctx context.Context, d forge.Delivery) error {
	known, err := s.cfg.Store.HasDelivery(ctx, d.GUID)
	if err != nil {
		return fmt.Errorf("look up a delivery: %w", err)
	}
	if known {
		return nil
	}
	event, guid, payload, err := s.cfg.GitHub.HookDelivery(ctx, d.ID)
	if err != nil {
		return fmt.Errorf("fetch delivery %s: %w", d.GUID, err)
	}
	if err := s.cfg.Inbox.Insert(ctx, guid, event, payload); err != nil {
		return err
	}
	if s.cfg.ReadWebhooks == 0 {
		s.cfg.Log.Info().Str("delivery", guid).Str("event", event).Msg("fetched a lost webhook")
	}
	return nil
}

// firstRun returns when errand first ran, in whole seconds as on GitHub.
func (s *Sweeper) firstRun(ctx context.Context) (time.Time, error) {
	data, err := s.cfg.Store.Fact(ctx, watchFact)
	if err != nil {
		return time.Time{}, fmt.Errorf("read when errand first ran: %w", err)
	}
	times := watchTimes{First: s.started}
	if data != nil {
		if err := json.Unmarshal(data, &times); err != nil {
			return time.Time{}, fmt.Errorf("read when errand first ran: %w", err)
		}
	}
	return times.First.UTC().Truncate(time.Second), nil
}
