package costs

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// PricesOf is the date of the simulator's Hetzner prices, as far as they were known.
const PricesOf = "June 2026"

// Price contains net amounts as in the response of GET /pricing.
type Price struct {
	// Hour is server_types[].prices[].price_hourly.net of the type and location, Address that of primary_ips[] for
	// IPv4, GBMonth is image.price_per_gb_month.net.
	Hour, Address, GBMonth string
	Currency               string
}

// PriceOf returns the prices used for a setting.
func PriceOf(s Setting) (Price, error) {
	c, err := newStandIn(s, start())
	if err != nil {
		return Price{}, err
	}
	return c.price()
}

// micro returns the hourly price of a VM and its address in millionths.
func (p Price) micro() (int64, error) {
	var sum float64
	for _, text := range []string{p.Hour, p.Address} {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("price %q: %w", text, err)
		}
		sum += f
	}
	return int64(math.Round(sum * 1e6)), nil
}

type amount struct {
	Net string `json:"net"`
}

type placePrice struct {
	Location string `json:"location"`
	Hourly   amount `json:"price_hourly"`
}

// net returns the price for a location without trailing zeros.
func net(prices []placePrice, location string) string {
	for _, p := range prices {
		if p.Location == location {
			return trim(p.Hourly)
		}
	}
	return ""
}

func trim(a amount) string { return strings.TrimRight(a.Net, "0") }

// price reads GET /pricing.
func (s *standIn) price() (p Price, err error) {
	var got struct {
		Pricing struct {
			Currency string `json:"currency"`
			Image    struct {
				GBMonth amount `json:"price_per_gb_month"`
			} `json:"image"`
			PrimaryIPs []struct {
				Type   string       `json:"type"`
				Prices []placePrice `json:"prices"`
			} `json:"primary_ips"`
			ServerTypes []struct {
				Name   string       `json:"name"`
				Prices []placePrice `json:"prices"`
			} `json:"server_types"`
		} `json:"pricing"`
	}
	if err := s.call(http.MethodGet, "/pricing", nil, &got); err != nil {
		return Price{}, err
	}
	p = Price{Currency: got.Pricing.Currency, GBMonth: trim(got.Pricing.Image.GBMonth)}
	for _, t := range got.Pricing.ServerTypes {
		if t.Name == s.setting.Type {
			p.Hour = net(t.Prices, s.setting.Location)
		}
	}
	for _, ip := range got.Pricing.PrimaryIPs {
		if ip.Type == "ipv4" {
			p.Address = net(ip.Prices, s.setting.Location)
		}
	}
	if p.Hour == "" {
		return Price{}, fmt.Errorf("%s cannot be ordered in %s", s.setting.Type, s.setting.Location)
	}
	return p, nil
}
