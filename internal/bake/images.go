package bake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/fleet"
)

// Labels of base images, in addition to the fleet's.
const (
	// LabelDigest is the digest of the recipe.
	LabelDigest = "errand-recipe"
	// LabelBaked is the start of the bake in Unix seconds. It makes each image's labels unique.
	LabelBaked = "errand-baked"
)

// keptImages is the number of images kept per group.
const keptImages = 2

func (b *Baker) labels(name string, g Group, at time.Time) map[string]string {
	return map[string]string{
		fleet.LabelKind: fleet.ImageBase, fleet.LabelGroup: name, LabelDigest: g.digest(), LabelBaked: strconv.FormatInt(at.Unix(), 10),
	}
}

// AvailableImages returns the available base images of a group, newest first.
func AvailableImages(images []fleet.Image, group string) []fleet.Image {
	list := imagesOfGroup(images, group)
	return slices.DeleteFunc(list, func(i fleet.Image) bool { return !i.Ready || i.Failed })
}

// imagesOfGroup returns the base images of a group in any state, newest first.
func imagesOfGroup(images []fleet.Image, group string) []fleet.Image {
	var list []fleet.Image
	for _, i := range images {
		if i.Labels[fleet.LabelKind] == fleet.ImageBase && i.Labels[fleet.LabelGroup] == group {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b fleet.Image) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return list
}

// prune deletes the images of a group except the two newest available ones and those in creation.
func (b *Baker) prune(ctx context.Context, group string, log zerolog.Logger) error {
	list, err := b.cfg.Images.Images(ctx)
	if err != nil {
		return fmt.Errorf("list images: %w", err)
	}
	var errs []error
	usable := 0
	for _, i := range imagesOfGroup(list, group) {
		switch {
		case i.Failed:
		case !i.Ready:
			continue
		default:
			if usable++; usable <= keptImages {
				continue
			}
		}
		if err := b.cfg.Images.DeleteImage(ctx, i.ID); err != nil {
			errs = append(errs, fmt.Errorf("delete image %s: %w", i.ID, err))
			continue
		}
		log.Info().Str("image", i.ID).Bool("failed", i.Failed).Msg("older image deleted")
	}
	return errors.Join(errs...)
}
