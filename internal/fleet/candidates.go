package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Candidate is a VM type and location that may be ordered. An empty Location means any, the cheapest first.
type Candidate struct {
	Type     string `yaml:"type" json:"type"`
	Location string `yaml:"location" json:"location,omitempty"`
}

// String returns TYPE/LOCATION.
func (c Candidate) String() string { return strings.TrimSuffix(c.Type+"/"+c.Location, "/") }

// candidateRefusal is a recent refusal of a candidate.
type candidateRefusal struct {
	at     time.Time
	reason string
}

// refusalTTL is how long a refused candidate is not ordered again.
const refusalTTL = 10 * time.Minute

// offerRequirements holds the requirements on an offer.
type offerRequirements struct {
	needs Needs
	image *Image // the image to create it from, if its disk size and location matter
}

// chooseOffers returns the offers that may be ordered, in order of preference, and for every other candidate the reason
// against it. Offers that the market reports as unavailable come last. It is a pure function.
func chooseOffers(
	offers []Offer, want []Candidate, w offerRequirements, refused map[Candidate]candidateRefusal, now time.Time,
) (use []Offer, not []string) {
	for _, c := range want {
		found := slices.DeleteFunc(slices.Clone(offers), func(o Offer) bool {
			return o.Type != c.Type || c.Location != "" && o.Location != c.Location
		})
		if len(found) == 0 {
			not = append(not, fmt.Sprintf("%s is not offered", c))
		}
		slices.SortStableFunc(found, func(a, b Offer) int { return cmp.Compare(a.MicroHour, b.MicroHour) })
		for _, o := range found {
			pair := Candidate{o.Type, o.Location}
			if why := unsuitableReason(o, w, now); why != "" {
				not = append(not, fmt.Sprintf("%s %s", pair, why))
			} else if r, ok := refused[pair]; ok && now.Sub(r.at) < refusalTTL {
				not = append(not, fmt.Sprintf("%s was refused at %s (%s)", pair, r.at.UTC().Format("15:04"), r.reason))
			} else if !slices.ContainsFunc(use, func(u Offer) bool { return u.Type == o.Type && u.Location == o.Location }) {
				use = append(use, o)
			}
		}
	}
	slices.SortStableFunc(use, func(a, b Offer) int { return rankOffer(a, w) - rankOffer(b, w) })
	return use, not
}

// rankOffer prefers the image's location and puts offers reported as unavailable last.
func rankOffer(o Offer, w offerRequirements) int {
	n := 0
	if w.image != nil && w.image.Location != "" && w.image.Location != o.Location {
		n++
	}
	if !o.Available {
		n += 2
	}
	return n
}

// unsuitableReason returns why an offer is unsuitable, as a clause that continues its name, or an empty string.
func unsuitableReason(o Offer, w offerRequirements, now time.Time) string {
	switch n := w.needs; {
	case !o.GoneAfter.IsZero() && !now.Before(o.GoneAfter):
		return "is no longer sold"
	case o.VCPU < n.VCPU:
		return fmt.Sprintf("has %d of %d CPUs", o.VCPU, n.VCPU)
	case o.MemoryMB < n.MemoryMB:
		return fmt.Sprintf("has %d of %d MB of memory", o.MemoryMB, n.MemoryMB)
	case o.DiskGB < n.DiskGB:
		return fmt.Sprintf("has %d of %d GB of disk", o.DiskGB, n.DiskGB)
	case w.image == nil:
		return ""
	case w.image.Arch != "" && o.Arch != w.image.Arch:
		return fmt.Sprintf("is %s, and the image %s", o.Arch, w.image.Arch)
	case o.DiskGB < w.image.DiskGB:
		return fmt.Sprintf("has %d of the %d GB of disk that the image needs", o.DiskGB, w.image.DiskGB)
	}
	return ""
}

// highestPrice returns the highest price among the offers, with its currency.
func highestPrice(offers []Offer) (micro int64, currency string) {
	for _, o := range offers {
		micro, currency = max(micro, o.MicroHour), o.Currency
	}
	return micro, currency
}

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
