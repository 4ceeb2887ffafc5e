package simhetzner

import (
	"math"
	"time"
)

// meter counts what one thing costs. Prices are net, in millionths.
type meter struct {
	kind     string // server, primary_ip, image, volume
	id       int64
	name     string
	labels   map[string]string
	typ      string
	location string
	hour     int64   // of a server or address: per started period
	month    int64   // its most in a month, or the price of a gigabyte and month
	gb       float32 // of an image or volume
	from, to time.Time
}

func (s *Sim) meter(m meter) *meter {
	s.meters = append(s.meters, &m)
	return &m
}

// stop ends a meter; a nil one has nothing to count.
func (m *meter) stop(at time.Time) {
	if m != nil && m.to.IsZero() {
		m.to = at
	}
}

// hoursPerMonth is what a price by the month is divided by.
const hoursPerMonth = 730

// Line is one thing on the bill.
type Line struct {
	Kind     string            `json:"kind"` // server, primary_ip, image, volume
	ID       int64             `json:"id"`
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels"`
	Type     string            `json:"type,omitempty"`
	Location string            `json:"location,omitempty"`
	From     time.Time         `json:"from"`
	// To is when it was deleted; zero while it lives, then it is counted up to now.
	To time.Time `json:"to"`
	// Periods are the started billing periods.
	Periods int64   `json:"periods"`
	GB      float32 `json:"gb,omitempty"`
	// Micro is the gross amount in millionths of the currency, MicroNet the net one.
	Micro    int64 `json:"micro"`
	MicroNet int64 `json:"micro_net"`
}

// Bill is all that was ever ordered.
type Bill struct {
	Currency string `json:"currency"`
	Lines    []Line `json:"lines"` // in the order in which they began
	Micro    int64  `json:"micro"`
	MicroNet int64  `json:"micro_net"`
}

// Of sums the gross amounts of one kind of thing.
func (b Bill) Of(kind string) (micro int64) {
	for _, l := range b.Lines {
		if l.Kind == kind {
			micro += l.Micro
		}
	}
	return micro
}

// Bill counts up to now. A server and an address cost each started period from creation to deletion, on or
// off, and in a calendar month no more than the month's price; an image or volume costs by size and time.
func (s *Sim) Bill() Bill {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Now()
	s.settle(now)
	b := Bill{Currency: currency, Lines: []Line{}}
	for _, m := range s.meters {
		end := m.to
		if end.IsZero() {
			end = now
		}
		l := Line{Kind: m.kind, ID: m.id, Name: m.name, Labels: m.labels, Type: m.typ, Location: m.location, From: m.from, To: m.to, GB: m.gb}
		l.Periods = startedPeriods(m.from, end, s.cfg.Period)
		if l.MicroNet = m.capped(l.Periods, s.cfg.Period); m.gb > 0 {
			l.MicroNet = int64(math.Ceil(float64(m.month) * float64(m.gb) * float64(l.Periods) / hoursPerMonth))
		}
		l.Micro = s.gross(l.MicroNet)
		b.Lines = append(b.Lines, l)
		b.Micro += l.Micro
		b.MicroNet += l.MicroNet
	}
	return b
}

// startedPeriods is at least one.
func startedPeriods(from, to time.Time, period time.Duration) int64 {
	d := to.Sub(from)
	if d <= 0 {
		return 1
	}
	return int64((d + period - 1) / period)
}

// capped is the price of so many periods, month by month.
func (m *meter) capped(periods int64, period time.Duration) int64 {
	var sum int64
	for at := m.from.UTC(); periods > 0; {
		next := time.Date(at.Year(), at.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		n := min(periods, max(1, startedPeriods(at, next, period)))
		cost := n * m.hour
		if m.month > 0 {
			cost = min(cost, m.month)
		}
		sum += cost
		periods -= n
		at = at.Add(time.Duration(n) * period)
	}
	return sum
}
