package bake

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
)

// The rhythm of Run.
const (
	tick     = 10 * time.Minute
	patience = 6 * time.Hour // after a try that failed
)

// Run bakes what is due until ctx ends: a group without an image, one whose recipe has changed, and one
// whose image is older than Every; and what somebody asks for. A group that could not be baked is tried
// again six hours later. Only one Run may go on at a time.
func (b *Baker) Run(ctx context.Context) error {
	if err := b.cfg.VMs.Sweep(ctx); err != nil && ctx.Err() == nil {
		b.cfg.Log.Warn().Err(err).Msg("delete the VMs of bakings that were cut short")
	}
	tried := map[string]time.Time{}
	for {
		b.pass(ctx, tried)
		for end := b.cfg.Now().Add(tick); b.cfg.Now().Before(end); {
			pause := tick
			if b.cfg.Asked != "" {
				pause = lookEvery
			}
			if err := b.cfg.Wait(ctx, pause); err != nil {
				return err
			}
			b.answer(ctx)
		}
	}
}

// pass bakes what is due now. tried is when groups failed.
func (b *Baker) pass(ctx context.Context, tried map[string]time.Time) {
	if len(b.cfg.Groups) == 0 {
		return
	}
	images, err := b.cfg.Images.Images(ctx)
	if err != nil {
		b.cfg.Log.Warn().Err(err).Msg("look which base images are due")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(b.cfg.Groups)) {
		if ctx.Err() != nil || b.cfg.Now().Sub(tried[name]) < patience {
			continue
		}
		why := due(images, name, b.cfg.Groups[name], b.cfg.Now())
		if why == "" {
			continue
		}
		b.cfg.Log.Info().Str("group", name).Str("why", why).Msg("a base image is due")
		if _, err := b.Bake(ctx, name); err != nil {
			tried[name] = b.cfg.Now()
			if ctx.Err() == nil {
				b.cfg.Log.Error().Err(err).Str("group", name).Msg("bake a base image")
			}
		}
	}
}

// due says why a group has to be baked, or nothing.
func due(images []fleet.Image, name string, g Group, now time.Time) string {
	list := Of(images, name)
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
