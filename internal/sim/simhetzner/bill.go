package simhetzner

import (
	"time"

	"github.com/errand-bot/errand/internal/hetznerbill"
)

// meter records the cost of one resource.
type meter struct {
	hetznerbill.Meter
	kind     string // server, primary_ip, image, volume
	id       int64
	name     string
	labels   map[string]string
	typ      string
	location string
}

// meters holds the meters of everything that was ever ordered.
type meters []*meter

// start adds a meter.
func (all *meters) start(m meter) *meter {
	*all = append(*all, &m)
	return &m
}

// stop ends a meter; nil is allowed.
func (m *meter) stop(at time.Time) {
	if m != nil {
		m.Stop(at)
	}
}

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
	s.events.settle(now)
	b := Bill{Currency: hetznerbill.Currency, Lines: []Line{}}
	for _, m := range s.meters {
		l := Line{
			Kind:     m.kind,
			ID:       m.id,
			Name:     m.name,
			Labels:   m.labels,
			Type:     m.typ,
			Location: m.location,
			From:     m.From,
			To:       m.To,
			GB:       m.GB,
		}
		l.Periods, l.MicroNet = m.Net(now, s.cfg.Period)
		l.Micro = tax(s.cfg.VAT).gross(l.MicroNet)
		b.Lines = append(b.Lines, l)
		b.Micro += l.Micro
		b.MicroNet += l.MicroNet
	}
	return b
}
