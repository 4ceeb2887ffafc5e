package costs

import (
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/hetznerbill"
)

// PricesOf is the month of the Hetzner prices, as far as they were known.
const PricesOf = hetznerbill.PricesOf

// Price contains net amounts as in the response of GET /pricing.
type Price struct {
	// Hour is server_types[].prices[].price_hourly.net of the type and location, Address that of primary_ips[] for
	// IPv4, GBMonth is image.price_per_gb_month.net.
	Hour, Address, GBMonth string
	Currency               string

	micro int64 // of a VM and its address for an hour, in millionths
}

// PriceOf returns the prices used for a setting.
func PriceOf(s Setting) (Price, error) {
	a, err := newAccount(s, start())
	if err != nil {
		return Price{}, err
	}
	address := hetznerbill.IPv4()
	return Price{
		Hour:     decimal(a.price.Hour),
		Address:  decimal(address.Hour),
		GBMonth:  decimal(hetznerbill.ImageMonth),
		Currency: hetznerbill.Currency,
		micro:    a.price.Hour + address.Hour,
	}, nil
}

// decimal writes millionths without zeros at the end.
func decimal(micro int64) string {
	return strings.TrimRight(fmt.Sprintf("%d.%06d", micro/1_000_000, micro%1_000_000), "0")
}
