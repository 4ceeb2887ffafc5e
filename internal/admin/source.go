package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/words"
)

// Source is where VMs come from, as /status.json and /vms.json say it.
type Source struct {
	Kind      string   `json:"kind,omitempty"`
	Isolation string   `json:"isolation,omitempty"`
	Notes     []string `json:"notes,omitempty"` // sentences for the operator
	// Candidates are what may be ordered, in the order of preference.
	Candidates []Candidate `json:"candidates,omitempty"`
	Error      string      `json:"error,omitempty"`
}

// Candidate is a kind of VM that may be ordered; all but its name is missing of one that is not sold. Price is what a started
// hour costs, in units of the currency.
type Candidate struct {
	Type      string     `json:"type"`
	Location  string     `json:"location,omitempty"`
	Sold      bool       `json:"sold"`
	Available bool       `json:"available"` // it can be ordered now, says the provider
	VCPU      int        `json:"vcpu,omitempty"`
	MemoryMB  int        `json:"memory_mb,omitempty"`
	DiskGB    int        `json:"disk_gb,omitempty"`
	Price     float64    `json:"price,omitempty"`
	Currency  string     `json:"currency,omitempty"`
	GoneAfter *time.Time `json:"gone_after,omitempty"` // when it cannot be ordered any more
}

// PriceText is the price of an hour, to the tenth of a hundredth.
func (c Candidate) PriceText() string {
	if !c.Sold {
		return "–"
	}
	return fmt.Sprintf("%.4f %s", c.Price, words.Plain(c.Currency))
}

// Size is what it has.
func (c Candidate) Size() string {
	if !c.Sold {
		return "–"
	}
	return fmt.Sprintf("%d vCPU, %d MB, %d GB", c.VCPU, c.MemoryMB, c.DiskGB)
}

// State says whether it can be had.
func (c Candidate) State(now time.Time) string {
	switch {
	case !c.Sold:
		return "not sold"
	case c.GoneAfter != nil && !now.Before(*c.GoneAfter):
		return "not sold any more"
	case !c.Available:
		return "not available at the moment"
	case c.GoneAfter != nil:
		return "until " + c.GoneAfter.UTC().Format(time.DateOnly)
	}
	return "available"
}

// Market says in a sentence what may be ordered, empty where VMs cost nothing.
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
		return text + ", and none can be ordered now."
	}
	return fmt.Sprintf("%s; the cheapest is %s in %s for %s an hour.", text, least.Type, least.Location, least.PriceText())
}

// source asks what VMs are made of here. That it cannot be said does not spoil the page.
func (p *pages) source(ctx context.Context) Source {
	if p.cfg.Describe == nil {
		return Source{}
	}
	s, err := p.cfg.Describe(ctx)
	if err != nil {
		p.cfg.Log.Warn().Err(err).Msg("describe the VMs for the board")
		s.Error = "It cannot be said now what VMs are made of."
	}
	return s
}
