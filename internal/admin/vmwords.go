package admin

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state/vm"
)

// vmTone returns the CSS class of a VM's phase.
func vmTone(p vm.Phase) string {
	switch p {
	case vm.Failed:
		return "bad"
	case vm.Deleting, vm.Sleeping:
		return "warn"
	case vm.Busy:
		return "busy"
	case vm.Ready, vm.Waking:
		return "good"
	case vm.Parked:
		return "people"
	}
	return "calm"
}

// Paid returns until when the VM is paid for, or an empty string.
func (v vmRow) Paid(now time.Time) string {
	if v.Until == nil {
		return ""
	}
	return "paid until " + at(now, *v.Until).Short
}

// PriceText formats the price of a billing span with four decimals.
func (v vmRow) PriceText() string {
	if v.microSpan == 0 {
		return "–"
	}
	return fmt.Sprintf("%.4f %s", units(v.microSpan), words.Plain(v.Currency))
}

// Begun returns the number of started billing spans.
func (v vmRow) Begun() string {
	switch {
	case v.Spans == 0:
		return "–"
	case v.paid == time.Hour:
		return words.Many(int(v.Spans), "hour")
	}
	return fmt.Sprintf("%d × %s", v.Spans, words.ExactSpan(v.paid))
}

// CostText formats the cost so far.
func (v vmRow) CostText() string {
	if v.microSpan == 0 {
		return "–"
	}
	return words.Cash(v.micro, v.Currency)
}

// End returns the reason of the VM's end as text.
func (v vmRow) End() string {
	if v.EndReason == "" {
		return ""
	}
	return words.VMEnd(v.EndReason)
}

// CostText formats the sum.
func (s vmSum) CostText() string {
	if s.Currency == "" {
		return "–"
	}
	return words.Cash(s.micro, s.Currency)
}

// ImagesText formats the part of the sum for images, or returns an empty string.
func (s vmSum) ImagesText() string {
	if s.microImages == 0 {
		return ""
	}
	return words.Cash(s.microImages, s.Currency)
}

// CapText formats the cap, or returns an empty string.
func (s vmSum) CapText() string {
	if s.microCap == 0 {
		return ""
	}
	return words.Cash(s.microCap, s.Currency)
}

// Half formats the median.
func (t vmTook) Half() string { return words.ExactSpan(t.half) }

// Most formats the 95th percentile.
func (t vmTook) Most() string { return words.ExactSpan(t.most) }
