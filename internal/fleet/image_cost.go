package fleet

import (
	"context"

	"github.com/errand-bot/errand/state/vm"
)

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

// bookImages records the cost of images by their stored size. With whole, images is the complete list. If recording
// fails, a later pass records the whole time since.
func (f *Fleet) bookImages(ctx context.Context, images []Image, whole bool) {
	market, ok := f.market()
	if !ok {
		return
	}
	var price int64
	var currency string
	if len(images) > 0 {
		var err error
		if price, err = market.ImageMicroGBMonth(ctx); err != nil {
			f.cfg.Log.Warn().Err(err).Msg("failed to read the price of images; retrying")
		}
		currency = f.currency(ctx, market)
	}
	list := make([]vm.Image, 0, len(images))
	for _, i := range images {
		image := vm.Image{ID: i.ID, CreatedAt: i.CreatedAt, Currency: currency, Paid: f.cfg.Paid}
		if i.Ready {
			image.MicroHour = imageMicroSpan(i.StoredMB, price)
		}
		list = append(list, image)
	}
	if err := f.rows.BookImages(ctx, list, whole); err != nil {
		f.cfg.Log.Warn().Err(err).Msg("failed to book what images cost; retrying")
	}
}

// currency returns the currency of the provider's prices, empty while unknown. It is constant for an account and read
// once.
func (f *Fleet) currency(ctx context.Context, market Market) string {
	f.mu.Lock()
	known := f.money
	f.mu.Unlock()
	if known != "" {
		return known
	}
	offers, err := market.Offers(ctx)
	if err != nil || len(offers) == 0 {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.money = offers[0].Currency
	return f.money
}
