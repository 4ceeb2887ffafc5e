package simhetzner

import (
	"fmt"
	"net/http"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/hetznerbill"
)

// Net prices in millionths that errand never pays; the others are in hetznerbill.
const (
	priceFloating4 = 3_000_000
	priceFloating6 = 1_000_000
	priceTraffic   = 1_000_000
)

// tax is a rate in percent.
type tax int64

// gross adds tax to a net price.
func (t tax) gross(net int64) int64 { return net * (100 + int64(t)) / 100 }

// amount formats a price as the API does: as decimal text, with and without tax.
func (t tax) amount(net int64) schema.Price {
	text := func(micro int64, zeros string) string {
		return fmt.Sprintf("%d.%06d%s", micro/1_000_000, micro%1_000_000, zeros)
	}
	return schema.Price{Net: text(net, "0000"), Gross: text(t.gross(net), "0000000000")}
}

// wireType omits obsolete fields of the client's type.
type wireType struct {
	schema.ServerType
	IncludedTraffic *int64 `json:"included_traffic,omitempty"`
}

// wireType returns a server type with its prices and availability by location.
func (s *Sim) wireType(t *serverType) wireType {
	w := wireType{ServerType: t.ServerType}
	w.Prices, w.Locations = s.typePrices(t), []schema.ServerTypeLocation{}
	for _, l := range s.catalog.locations {
		if _, ok := t.prices[l.Name]; ok {
			free := s.stocks.available(t.Name, l.Name)
			w.Locations = append(w.Locations, schema.ServerTypeLocation{ID: l.ID, Name: l.Name, Available: free, Recommended: free})
		}
	}
	return w
}

func (s *Sim) typePrices(t *serverType) []schema.PricingServerTypePrice {
	vat, prices := tax(s.cfg.VAT), []schema.PricingServerTypePrice{}
	for _, l := range s.catalog.locations {
		if p, ok := t.prices[l.Name]; ok {
			prices = append(prices, schema.PricingServerTypePrice{
				Location:          l.Name,
				PriceHourly:       vat.amount(p.Hour),
				PriceMonthly:      vat.amount(p.Month),
				IncludedTraffic:   includedTraffic,
				PricePerTBTraffic: vat.amount(priceTraffic),
			})
		}
	}
	return prices
}

func listTypes(s *Sim, c *call) (answer, error) {
	var found []*serverType
	for _, t := range s.catalog.types {
		if anyOf(c, "name", t.Name) {
			found = append(found, t)
		}
	}
	return paginate(c, "server_types", found, func(t *serverType) any { return s.wireType(t) })
}

func getType(s *Sim, c *call) (answer, error) {
	t := s.catalog.serverType(schema.IDOrName{ID: c.id})
	if t == nil {
		return answer{}, notFound("server_type", c.id)
	}
	return answer{http.StatusOK, map[string]any{"server_type": s.wireType(t)}}, nil
}

func listLocations(s *Sim, c *call) (answer, error) {
	var found []*location
	for _, l := range s.catalog.locations {
		if anyOf(c, "name", l.Name) {
			found = append(found, l)
		}
	}
	return paginate(c, "locations", found, func(l *location) any { return l.Location })
}

func getLocation(s *Sim, c *call) (answer, error) {
	for _, l := range s.catalog.locations {
		if l.ID == c.id {
			return answer{http.StatusOK, map[string]any{"location": l.Location}}, nil
		}
	}
	return answer{}, notFound("location", c.id)
}

// wirePricing omits obsolete fields of the client's type, so its addresses have no datacenter.
type wirePricing struct {
	schema.Pricing
	Traffic    *schema.PricingTraffic `json:"traffic,omitempty"`
	PrimaryIPs []wireAddressPrices    `json:"primary_ips"`
}

type wireAddressPrices struct {
	Type   string             `json:"type"`
	Prices []wireAddressPrice `json:"prices"`
}

type wireAddressPrice struct {
	Location     string       `json:"location"`
	PriceHourly  schema.Price `json:"price_hourly"`
	PriceMonthly schema.Price `json:"price_monthly"`
}

// getPricing lists as many kinds of floating IPs as of primary IPs; hcloud-go panics if there are fewer.
func getPricing(s *Sim, _ *call) (answer, error) {
	vat := tax(s.cfg.VAT)
	p := wirePricing{Pricing: schema.Pricing{
		Currency: hetznerbill.Currency, VATRate: fmt.Sprintf("%d.000000", s.cfg.VAT),
		Image:             schema.PricingImage{PricePerGBMonth: vat.amount(hetznerbill.ImageMonth)},
		FloatingIP:        schema.PricingFloatingIP{PriceMonthly: vat.amount(priceFloating4)},
		ServerBackup:      schema.PricingServerBackup{Percentage: "20.000000"},
		Volume:            schema.PricingVolume{PricePerGBPerMonth: vat.amount(hetznerbill.VolumeMonth)},
		LoadBalancerTypes: []schema.PricingLoadBalancerType{},
	}}
	for _, k := range []struct {
		kind     string
		floating int64
		primary  hetznerbill.Price
	}{{"ipv4", priceFloating4, hetznerbill.IPv4()}, {"ipv6", priceFloating6, hetznerbill.Price{}}} {
		floating, primary := schema.PricingFloatingIPType{Type: k.kind}, wireAddressPrices{Type: k.kind}
		for _, l := range s.catalog.locations {
			floating.Prices = append(floating.Prices, schema.PricingFloatingIPTypePrice{
				Location:     l.Name,
				PriceMonthly: vat.amount(k.floating),
			})
			primary.Prices = append(primary.Prices, wireAddressPrice{
				Location:     l.Name,
				PriceHourly:  vat.amount(k.primary.Hour),
				PriceMonthly: vat.amount(k.primary.Month),
			})
		}
		p.FloatingIPs, p.PrimaryIPs = append(p.FloatingIPs, floating), append(p.PrimaryIPs, primary)
	}
	for _, t := range s.catalog.types {
		p.ServerTypes = append(p.ServerTypes, schema.PricingServerType{ID: t.ID, Name: t.Name, Prices: s.typePrices(t)})
	}
	return answer{http.StatusOK, map[string]any{"pricing": p}}, nil
}
