package fleet

import (
	"context"

	"github.com/errand-bot/errand/state"
)

const (
	// spansPerMonth is what the price of a month is divided by to have that of an hour.
	spansPerMonth = 730
	mbPerGB       = 1000
)

// imageMicroSpan is what so many MB cost for a span, rounded up: a cap has to hold.
func imageMicroSpan(mb, microGBMonth int64) int64 {
	const divisor = mbPerGB * spansPerMonth
	return (max(mb, 0)*microGBMonth + divisor - 1) / divisor
}

// bookImages has the store count what images cost, by their stored size. With whole they are all that there are. What
// is not booked now is booked by a later pass, for their time since then counts, too.
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
	list := make([]state.VMImage, 0, len(images))
	for _, i := range images {
		image := state.VMImage{ID: i.ID, CreatedAt: i.CreatedAt, Currency: currency, Paid: f.cfg.Paid}
		if i.Ready {
			image.MicroHour = imageMicroSpan(i.StoredMB, price)
		}
		list = append(list, image)
	}
	if err := f.rows.BookImages(ctx, list, whole); err != nil {
		f.cfg.Log.Warn().Err(err).Msg("failed to book what images cost; retrying")
	}
}

// currency is that of the provider's prices, empty while they are not known. An account has one: it is read once.
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
