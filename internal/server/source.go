package server

import (
	"context"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/fleet"
)

// source describes the VM provider for the pages.
func (s *Server) source(ctx context.Context) (admin.Source, error) {
	d, err := s.fleet.Describe(ctx)
	if err != nil {
		return admin.Source{}, err
	}
	return sourceOf(d, s.opts.Now()), nil
}

func sourceOf(d fleet.Description, now time.Time) admin.Source {
	out := admin.Source{Kind: d.Kind, Isolation: string(d.Isolation), Notes: d.Notes}
	for _, c := range d.Choices {
		row := admin.Candidate{Type: c.Type, Location: c.Location, Sold: c.Sold, Available: c.Orderable(now)}
		if c.Sold {
			row.VCPU, row.MemoryMB, row.DiskGB = c.Offer.VCPU, c.Offer.MemoryMB, c.Offer.DiskGB
			row.Price, row.Currency = float64(c.Offer.MicroHour)/1e6, c.Offer.Currency
		}
		if !c.Offer.GoneAfter.IsZero() {
			row.GoneAfter = &c.Offer.GoneAfter
		}
		out.Candidates = append(out.Candidates, row)
	}
	return out
}

// cheapest formats the lowest price of a VM for the log.
func cheapest(d fleet.Description, now time.Time) string {
	c, ok := d.Cheapest(now)
	if !ok {
		return "none can be ordered now"
	}
	return fmt.Sprintf("%s for %.4f %s an hour", c, float64(c.Offer.MicroHour)/1e6, c.Offer.Currency)
}
