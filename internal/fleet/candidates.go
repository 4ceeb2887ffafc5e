package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Candidate is a kind of VM that may be ordered, and where. Without a Location it is any, the cheapest
// first.
type Candidate struct {
	Type     string `yaml:"type" json:"type"`
	Location string `yaml:"location" json:"location,omitempty"`
}

// String is TYPE/LOCATION.
func (c Candidate) String() string { return strings.TrimSuffix(c.Type+"/"+c.Location, "/") }

// deny is a refusal that is remembered for a while.
type deny struct {
	at  time.Time
	why string
}

// refusedFor is how long a candidate that was refused is not asked for again.
const refusedFor = 10 * time.Minute

// wish is what is asked of the market.
type wish struct {
	needs Needs
	image *Image // that it is made from, if the disk and the place matter
}

// choose narrows what the market offers to what may be ordered, in the order of preference, and says of
// every other candidate why not. What the market calls unavailable comes last. It is pure.
func choose(offers []Offer, want []Candidate, w wish, refused map[Candidate]deny, now time.Time) (use []Offer, not []string) {
	for _, c := range want {
		found := slices.DeleteFunc(slices.Clone(offers), func(o Offer) bool {
			return o.Type != c.Type || c.Location != "" && o.Location != c.Location
		})
		if len(found) == 0 {
			not = append(not, fmt.Sprintf("%s is not on offer", c))
		}
		slices.SortStableFunc(found, func(a, b Offer) int { return cmp.Compare(a.MicroHour, b.MicroHour) })
		for _, o := range found {
			pair := Candidate{o.Type, o.Location}
			if why := unfit(o, w, now); why != "" {
				not = append(not, fmt.Sprintf("%s %s", pair, why))
			} else if r, ok := refused[pair]; ok && now.Sub(r.at) < refusedFor {
				not = append(not, fmt.Sprintf("%s was refused at %s (%s)", pair, r.at.UTC().Format("15:04"), r.why))
			} else if !slices.ContainsFunc(use, func(u Offer) bool { return u.Type == o.Type && u.Location == o.Location }) {
				use = append(use, o)
			}
		}
	}
	slices.SortStableFunc(use, func(a, b Offer) int { return rank(a, w) - rank(b, w) })
	return use, not
}

// rank puts the image's own location first and what is said to be unavailable last.
func rank(o Offer, w wish) int {
	n := 0
	if w.image != nil && w.image.Location != "" && w.image.Location != o.Location {
		n++
	}
	if !o.Available {
		n += 2
	}
	return n
}

// unfit says why an offer will not do, in words that go on after its name.
func unfit(o Offer, w wish, now time.Time) string {
	switch n := w.needs; {
	case !o.GoneAfter.IsZero() && !now.Before(o.GoneAfter):
		return "is not sold any more"
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

// dearest is the most that one of the offers costs, with its currency.
func dearest(offers []Offer) (micro int64, currency string) {
	for _, o := range offers {
		micro, currency = max(micro, o.MicroHour), o.Currency
	}
	return micro, currency
}
