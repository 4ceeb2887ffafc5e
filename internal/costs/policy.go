package costs

import (
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// Rest is the treatment of a VM when its task rests.
type Rest int

// Treatments of resting VMs.
const (
	RestDelete Rest = iota // save the work immediately and delete the VM
	RestPark               // keep the VM for the paid hour, then the same
	RestStay               // keep the VM until the task ends
)

// Keep is how work is saved.
type Keep int

// Ways to save work.
const (
	KeepArchive  Keep = iota // archived by the orchestrator
	KeepSnapshot             // an image of the VM's disk at the cloud
)

// A Policy determines how VMs rest.
type Policy struct {
	Name string
	Rest Rest
	Keep Keep
}

// Policies returns the compared policies. The first is the baseline: it differs from the default, parking with
// archives, only by not parking.
func Policies() []Policy {
	return []Policy{
		{"delete at once, archive", RestDelete, KeepArchive},
		{"delete at once, snapshot", RestDelete, KeepSnapshot},
		{"parking, archive", RestPark, KeepArchive},
		{"parking, snapshot", RestPark, KeepSnapshot},
		{"always on", RestStay, KeepArchive},
	}
}

// sleepAt returns when a VM that was created at created and rests since now is suspended; false means never.
func (p Policy) sleepAt(created, now time.Time, s Setting) (time.Time, bool) {
	switch p.Rest {
	case RestStay:
		return time.Time{}, false
	case RestDelete:
		return now, true
	}
	margin := s.Margin
	if p.Keep == KeepSnapshot { // creating an image takes long, and the VM is charged until it is done
		margin = max(margin, s.Times.Image.Most+time.Minute)
	}
	at := vm.SleepAt(created, s.Period, margin, now)
	if at.Before(now) {
		at = now
	}
	return at, true
}
