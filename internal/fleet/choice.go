package fleet

import (
	"time"
)

// A Choice is a candidate with the provider's offer for it.
type Choice struct {
	Candidate
	// Offer is zero if the provider does not sell the candidate.
	Offer Offer
	Sold  bool
}

// Orderable reports whether the candidate is sold and reported as available.
func (c Choice) Orderable(now time.Time) bool {
	return c.Sold && c.Offer.Available && (c.Offer.GoneAfter.IsZero() || now.Before(c.Offer.GoneAfter))
}

// Cheapest returns the orderable choice with the lowest hourly price, the first among equals, or false if there is
// none.
func (d Description) Cheapest(now time.Time) (least Choice, found bool) {
	for _, c := range d.Choices {
		if c.Orderable(now) && (!found || c.Offer.MicroHour < least.Offer.MicroHour) {
			least, found = c, true
		}
	}
	return least, found
}
