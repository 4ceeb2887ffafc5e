package fleet

import "time"

// Choice is a candidate with what the provider says of it.
type Choice struct {
	Candidate
	// Offer is zero if it is not sold.
	Offer Offer
	Sold  bool
}

// Orderable reports whether it is sold, and said to be available.
func (c Choice) Orderable(now time.Time) bool {
	return c.Sold && c.Offer.Available && (c.Offer.GoneAfter.IsZero() || now.Before(c.Offer.GoneAfter))
}

// Cheapest returns the choice that can be ordered for the least money an hour, the first of those that cost the same;
// false if there is none.
func (d Description) Cheapest(now time.Time) (least Choice, found bool) {
	for _, c := range d.Choices {
		if c.Orderable(now) && (!found || c.Offer.MicroHour < least.Offer.MicroHour) {
			least, found = c, true
		}
	}
	return least, found
}
