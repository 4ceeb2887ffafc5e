package simhetzner

import (
	"math"
	"time"
)

// meter records the cost of one resource. Prices are net, in millionths.
type meter struct {
	kind     string // server, primary_ip, image, volume
	id       int64
	name     string
	labels   map[string]string
	typ      string
	location string
	hour     int64   // price per started period of a server or address
	month    int64   // maximum per month, or the price of a gigabyte per month
	gb       float32 // size of an image or volume
	from, to time.Time
}

func (s *Sim) meter(m meter) *meter {
	s.meters = append(s.meters, &m)
	return &m
}

// stop ends a meter; nil is allowed.
func (m *meter) stop(at time.Time) {
	if m != nil && m.to.IsZero() {
		m.to = at
	}
}

// hoursPerMonth divides a monthly price.
const hoursPerMonth = 730

// Line is one resource on the bill.
type Line struct {
	Kind     string            `json:"kind"` // server, primary_ip, image, volume
	ID       int64             `json:"id"`
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels"`
	Type     string            `json:"type,omitempty"`
	Location string            `json:"location,omitempty"`
	From     time.Time         `json:"from"`
	// To is the time of the deletion; zero for a live resource, which is charged up to now.
	To time.Time `json:"to"`
	// Periods is the number of started billing periods.
	Periods int64   `json:"periods"`
	GB      float32 `json:"gb,omitempty"`
	// Micro is the gross amount in millionths of the currency, MicroNet the net one.
	Micro    int64 `json:"micro"`
	MicroNet int64 `json:"micro_net"`
}

// Bill lists everything that was ever ordered.
type Bill struct {
	Currency string `json:"currency"`
	Lines    []Line `json:"lines"` // ordered by start
	Micro    int64  `json:"micro"`
	MicroNet int64  `json:"micro_net"`
}

// Of returns the sum of the gross amounts of one kind of resource.
func (b Bill) Of(kind string) (micro int64) {
	for _, l := range b.Lines {
		if l.Kind == kind {
			micro += l.Micro
		}
	}
	return micro
}

// Bill computes the costs up to now. A server or address costs its price per started period from creation to deletion,
// on or off, at most the monthly price per calendar month; an image or volume costs by size and time.
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

// startedPeriods returns at least one.
func startedPeriods(from, to time.Time, period time.Duration) int64 {
	d := to.Sub(from)
	if d <= 0 {
		return 1
	}
	return int64((d + period - 1) / period)
}

// capped returns the price of some periods, limited per month.
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
