package costs

import (
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// Rest is what happens to a VM when its task rests.
type Rest int

// The ways to rest.
const (
	RestDelete Rest = iota // its work is put away at once, and it is deleted
	RestPark               // it stays for the hour that is paid, then the same
	RestStay               // it stays until the task ends
)

// Keep is how work is put away.
type Keep int

// The ways to put work away.
const (
	KeepArchive  Keep = iota // packed, and kept by the orchestrator
	KeepSnapshot             // as an image of the VM's disk, kept by the cloud
)

// Policy is a way of letting VMs rest.
type Policy struct {
	Name string
	Rest Rest
	Keep Keep
}

// Policies are those that are compared. The first is what the others are held against: it differs from the default,
// parking with archives, by the parking alone.
func Policies() []Policy {
	return []Policy{
		{"delete at once, archive", RestDelete, KeepArchive},
		{"delete at once, snapshot", RestDelete, KeepSnapshot},
		{"parking, archive", RestPark, KeepArchive},
		{"parking, snapshot", RestPark, KeepSnapshot},
		{"always on", RestStay, KeepArchive},
	}
}

// sleepAt says when a VM that was created then, and has come to rest now, is put to sleep; false is never.
func (p Policy) sleepAt(created, now time.Time, s Setting) (time.Time, bool) {
	switch p.Rest {
	case RestStay:
		return time.Time{}, false
	case RestDelete:
		return now, true
	}
	margin := s.Margin
	if p.Keep == KeepSnapshot { // an image takes long, and the VM is paid for until it is there
		margin = max(margin, s.Times.Image.Most+time.Minute)
	}
	at := vm.SleepAt(created, s.Period, margin, now)
	if at.Before(now) {
		at = now
	}
	return at, true
}
