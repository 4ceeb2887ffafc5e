package hetzner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
)

// A market reads offers and prices, and caches them.
type market struct {
	*api

	mu     sync.Mutex
	prices *prices   // nil until the first read
	priced time.Time // time of the last read, successful or not
}

const (
	// pricesTTL is how long offers are valid.
	pricesTTL = time.Hour
	// listTTL is how long the price list is valid, of which only the prices of addresses and images are used.
	listTTL = 24 * time.Hour
	// pricesRetry is the time of the retry after a failure.
	pricesRetry = 5 * time.Minute
	// pricesAtMost is the maximum age of prices if newer ones cannot be read.
	pricesAtMost = 24 * time.Hour
)

// prices are the prices at one time.
type prices struct {
	at       time.Time
	listed   time.Time // time of the price list: currency, v4 and image
	currency string
	// v4 is the public address's price by location: hour and month, in millionths.
	v4     map[string][2]int64
	image  int64 // per GB and month
	offers []fleet.Offer
}

// Offers lists the available types and locations, cheapest first. Prices are gross and include the public IPv4 address
// if VMs get one. The list is at most an hour old, or a day if newer prices cannot be read; the price of the address
// may be a day old.
func (p *Provider) Offers(ctx context.Context) ([]fleet.Offer, error) {
	now, err := p.market.currentPrices(ctx)
	if err != nil {
		return nil, fmt.Errorf("list offers: %w", err)
	}
	return slices.Clone(now.offers), nil
}

// ImageMicroGBMonth returns the gross price of a gigabyte of a snapshot per month.
func (p *Provider) ImageMicroGBMonth(ctx context.Context) (int64, error) {
	p.market.mu.Lock()
	known := p.market.prices
	p.market.mu.Unlock()
	if known != nil && p.cfg.Now().Sub(known.listed) < listTTL { // it is not part of the offers, which are read more often
		return known.image, nil
	}
	now, err := p.market.currentPrices(ctx)
	if err != nil {
		return 0, fmt.Errorf("price of images: %w", err)
	}
	return now.image, nil
}

func (m *market) currentPrices(ctx context.Context) (*prices, error) {
	m.mu.Lock()
	known, asked := m.prices, m.priced
	m.mu.Unlock()
	now := m.cfg.Now()
	if known != nil && (now.Sub(known.at) < pricesTTL || now.Sub(asked) < pricesRetry && now.Sub(known.at) < pricesAtMost) {
		return known, nil
	}
	fresh, err := m.readMarket(ctx, known)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.priced = now
	switch {
	case err == nil:
		fresh.at = now
		m.prices = fresh
		return fresh, nil
	case known != nil && now.Sub(known.at) < pricesAtMost && !errors.Is(err, fleet.ErrUnauthorized):
		m.cfg.Log.Warn().Err(err).Time("of", known.at).Msg("failed to read prices; using old ones")
		return known, nil
	default:
		return nil, err
	}
}

// readMarket reads the offers, and the price list if the known one is old.
func (m *market) readMarket(ctx context.Context, known *prices) (*prices, error) {
	out := &prices{}
	if known != nil && m.cfg.Now().Sub(known.listed) < listTTL {
		out.listed, out.currency, out.v4, out.image = known.listed, known.currency, known.v4, known.image
	} else if err := m.readList(ctx, out); err != nil {
		return nil, err
	}
	types, err := listAll(ctx, m.api, request{method: http.MethodGet, path: "/server_types", low: true},
		func(r schema.ServerTypeListResponse) []schema.ServerType { return r.ServerTypes }, func(t schema.ServerType) int64 { return t.ID })
	if err != nil {
		return nil, err
	}
	for _, t := range types {
		if err := m.addOffers(out, t); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out.offers, func(a, b fleet.Offer) int {
		return cmp.Or(cmp.Compare(a.MicroHour, b.MicroHour), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Location, b.Location))
	})
	return out, nil
}

// readList reads the price list. hcloud-go's decoder can panic on it and uses floats for money.
func (m *market) readList(ctx context.Context, out *prices) error {
	list, _, err := call[schema.PricingGetResponse](ctx, m.api, request{method: http.MethodGet, path: "/pricing", low: true})
	if err != nil {
		return err
	}
	out.listed, out.currency, out.v4 = m.cfg.Now(), list.Pricing.Currency, map[string][2]int64{}
	if out.image, err = parseMicro(list.Pricing.Image.PricePerGBMonth.Gross); err != nil {
		return fmt.Errorf("price of images: %w", err)
	}
	for _, ip := range list.Pricing.PrimaryIPs {
		for _, price := range ip.Prices {
			if ip.Type != "ipv4" {
				continue
			}
			if out.v4[price.Location], err = hourMonth(price.PriceHourly, price.PriceMonthly); err != nil {
				return fmt.Errorf("price of an address in %s: %w", price.Location, err)
			}
		}
	}
	return nil
}

// addOffers adds an offer for each location with a price.
func (m *market) addOffers(out *prices, t schema.ServerType) error {
	for _, price := range t.Prices {
		cost, err := hourMonth(price.PriceHourly, price.PriceMonthly)
		if err != nil {
			return fmt.Errorf("price of %s in %s: %w", t.Name, price.Location, err)
		}
		if m.cfg.IPv4 {
			cost[0] += out.v4[price.Location][0]
			cost[1] += out.v4[price.Location][1]
		}
		o := fleet.Offer{
			Type:       t.Name,
			Location:   price.Location,
			Arch:       architectureOf(t.Architecture),
			VCPU:       t.Cores,
			MemoryMB:   int(t.Memory * 1024),
			DiskGB:     t.Disk,
			MicroHour:  cost[0],
			MicroMonth: cost[1],
			Currency:   out.currency,
			Available:  len(t.Locations) == 0,
		}
		if t.Deprecation != nil {
			o.GoneAfter = t.Deprecation.UnavailableAfter
		}
		for _, l := range t.Locations {
			if l.Name != price.Location {
				continue
			}
			o.Available, o.GoneAfter = l.Available, time.Time{}
			if l.Deprecation != nil {
				o.GoneAfter = l.Deprecation.UnavailableAfter
			}
		}
		if !o.GoneAfter.IsZero() && !m.cfg.Now().Before(o.GoneAfter) {
			o.Available = false
		}
		out.offers = append(out.offers, o)
	}
	return nil
}

// hourPrice returns the price of a started hour of an existing server. It is best effort: 0 while no price could be
// read.
func (m *market) hourPrice(ctx context.Context, s schema.Server) (microHour int64, currency string) {
	m.mu.Lock()
	now, asked := m.prices, m.priced // an old price is better than none
	m.mu.Unlock()
	if old := now == nil || m.cfg.Now().Sub(now.at) >= pricesAtMost; old && m.cfg.Now().Sub(asked) >= pricesRetry {
		if fresh, err := m.currentPrices(ctx); err == nil {
			now = fresh
		}
	}
	if now == nil {
		return 0, ""
	}
	for _, price := range s.ServerType.Prices {
		if price.Location != s.Location.Name {
			continue
		}
		cost, err := hourMonth(price.PriceHourly, price.PriceMonthly)
		if err != nil {
			return 0, now.currency
		}
		if s.PublicNet.IPv4.ID != 0 {
			cost[0] += now.v4[price.Location][0]
		}
		return cost[0], now.currency
	}
	return 0, now.currency
}

func architectureOf(word string) string {
	switch word {
	case "x86":
		return "amd64"
	case "arm":
		return "arm64"
	default:
		return word
	}
}
