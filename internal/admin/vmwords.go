package admin

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// vmTone groups phases of VMs as tone does those of tasks.
func vmTone(p state.VMPhase) string {
	switch p {
	case state.VMFailed:
		return "bad"
	case state.VMDeleting, state.VMSleeping:
		return "warn"
	case state.VMBusy:
		return "busy"
	case state.VMReady, state.VMWaking:
		return "good"
	case state.VMParked:
		return "people"
	}
	return "calm"
}

// Paid says until when the VM is paid for, or nothing.
func (v vmRow) Paid(now time.Time) string {
	if v.Until == nil {
		return ""
	}
	return "paid until " + at(now, *v.Until).Short
}

// PriceText is the price of a span, to the tenth of a hundredth.
func (v vmRow) PriceText() string {
	if v.microSpan == 0 {
		return "–"
	}
	return fmt.Sprintf("%.4f %s", units(v.microSpan), words.Plain(v.Currency))
}

// Begun is how many spans that are paid for have begun.
func (v vmRow) Begun() string {
	switch {
	case v.Spans == 0:
		return "–"
	case v.paid == time.Hour:
		return words.Many(int(v.Spans), "hour")
	}
	return fmt.Sprintf("%d × %s", v.Spans, span(v.paid))
}

// CostText is what it has cost so far.
func (v vmRow) CostText() string {
	if v.microSpan == 0 {
		return "–"
	}
	return words.Cash(v.micro, v.Currency)
}

// End says why it ended, in words.
func (v vmRow) End() string {
	if v.Why == "" {
		return ""
	}
	return words.VMEnd(v.Why)
}

// CostText is the sum.
func (s vmSum) CostText() string {
	if s.Currency == "" {
		return "–"
	}
	return words.Cash(s.micro, s.Currency)
}

// ImagesText is the part of the sum that images cost, or nothing.
func (s vmSum) ImagesText() string {
	if s.microImages == 0 {
		return ""
	}
	return words.Cash(s.microImages, s.Currency)
}

// CapText is the cap, or nothing.
func (s vmSum) CapText() string {
	if s.microCap == 0 {
		return ""
	}
	return words.Cash(s.microCap, s.Currency)
}

// Half and Most show the times.
func (t vmTook) Half() string { return span(t.half) }

// Most is what 95 of 100 stay under.
func (t vmTook) Most() string { return span(t.most) }
