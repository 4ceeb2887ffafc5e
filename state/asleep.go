package state

import (
	"fmt"
	"slices"
	"time"
)

// SleepMode says how a task's work is put away while nobody needs its VM. The empty one is SleepArchive.
type SleepMode string

// The ways to sleep. Both keep the agent's own session.
const (
	SleepArchive  SleepMode = "archive"  // changes, session and named caches are packed and kept by errand
	SleepSnapshot SleepMode = "snapshot" // the provider keeps an image of the whole disk
)

// Asleep is a task's work as it was put away, so that its VM could go. A task that has one and no VM is
// asleep. It stays until a newer one replaces it, nobody has wanted it for Policy.KeepAsleep, or the task
// has ended Policy.KeepAfterEnd ago.
type Asleep struct {
	Mode   SleepMode `json:"mode"`
	Ref    string    `json:"ref"` // names the stored archive, or the provider's image
	Bytes  int64     `json:"bytes,omitempty"`
	SHA256 string    `json:"sha256,omitempty"`
	// VM is whose work it is, Gen its number; Carries names VMs before it whose work went on there.
	VM      string    `json:"vm"`
	Gen     int       `json:"gen"`
	Carries []string  `json:"carries,omitempty"`
	At      time.Time `json:"at"`
	Session string    `json:"session,omitempty"` // the agent's, as far as the task knows
	// Base is the published commit on which a checkout has to stand before an archive is unpacked there;
	// Head is where the branch was.
	Base string `json:"base,omitempty"`
	Head string `json:"head,omitempty"`
	// Dir is where the checkout was, Paths how many of its files were changed and not committed.
	Dir   string `json:"dir,omitempty"`
	Paths int    `json:"paths,omitempty"`
	// Left is what was too large to be carried, for people.
	Left []string `json:"left,omitempty"`
	// Stale is set when the work has been moved onto another commit since.
	Stale bool `json:"stale,omitempty"`
}

// maxCarries bounds the names that Carried returns; the newest stay.
const maxCarries = 30

// Carried is what VM.Carries is for a VM that took it over.
func (a *Asleep) Carried() []string {
	list := append(slices.Clone(a.Carries), a.VM)
	return list[max(0, len(list)-maxCarries):]
}

// Holds reports whether the work done on a VM is in it.
func (a *Asleep) Holds(vm string) bool { return a.VM == vm || slices.Contains(a.Carries, vm) }

// Holds reports whether the work done on the VM of that name is on this one.
func (v VM) Holds(name string) bool {
	return v.Name != "" && v.Name == name || slices.Contains(v.Carries, name)
}

// Wakes returns what the next VM of the task takes over, nil for nothing: there is nothing, a new VM was
// asked for, or the agent has been at work since it was put away.
func (t *Task) Wakes() *Asleep {
	a := t.Asleep
	if a == nil || t.Fresh || a.Stale {
		return nil
	}
	runs := t.Runs
	if t.Run != nil {
		runs = append(slices.Clone(runs), *t.Run)
	}
	for _, r := range slices.Backward(runs) {
		if r.Kind == RunCheck || r.Started.IsZero() {
			continue
		}
		if a.Holds(r.VM) && r.Started.Before(a.At) {
			return a
		}
		return nil
	}
	return nil // no agent has been at work in this life: there is nothing to go on with
}

// Resting reports whether the task has a VM and no use for it at present: it waits for people, for a
// limit to end, or for money.
func (t *Task) Resting() bool {
	switch {
	case t.VM == nil || t.Ended():
		return false
	case t.Run != nil && (t.Run.State != RunLaunching || t.Waiting == nil):
		return false
	case t.Phase.Working():
		return t.Waiting != nil
	}
	return true
}

// restedFor is how long it has been resting.
func (t *Task) RestedSince() time.Time {
	if t.Phase.Working() && t.Waiting != nil && t.Waiting.Since.After(t.Since) {
		return t.Waiting.Since
	}
	return t.Since
}

// Spans is how many spans of a VM that costs money have begun by a time: each is paid in full. It is 0
// for one that costs nothing.
func (v VM) Spans(now time.Time) int64 {
	if v.Paid <= 0 || v.CreatedAt.IsZero() {
		return 0
	}
	if !v.EndedAt.IsZero() {
		now = v.EndedAt
	}
	return max(int64((now.Sub(v.CreatedAt)+v.Paid-1)/v.Paid), 1)
}

// Cost is what the VM has cost by a time, in millionths of its Currency.
func (v VM) Cost(now time.Time) int64 { return v.Spans(now) * v.MicroHour }

// Hours is the time that was paid for by a time.
func (v VM) Hours(now time.Time) time.Duration { return time.Duration(v.Spans(now)) * v.Paid }

// PaidUntil is when the present span ends; zero for a VM that costs nothing.
func (v VM) PaidUntil(now time.Time) time.Time {
	if v.Spans(now) == 0 {
		return time.Time{}
	}
	return v.CreatedAt.Add(v.Hours(now))
}

// VMUse is what all VMs of a task together have taken: hours that were paid for, and what they cost.
type VMUse struct {
	VMs      int
	Hours    time.Duration
	Micro    int64
	Currency string
}

// VMUse adds up the task's VMs that cost money.
func (t *Task) VMUse(now time.Time) VMUse {
	var u VMUse
	add := func(v VM) {
		if v.Paid > 0 {
			u.VMs, u.Hours, u.Micro = u.VMs+1, u.Hours+v.Hours(now), u.Micro+v.Cost(now)
			u.Currency = v.Currency
		}
	}
	for _, v := range t.VMs {
		add(v)
	}
	if t.VM != nil {
		add(*t.VM)
	}
	return u
}

// FormatHours writes a duration for people: whole hours as "3 h".
// FormatHours writes a duration for people: whole hours as "3 h".
func FormatHours(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return d.String()
}
