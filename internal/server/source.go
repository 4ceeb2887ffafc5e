package server

import (
	"context"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/config"
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

// requireIsolation fails in a container in which agents would not be isolated. Its operator has just chosen it, so the failure comes at the
// start; on a host, where a sandbox may stop working after an upgrade, errand serves and the comments of tasks say what is missing.
func (s *Server) requireIsolation(ctx context.Context) error {
	if !s.opts.InContainer || s.cfg.Provider != config.ProviderLocal || s.cfg.Local.AllowUnsandboxed || s.opts.StandInAgent {
		return nil
	}
	const advice = "set provider: hetzner, so that agents work on VMs, or run errand as a service of the host (docs/deployment.md)"
	d, err := s.fleet.Describe(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("provider: local does not work in this container; %s: %w", advice, err)
	case d.Isolation == fleet.IsolationNone:
		return fmt.Errorf("provider: local cannot isolate agents in this container, because only sandboxes of the kind %s work (errand doctor says why); %s", d.Kind, advice)
	}
	return nil
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
