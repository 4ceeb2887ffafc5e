package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// An imageStore looks up images at the provider and books their cost.
type imageStore struct {
	*core

	listing chan struct{} // has an element while a caller lists images for all

	mu             sync.Mutex
	listed         []Image   // the last list of images
	listedAt       time.Time // time of that list
	cachedCurrency string    // currency of the account
	// usable is the last image found usable, at usableAt.
	usable   Image
	usableAt time.Time
}

// bookImages records the cost of images by their stored size. With whole, images is the complete list. If recording
// fails, a later pass records the whole time since.
func (s *imageStore) bookImages(ctx context.Context, images []Image, isComplete bool) {
	market, ok := s.asMarket()
	if !ok {
		return
	}
	var price int64
	var currency string
	if len(images) > 0 {
		var err error
		if price, err = market.ImageMicroGBMonth(ctx); err != nil {
			s.cfg.Log.Warn().Err(err).Msg("failed to read the price of images; retrying")
		}
		currency = s.currency(ctx, market)
	}
	list := make([]vm.Image, 0, len(images))
	for _, i := range images {
		image := vm.Image{ID: i.ID, CreatedAt: i.CreatedAt, Currency: currency, Paid: s.cfg.Paid}
		if i.Ready {
			image.MicroHour = imageMicroSpan(i.StoredMB, price)
		}
		list = append(list, image)
	}
	if err := s.rows.BookImages(ctx, list, isComplete); err != nil {
		s.cfg.Log.Warn().Err(err).Msg("failed to record the cost of images; retrying")
	}
}

// currency returns the currency of the provider's prices, empty while unknown. It is constant for an account and read
// once.
func (s *imageStore) currency(ctx context.Context, market Market) string {
	s.mu.Lock()
	known := s.cachedCurrency
	s.mu.Unlock()
	if known != "" {
		return known
	}
	offers, err := market.Offers(ctx)
	if err != nil || len(offers) == 0 {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cachedCurrency = offers[0].Currency
	return s.cachedCurrency
}

// lastingImage returns the image of a suspended VM. If two checks, lossAfter apart, report that it is missing or
// unusable, the error is ErrNotFound.
func (s *imageStore) lastingImage(ctx context.Context, id string) (*Image, error) {
	img, err := s.image(ctx, id)
	if !errors.Is(err, ErrNotFound) {
		return img, err
	}
	s.cfg.Log.Warn().Err(err).Msg("image of a suspended VM not found; checking again")
	if err := s.sleep(ctx, s.lossAfter()); err != nil {
		return nil, err
	}
	return s.image(ctx, id)
}

// image returns one of the provider's images by ID. ErrNotFound means that there is no usable one, ErrBusy that it is
// being created.
func (s *imageStore) image(ctx context.Context, id string) (*Image, error) {
	imager, ok := s.provider.(Imager)
	if !ok {
		return nil, fmt.Errorf("%w: this provider makes no images", ErrInvalid)
	}
	s.mu.Lock()
	known, at := s.usable, s.usableAt
	s.mu.Unlock()
	if known.ID == id && s.cfg.Now().Sub(at) < s.cfg.Tick { // an intent and its order need the same image
		return &known, nil
	}
	img, err := imager.ImageByID(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case img.Failed:
		return nil, fmt.Errorf("%w: image %s cannot be used", ErrNotFound, id)
	case !img.Ready:
		return nil, fmt.Errorf("%w: image %s is being made", ErrBusy, id)
	}
	s.mu.Lock()
	s.usable, s.usableAt = img, s.cfg.Now()
	s.mu.Unlock()
	return &img, nil
}

// list implements [Fleet.Images].
func (s *imageStore) list(ctx context.Context, within time.Duration) ([]Image, error) {
	imager, ok := s.provider.(Imager)
	if !ok {
		return nil, fmt.Errorf("%w: this provider makes no images", ErrInvalid)
	}
	select {
	case s.listing <- struct{}{}:
		defer func() { <-s.listing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	images, at := s.listed, s.listedAt
	s.mu.Unlock()
	now := s.cfg.Now()
	if !at.IsZero() && now.Sub(at) < within {
		return slices.Clone(images), nil
	}
	images, err := imager.Images(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.listed, s.listedAt = slices.Clone(images), now
	s.mu.Unlock()
	return images, nil
}

// imageReady returns the time from the order to the first check of an image: the measured median.
func (s *imageStore) imageReady(ctx context.Context, row vm.Row) time.Duration {
	times, err := s.rows.Times(ctx)
	if usual := vm.Percentile(times.Image, 50); err == nil && usual > 0 {
		return max(row.Since.Add(usual).Sub(s.cfg.Now()), s.ticks(2))
	}
	return s.ticks(imageTicks)
}

const (
	// spansPerMonth divides a monthly price to get the hourly one.
	spansPerMonth = 730
	mbPerGB       = 1000
)

// imageMicroSpan returns the cost of mb megabytes for a span, rounded up so that caps hold.
func imageMicroSpan(mb, microGBMonth int64) int64 {
	const divisor = mbPerGB * spansPerMonth
	return (max(mb, 0)*microGBMonth + divisor - 1) / divisor
}
