package hetzner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
)

// maxClockOff is what the margin before the end of a paid hour can take.
const maxClockOff = 30 * time.Second

// Describe says whether the token works and what can be ordered of the candidates.
func (p *Provider) Describe(ctx context.Context) (fleet.Description, error) {
	out := fleet.Description{Provider: p.Name(), Kind: "cloud", Isolation: fleet.IsolationVM}
	offers, err := p.Offers(ctx)
	if errors.Is(err, fleet.ErrUnauthorized) {
		out.Notes = append(out.Notes, "The API refuses `hetzner.token`: make one for reading and writing in the project's settings.")
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("describe: %w", err)
	}
	for _, c := range p.cfg.Candidates {
		out.Notes = append(out.Notes, noteOn(c, offers, p.cfg.Now()))
	}
	if slices.ContainsFunc(p.cfg.SSHFrom, func(from string) bool { return strings.HasSuffix(from, "/0") }) {
		out.Notes = append(out.Notes, "VMs take SSH from everywhere, with our key only: say where errand is in `hetzner.ssh_from`.")
	}
	if off := p.budget.clockOff().Round(time.Second); off.Abs() > maxClockOff {
		out.Notes = append(out.Notes, fmt.Sprintf("The clock of this host is %s away from Hetzner's: paid hours would be misjudged. Let it be set by NTP.", off.Abs()))
	}
	if p.cfg.Egress == EgressTether {
		out.Notes = append(out.Notes, "VMs reach nothing but through errand: their image has to be a baked one.")
	}
	return out, nil
}

func noteOn(c fleet.Offer, offers []fleet.Offer, now time.Time) string {
	what := c.Type + " in " + c.Location
	known := false
	for _, o := range offers {
		known = known || o.Type == c.Type
		if o.Type != c.Type || o.Location != c.Location {
			continue
		}
		text := fmt.Sprintf("%s: %d vCPU, %d MB, %d GB, %s %s an hour", what, o.VCPU, o.MemoryMB, o.DiskGB, decimal(o.MicroHour), o.Currency)
		if !o.Available {
			text += ", not available at the moment"
		}
		if o.GoneAfter.After(now) {
			text += ", not to be had after " + o.GoneAfter.Format(time.DateOnly)
		}
		return text + "."
	}
	if !known {
		return what + ": there is no server type of this name."
	}
	return what + ": this type is not sold there."
}

func decimal(micro int64) string { return fmt.Sprintf("%d.%06d", micro/1_000_000, micro%1_000_000) }
