package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/words"
)

// Source describes where VMs come from, in /status.json and /vms.json.
type Source struct {
	Kind      string   `json:"kind,omitempty"`
	Isolation string   `json:"isolation,omitempty"`
	Notes     []string `json:"notes,omitempty"` // sentences for the operator
	// Candidates are the kinds of VMs that may be ordered, in order of preference.
	Candidates []Candidate `json:"candidates,omitempty"`
	Error      string      `json:"error,omitempty"`
}

// Candidate is a kind of VM that may be ordered. If the provider does not sell it, only its name is set. Price is for a
// started hour in units of the currency.
type Candidate struct {
	Type      string     `json:"type"`
	Location  string     `json:"location,omitempty"`
	Sold      bool       `json:"sold"`
	Available bool       `json:"available"` // currently available according to the provider
	VCPU      int        `json:"vcpu,omitempty"`
	MemoryMB  int        `json:"memory_mb,omitempty"`
	DiskGB    int        `json:"disk_gb,omitempty"`
	Price     float64    `json:"price,omitempty"`
	Currency  string     `json:"currency,omitempty"`
	GoneAfter *time.Time `json:"gone_after,omitempty"` // when it stops being available
}

// PriceText formats the hourly price with four decimals.
func (c Candidate) PriceText() string {
	if !c.Sold {
		return "–"
	}
	return fmt.Sprintf("%.4f %s", c.Price, words.Plain(c.Currency))
}

// Size returns the size of the VM as text.
func (c Candidate) Size() string {
	if !c.Sold {
		return "–"
	}
	return fmt.Sprintf("%d vCPU, %d MB, %d GB", c.VCPU, c.MemoryMB, c.DiskGB)
}

// State returns the availability as text.
func (c Candidate) State(now time.Time) string {
	switch {
	case !c.Sold:
		return "not sold"
	case c.GoneAfter != nil && !now.Before(*c.GoneAfter):
		return "no longer sold"
	case !c.Available:
		return "currently unavailable"
	case c.GoneAfter != nil:
		return "until " + c.GoneAfter.UTC().Format(time.DateOnly)
	}
	return "available"
}

// Market summarizes the candidates in a sentence, empty if VMs cost nothing.
func (s Source) Market() string {
	if len(s.Candidates) == 0 {
		return ""
	}
	var least *Candidate
	for i := range s.Candidates {
		if c := &s.Candidates[i]; c.Available && (least == nil || c.Price < least.Price) {
			least = c
		}
	}
	text := words.Many(len(s.Candidates), "candidate")
	if least == nil {
		return text + ", none of them available now."
	}
	return fmt.Sprintf("%s; the cheapest is %s in %s for %s an hour.", text, least.Type, least.Location, least.PriceText())
}

// source describes the kind of VMs in use. The page is shown even if that fails.
func (p *pages) source(ctx context.Context) Source {
	if p.cfg.Describe == nil {
		return Source{}
	}
	s, err := p.cfg.Describe(ctx)
	if err != nil {
		p.cfg.Log.Warn().Err(err).Msg("failed to describe the VMs for the board")
		s.Error = "The VM provider's data could not be read."
	}
	return s
}
