package vm

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
)

// SleepAt returns the time at which suspending an idle VM must begin, so that the VM is deleted just before its next
// paid span begins: created + n·paid − margin. It may be in the past. If the end of a span was missed, it returns the
// time for the end of the next one. margin is limited to half of paid. If paid is zero it returns the zero time.
func SleepAt(created time.Time, paid, margin time.Duration, now time.Time) time.Time {
	if paid <= 0 || created.IsZero() {
		return time.Time{}
	}
	n := int64(1)
	if now.After(created) {
		n += int64(now.Sub(created) / paid)
	}
	return created.Add(time.Duration(n) * paid).Add(-min(margin, paid/2))
}

// SpansStarted returns the number of paid spans that have begun between a VM's creation and a time: 1 at creation. It
// is 0 for VMs that cost nothing.
func SpansStarted(created time.Time, paid time.Duration, until time.Time) int64 {
	if paid <= 0 || created.IsZero() {
		return 0
	}
	return max(int64((until.Sub(created)+paid-1)/paid), 1)
}

// Bill is the cost of VMs and their images: all spans that have begun, each at its price.
type Bill struct {
	VMs      int           `json:"vms,omitempty"`
	Spans    int64         `json:"spans,omitempty"`
	Time     time.Duration `json:"time,omitempty"` // of all spans
	Micro    int64         `json:"micro,omitempty"`
	Images   int64         `json:"images,omitempty"` // the part of Micro for images
	Currency string        `json:"currency,omitempty"`
}

func (b *Bill) add(m Bill) {
	b.VMs, b.Spans, b.Time, b.Micro, b.Images = b.VMs+m.VMs, b.Spans+m.Spans, b.Time+m.Time, b.Micro+m.Micro, b.Images+m.Images
	if m.Currency != "" {
		b.Currency = m.Currency
	}
}

// Spans returns the number of spans on the row's bill until a time. It includes one span for a VM that may come to
// exist.
func (r *Row) Spans(now time.Time) int64 {
	if r.Paid <= 0 {
		return 0
	}
	if r.CreatedAt.IsZero() { // not known to exist
		if r.Phase == Gone || r.Successor != "" {
			return 0
		}
		return 1
	}
	return max(SpansStarted(r.CreatedAt, r.Paid, r.billedUntil(now))-r.Skip, 0)
}

// billedUntil returns the end of the billed time.
func (r *Row) billedUntil(now time.Time) time.Time {
	if !r.EndedAt.IsZero() {
		return r.EndedAt
	}
	return now
}

// Bill returns the cost of the VM until a time.
func (r *Row) Bill(now time.Time) Bill {
	n := r.Spans(now)
	if n == 0 {
		return Bill{}
	}
	return Bill{VMs: 1, Spans: n, Time: time.Duration(n) * r.Paid, Micro: n * r.MicroHour, Currency: r.Currency}
}

// billIn returns the part of Bill for spans that begin in [from, to).
func (r *Row) billIn(from, to, now time.Time) Bill {
	n := r.Spans(now)
	if n == 0 {
		return Bill{}
	}
	created, first := r.CreatedAt, r.Skip
	if created.IsZero() {
		created = r.Intended
	}
	low := max(spansBefore(created, r.Paid, from), first)
	high := min(spansBefore(created, r.Paid, to), first+n)
	if high <= low {
		return Bill{}
	}
	n = high - low
	return Bill{VMs: 1, Spans: n, Time: time.Duration(n) * r.Paid, Micro: n * r.MicroHour, Currency: r.Currency}
}

// spansBefore returns the number of spans that begin before a time.
func spansBefore(created time.Time, paid time.Duration, at time.Time) int64 {
	if !at.After(created) {
		return 0
	}
	return int64((at.Sub(created)-1)/paid) + 1
}

// Caps limit VMs. Zero means no limit. Except for VMs, only VMs that cost something count.
type Caps struct {
	VMs        int           // at once
	Reserved   int           // of VMs, for others that have waited longer
	PerHour    int           // intents in the last hour
	PerTask    time.Duration // of paid spans, over all VMs of a task
	MicroDay   int64         // cost of the spans of a day (UTC), in millionths of the provider's currency
	MicroMonth int64
}

// The limits that a LimitError names.
const (
	LimitVMs       = "limits.vms"
	LimitVMCreates = "limits.vm_creates"
	LimitVMHours   = "limits.vm_hours"
	LimitVMsDay    = "limits.vm_cost_per_day"
	LimitVMsMonth  = "limits.vm_cost_per_month"
)

// LimitError names the cap that forbids another VM, or another span of one. Nothing was stored.
type LimitError struct {
	// Limit is the key in the configuration.
	Limit  string
	Reason string // a clause for people
	// Until is the time at which the limit ends without action; zero if it does not, or if that is unknown.
	Until time.Time
}

func (e *LimitError) Error() string { return e.Reason }

// Hint returns advice for people.
func (e *LimitError) Hint() string {
	switch e.Limit {
	case LimitVMs:
		return "It starts automatically when a VM is free; raise `limits.vms` to have more at once."
	case LimitVMHours:
		return state.HintVMHours
	default:
		return fmt.Sprintf("It continues automatically at %s; raise `%s` to continue sooner.", e.Until.UTC().Format("2 Jan 15:04 UTC"), e.Limit)
	}
}
