package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
)

// An ImageSpec says of which VM an image is made.
type ImageSpec struct {
	VM     string // the provider's id
	Labels map[string]string
	// First says that no image with these labels was ever asked for, so that none has to be looked for.
	First bool
}

// ImageMaker is the part of an Imager that MakeImage needs.
type ImageMaker interface {
	Image(ctx context.Context, spec ImageSpec) (Image, error)
	ImageByID(ctx context.Context, id string) (Image, error)
	DeleteImage(ctx context.Context, id string) error
}

// ImageWait says how MakeImage waits.
type ImageWait struct {
	// Since is when the image was wanted. The time between two checks grows with what has passed since then, and an image
	// that is not ready Within that time is given up.
	Since  time.Time
	Within time.Duration
	// First is the time from the order to the first check.
	First time.Duration
	// Pause is the least time between two checks, and between two orders while the provider is busy with the VM.
	Pause time.Duration
	Now   func() time.Time
	Wait  func(ctx context.Context, d time.Duration) error
	Log   zerolog.Logger
}

// imageTries is how often an image is ordered while the provider is busy with the VM.
const imageTries = 4

// MakeImage begins the image of a VM that is off, or finds the one that was begun, and waits until it can be used.
//
// It orders the image a few times while the provider is busy with the VM. That an image is gone, or cannot be used, is
// believed when two checks in a row say so; one that fails changes nothing. An image that cannot be used or is not ready
// in time is deleted, and the error wraps ErrInvalid.
func MakeImage(ctx context.Context, maker ImageMaker, spec ImageSpec, w ImageWait) (Image, error) {
	img, err := w.begin(ctx, maker, spec)
	if err != nil {
		return Image{}, err
	}
	next := w.First
	for bad := 0; !img.Ready; {
		if err := w.Wait(ctx, next); err != nil {
			return Image{}, err
		}
		passed := w.Now().Sub(w.Since)
		if passed > w.Within {
			return Image{}, errors.Join(fmt.Errorf("%w: image %s is not available after %s", ErrInvalid, img.ID, w.Within), maker.DeleteImage(ctx, img.ID))
		}
		next = max(w.Pause, passed/growth)
		now, err := maker.ImageByID(ctx, img.ID)
		switch {
		case errors.Is(err, ErrNotFound) || err == nil && now.Failed:
			next = w.Pause
			if bad++; bad > 1 {
				return Image{}, errors.Join(fmt.Errorf("%w: image %s cannot be used", ErrInvalid, img.ID), maker.DeleteImage(ctx, img.ID))
			}
		case err != nil && ctx.Err() != nil:
			return Image{}, err
		case err != nil:
			w.Log.Warn().Err(err).Str("image", img.ID).Msg("failed to check an image; retrying")
		default:
			img, bad = now, 0
		}
	}
	return img, nil
}

// begin orders the image. A refusal because the provider is busy with the VM orders nothing.
func (w ImageWait) begin(ctx context.Context, maker ImageMaker, spec ImageSpec) (img Image, err error) {
	for try := range imageTries {
		if img, err = maker.Image(ctx, spec); !errors.Is(err, ErrBusy) || try == imageTries-1 {
			break
		}
		w.Log.Warn().Err(err).Msg("the provider is busy with a VM; ordering its image again")
		if err := w.Wait(ctx, w.Pause<<try); err != nil {
			return Image{}, err
		}
	}
	return img, err
}
