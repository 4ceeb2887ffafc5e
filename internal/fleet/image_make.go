package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
)

// An ImageSpec describes an image to create.
type ImageSpec struct {
	VM     string // the provider's ID of the VM
	Labels map[string]string
	// First states that no image with these labels was ever ordered, so that no lookup is needed.
	First bool
}

// ImageMaker is the part of an [Imager] that [MakeImage] needs.
type ImageMaker interface {
	Image(ctx context.Context, spec ImageSpec) (Image, error)
	ImageByID(ctx context.Context, id string) (Image, error)
	DeleteImage(ctx context.Context, id string) error
}

// ImageWait configures the waiting of [MakeImage].
type ImageWait struct {
	// Since is when the image was requested. The interval of checks grows with the time since then. An image that is
	// not ready after Within is given up.
	Since  time.Time
	Within time.Duration
	// First is the time from the order to the first check.
	First time.Duration
	// Pause is the minimum time between two checks, and between two orders while the provider is busy with the VM.
	Pause time.Duration
	Now   func() time.Time
	Wait  func(ctx context.Context, d time.Duration) error
	Log   zerolog.Logger
}

// imageTries is the number of orders while the provider is busy with the VM.
const imageTries = 4

// MakeImage orders an image of a powered-off VM, or finds the one already ordered, and waits until it is available.
//
// It repeats the order a few times while the provider is busy with the VM. Two consecutive checks must report that an
// image is missing or unusable before MakeImage accepts that; failed checks are ignored. An image that is unusable or
// not ready in time is deleted, and the error wraps [ErrInvalid].
func MakeImage(ctx context.Context, maker ImageMaker, spec ImageSpec, w ImageWait) (Image, error) {
	img, err := w.orderImage(ctx, maker, spec)
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
		next = max(w.Pause, passed/checkGrowth)
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

// orderImage orders the image. A refusal because the provider is busy has no effect.
func (w ImageWait) orderImage(ctx context.Context, maker ImageMaker, spec ImageSpec) (img Image, err error) {
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
