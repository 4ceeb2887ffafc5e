package hetznerbill

import (
	"math"
	"time"
)

// hoursPerMonth is the divisor of a price by the month.
const hoursPerMonth = 730

// A Meter counts the cost of one server, address, image or volume.
type Meter struct {
	// Price is per started period of a server or address. Of an image or volume only Month counts: per gigabyte.
	Price Price
	// GB is the size of an image or volume, 0 for anything else.
	GB float32
	// From is the creation, To the deletion; zero while the thing exists.
	From, To time.Time
}

// Stop ends the meter unless it has ended; a nil one counts nothing.
func (m *Meter) Stop(at time.Time) {
	if m != nil && m.To.IsZero() {
		m.To = at
	}
}

// Net returns the started periods until the deletion, or until now, and their cost in millionths, before tax.
//
// A server and an address cost each started period, on or off, and in a calendar month no more than the month's price. An
// image or volume costs by size and time.
func (m *Meter) Net(now time.Time, period time.Duration) (periods, micro int64) {
	end := m.To
	if end.IsZero() {
		end = now
	}
	periods = startedPeriods(m.From, end, period)
	if m.GB > 0 {
		return periods, int64(math.Ceil(float64(m.Price.Month) * float64(m.GB) * float64(periods) / hoursPerMonth))
	}
	return periods, m.capped(periods, period)
}

// startedPeriods is at least one.
func startedPeriods(from, to time.Time, period time.Duration) int64 {
	d := to.Sub(from)
	if d <= 0 {
		return 1
	}
	return int64((d + period - 1) / period)
}

// capped is the price of a number of periods, month by month.
func (m *Meter) capped(periods int64, period time.Duration) int64 {
	var sum int64
	for at := m.From.UTC(); periods > 0; {
		next := time.Date(at.Year(), at.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		n := min(periods, max(1, startedPeriods(at, next, period)))
		cost := n * m.Price.Hour
		if m.Price.Month > 0 {
			cost = min(cost, m.Price.Month)
		}
		sum += cost
		periods -= n
		at = at.Add(time.Duration(n) * period)
	}
	return sum
}
