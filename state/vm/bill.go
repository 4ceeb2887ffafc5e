package vm

import (
	"fmt"
	"time"
)

// SleepAt returns when a VM that rests has to begin to go, so that it is deleted just before the next
// span begins which would have to be paid: created + n·paid − margin. It is in the past if that time
// has come. A moment that was missed buys the next span, and the answer is the end of that one. margin
// is bounded by half of paid. Zero paid means that nothing ends: the zero time.
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

// SpansStarted returns how many spans of what is paid at once have begun from a VM's creation until a
// time: 1 in the first moment. It is 0 for VMs that cost nothing.
func SpansStarted(created time.Time, paid time.Duration, until time.Time) int64 {
	if paid <= 0 || created.IsZero() {
		return 0
	}
	return max(int64((until.Sub(created)+paid-1)/paid), 1)
}

// Bill is what VMs and their images have cost: whole spans that were begun, each at its price.
type Bill struct {
	VMs      int           `json:"vms,omitempty"`
	Spans    int64         `json:"spans,omitempty"`
	Time     time.Duration `json:"time,omitempty"` // of all spans
	Micro    int64         `json:"micro,omitempty"`
	Images   int64         `json:"images,omitempty"` // the part of Micro that images cost
	Currency string        `json:"currency,omitempty"`
}

func (b *Bill) add(m Bill) {
	b.VMs, b.Spans, b.Time, b.Micro, b.Images = b.VMs+m.VMs, b.Spans+m.Spans, b.Time+m.Time, b.Micro+m.Micro, b.Images+m.Images
	if m.Currency != "" {
		b.Currency = m.Currency
	}
}

// Spans is how many spans are on the row's bill until a time. One is reserved for a VM that may come
// to exist, and for one whose end nobody has seen.
func (r *Row) Spans(now time.Time) int64 {
	if r.Paid <= 0 {
		return 0
	}
	if r.CreatedAt.IsZero() { // never seen
		if r.Phase == Gone || r.Heir != "" {
			return 0
		}
		return 1
	}
	return max(SpansStarted(r.CreatedAt, r.Paid, r.until(now))-r.Skip, 0)
}

// until is when its spans stop to begin.
func (r *Row) until(now time.Time) time.Time {
	if !r.EndedAt.IsZero() {
		return r.EndedAt
	}
	return now
}

// Bill is what the VM has cost until a time.
func (r *Row) Bill(now time.Time) Bill {
	n := r.Spans(now)
	if n == 0 {
		return Bill{}
	}
	return Bill{VMs: 1, Spans: n, Time: time.Duration(n) * r.Paid, Micro: n * r.MicroHour, Currency: r.Currency}
}

// billIn is the part of Bill whose spans begin in [from, to).
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

// spansBefore counts the spans that begin before a time.
func spansBefore(created time.Time, paid time.Duration, at time.Time) int64 {
	if !at.After(created) {
		return 0
	}
	return int64((at.Sub(created)-1)/paid) + 1
}

// Caps bound what VMs there may be. Zero bounds nothing. Only VMs that cost something count for all
// but VMs.
type Caps struct {
	VMs        int           // at once
	PerHour    int           // intents in the last hour
	PerTask    time.Duration // of paid spans, over all VMs of a task
	MicroDay   int64         // what the spans of a day (UTC) cost, in millionths of the provider's currency
	MicroMonth int64
}

// The limits that a LimitError names.
const (
	LimitVMs      = "limits.vms"
	LimitVMMakes  = "limits.vm_creates"
	LimitVMHours  = "limits.vm_hours"
	LimitVMsDay   = "limits.vm_cost_per_day"
	LimitVMsMonth = "limits.vm_cost_per_month"
)

// LimitError says which cap forbids another VM, or another span of one. Nothing was stored.
type LimitError struct {
	// Limit is the key in the configuration.
	Limit  string
	Reason string // a clause for people
	// Until is when it ends by itself, zero if it does not, or nobody knows.
	Until time.Time
}

func (e *LimitError) Error() string { return e.Reason }

// Hint says what a person can do about it.
func (e *LimitError) Hint() string {
	switch e.Limit {
	case LimitVMs:
		return "It starts by itself when a VM is free; raise `limits.vms` to have more at once."
	case LimitVMHours:
		return "What was done is kept. Raise `limits.vm_hours`, then comment `retry`."
	default:
		return fmt.Sprintf("It goes on by itself at %s; raise `%s` to go on sooner.", e.Until.UTC().Format("2 Jan 15:04 UTC"), e.Limit)
	}
}
