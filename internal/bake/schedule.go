package bake

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
)

// Intervals of [Baker.Run].
const (
	tick     = 10 * time.Minute
	patience = 6 * time.Hour // after a failed attempt
)

// Run bakes due images until ctx ends: for groups without an image, with a changed recipe, or with an image older than
// Every, and on request. A failed group is retried six hours later. Only one Run may be active at a time.
func (b *Baker) Run(ctx context.Context) error {
	if err := b.cfg.VMs.Sweep(ctx); err != nil && ctx.Err() == nil {
		b.cfg.Log.Warn().Err(err).Msg("failed to delete the VMs of interrupted bakes")
	}
	tried := map[string]time.Time{}
	for {
		b.pass(ctx, tried)
		for end := b.cfg.Now().Add(tick); b.cfg.Now().Before(end); {
			pause := tick
			if b.cfg.Asked != "" {
				pause = askEvery
			}
			if err := b.cfg.Wait(ctx, pause); err != nil {
				return err
			}
			b.serveRequests(ctx)
		}
	}
}

// pass bakes the images that are due now. tried holds the times of failures by group.
func (b *Baker) pass(ctx context.Context, tried map[string]time.Time) {
	if len(b.cfg.Groups) == 0 {
		return
	}
	images, err := b.cfg.Images.Images(ctx)
	if err != nil {
		b.cfg.Log.Warn().Err(err).Msg("failed to determine which base images are due")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(b.cfg.Groups)) {
		if ctx.Err() != nil || b.cfg.Now().Sub(tried[name]) < patience {
			continue
		}
		begun, err := b.begin(ctx)
		if err != nil { // this is no failed attempt, so the next pass tries again
			b.cfg.Log.Debug().Err(err).Str("group", name).Msg("no base image is baked")
			continue
		}
		begun()
		why := dueReason(images, name, b.cfg.Groups[name], b.cfg.Now())
		if why == "" {
			continue
		}
		b.cfg.Log.Info().Str("group", name).Str("reason", why).Msg("base image due")
		if _, err := b.Bake(ctx, name); err != nil {
			tried[name] = b.cfg.Now()
			if ctx.Err() == nil {
				b.cfg.Log.Error().Err(err).Str("group", name).Msg("failed to bake a base image")
			}
		}
	}
}

// dueReason returns the reason why a group's image must be baked, or an empty string.
func dueReason(images []fleet.Image, name string, g Group, now time.Time) string {
	list := AvailableImages(images, name)
	switch {
	case len(list) == 0:
		return "there is none"
	case list[0].Labels[LabelDigest] != g.digest():
		return "its recipe has changed"
	case g.Every > 0 && now.Sub(list[0].CreatedAt) >= g.Every:
		return "it is old"
	}
	return ""
}
