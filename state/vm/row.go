package vm

import (
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
)

// Phase is the phase of a VM's life. A row represents one VM object of the provider, with its name and its bill; the
// name is never used again.
type Phase string

// The phases of a VM. docs/lifecycle.md is made from these comments.
const (
	// Intended: The row with its name, its labels and the price of its first hour is stored, together
	// with the check of the caps; whether the provider has the VM is not known yet. The fleet looks the
	// name up, then creates. After a crash it looks the name up again and adopts a VM whose creation was not confirmed.
	Intended Phase = "intended"
	// Creating: The provider has it and its id is stored; it is not up yet. Ends when the poller sees it running, or
	// gives up after a while. errand need not run meanwhile.
	Creating Phase = "creating"
	// Booting: It runs. Ends with a first login (using the host key that errand supplied), the rotation of that key, and
	// a login as the agent's user. Both keys stay pinned until then, so each step may be repeated after a crash.
	Booting Phase = "booting"
	// Waking: As ready, for a VM that restores the saved work of an earlier one, which is not
	// unpacked yet. Ends when the run is launched; the launch is repeated after a crash.
	Waking Phase = "waking"
	// Ready: It can be used and nothing has run on it yet. Ends when a run is launched.
	Ready Phase = "ready"
	// Busy: A run of its task is on it. Ends with the run, in the transaction that stores the run's end.
	Busy Phase = "busy"
	// Parked: Its task rests, and its hour is paid. Ends with the next run or with the hour.
	// A standby VM is parked without a task, for the next one of its repository.
	Parked Phase = "parked"
	// Sleeping: Its work is being saved. Ends when the job sleep, which is repeated after a crash, is done; a
	// person's comment may bring it back to work instead.
	Sleeping Phase = "sleeping"
	// Asleep: Its disk is an image and the VM is deleted, or being deleted. The row owns the image
	// until its task has been restored from it, or no longer needs it.
	Asleep Phase = "asleep"
	// Failed: It never came up, could not be used, or ended unexpectedly. The poller deletes the remains.
	Failed Phase = "failed"
	// Deleting: It is to be deleted, with its image, and the row keeps why. The deletion is repeated until the
	// provider, asked for the VM's ID, no longer has it; its bill is open until then.
	Deleting Phase = "deleting"
	// Gone: The provider has confirmed the deletion. The row stays for a day, so that a late creation is
	// recognized and the name is not reused; its bill stays forever.
	Gone Phase = "gone"
)

// Phases returns all phases of VMs in the order of a life.
func Phases() []Phase {
	return []Phase{
		Intended, Creating, Booting, Waking, Ready, Busy, Parked, Sleeping, Asleep, Failed, Deleting, Gone,
	}
}

// Usable reports whether a VM in this phase can be logged into and used.
func (p Phase) Usable() bool {
	return slices.Contains([]Phase{Waking, Ready, Busy, Parked, Sleeping}, p)
}

// Rising reports whether the VM is needed and not usable yet.
func (p Phase) Rising() bool { return p == Intended || p == Creating || p == Booting }

// Over reports whether the VM is not usable any more.
func (p Phase) Over() bool {
	return p == Asleep || p == Failed || p == Deleting || p == Gone
}

// Row is the stored state of one VM. Only Next changes it.
type Row struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	// Task is the VM's task; zero for a standby VM and for one that bakes an image.
	Task state.TaskKey `json:"task,omitzero"`
	Repo int64         `json:"repo,omitempty"`
	// Owner and Gen are the parts of its name: see fleet.VMName.
	Owner    string            `json:"owner"`
	Gen      int               `json:"gen"`
	Provider string            `json:"provider"`
	Labels   map[string]string `json:"labels,omitempty"`

	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"` // when Phase began
	// Intended is when the row was stored; UpAt when the VM was usable for the first time.
	Intended time.Time `json:"intended"`
	UpAt     time.Time `json:"up_at,omitzero"`

	// ID is the provider's ID. CreatedAt, by the provider's clock, is the start of the first paid hour; EndedAt is the
	// time at which the provider confirmed the deletion.
	ID        string    `json:"id,omitempty"`
	Kind      string    `json:"kind,omitempty"`
	Location  string    `json:"location,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`

	// MicroHour is the price of a span of Paid, in millionths of Currency. Until the VM is created it is the reserved
	// amount. Paid is 0 for VMs that cost nothing.
	MicroHour int64         `json:"micro_hour,omitempty"`
	Currency  string        `json:"currency,omitempty"`
	Paid      time.Duration `json:"paid,omitempty"`
	// Skip is the number of spans on the bills of earlier rows of the same VM object (Rebuilds).
	Skip int64 `json:"skip,omitempty"`

	// Image is the provider's image from which it is created; FromSleep is the row whose work it restores; FromImage
	// reports whether Image is the disk of that row.
	Image     string `json:"image,omitempty"`
	FromSleep string `json:"from_sleep,omitempty"`
	FromImage bool   `json:"from_image,omitempty"`
	// Rebuilds names the row whose VM object this one takes over with a fresh disk; Successor, in that row, names this one.
	Rebuilds  string `json:"rebuilds,omitempty"`
	Successor string `json:"heir,omitempty"`
	// Standby is set while a standby VM is kept for the next task of its repository.
	Standby bool `json:"spare,omitempty"`
	// NotAfter is the time at which it is deleted in any case; zero for never.
	NotAfter time.Time `json:"not_after,omitzero"`

	// Pins are the accepted host keys, in authorized_keys form; empty while only the derived key of the first boot is
	// accepted.
	Pins []string `json:"pins,omitempty"`
	// Snapshot is the image of its disk.
	Snapshot string `json:"snapshot,omitempty"`

	// EndReason is the reason for its end; Detail is for the operator.
	EndReason state.VMEndReason `json:"why,omitempty"`
	Detail    string            `json:"detail,omitempty"`
}

// EventKind is the kind of an event of a VM.
type EventKind string

// The events of VMs.
const (
	Made     EventKind = "made"     // the provider has created it: ID, Kind, Location, CreatedAt, MicroHour, Currency, Paid; Usable
	Runs     EventKind = "runs"     // the provider reports that it runs
	Pinned   EventKind = "pinned"   // Pins are accepted from now on
	Up       EventKind = "up"       // it is usable; Pins, if any, replace the accepted keys
	Work     EventKind = "work"     // a run of its task is on it
	Rest     EventKind = "rest"     // the run has ended, or another VM has it
	Sleep    EventKind = "sleep"    // its work is being saved
	Imaged   EventKind = "imaged"   // its disk is an image: Snapshot, EndReason
	Keep     EventKind = "keep"     // its task no longer needs it; it is kept for the next one: EndReason
	End      EventKind = "end"      // it is to be deleted: EndReason, Detail
	Fail     EventKind = "fail"     // it is unusable: EndReason, Detail
	Deleted  EventKind = "deleted"  // the provider has confirmed the deletion
	Inherits EventKind = "inherits" // another row takes over its VM object: Successor
	Lose     EventKind = "lose"     // another errand may have used it, before this store was restored: EndReason, Detail
)

// Event is a fact about a VM. Kind says which of the other fields are set.
type Event struct {
	Kind EventKind
	// Now is set by Apply.
	Now time.Time

	ID        string
	Type      string
	Location  string
	CreatedAt time.Time
	MicroHour int64
	Currency  string
	Paid      time.Duration
	// Usable reports whether it needs no first contact: its creator may log in.
	Usable bool

	Pins      []string
	Snapshot  string
	Successor string
	EndReason state.VMEndReason
	Detail    string
}
