package vm

import (
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
)

// Phase is where a VM is in its life. A row is one VM object of the provider: it is billed and named
// as that object is, and its name is never used again.
type Phase string

// The phases of a VM. docs/lifecycle.md is made from these comments.
const (
	// Intended: The row with its name, its labels and the price of its first hour is stored, together
	// with the check of the caps; whether the provider has the VM is not known yet. The fleet looks the
	// name up, then creates. After a crash it looks the name up again and adopts a VM whose creation was not confirmed.
	Intended Phase = "intended"
	// Creating: The provider has it and its id is stored; it is not up yet. The poller moves on when
	// it runs, or gives up after a while. errand need not run meanwhile.
	Creating Phase = "creating"
	// Booting: It runs. A first login over the host key that we gave it, the key's rotation and a login as the
	// agent's user move on. Each of these may be repeated after a crash: both keys are pinned meanwhile.
	Booting Phase = "booting"
	// Waking: As ready, for a VM that restores the saved work of an earlier one, which is not
	// unpacked yet. The launch of the run moves on and is repeated after a crash.
	Waking Phase = "waking"
	// Ready: It can be used and nothing has run on it yet. The launch of a run moves on.
	Ready Phase = "ready"
	// Busy: A run of its task is on it. The end of the run moves on, in the transaction that
	// stores that end.
	Busy Phase = "busy"
	// Parked: Its task rests, and its hour is paid. The next run, or the end of the hour, moves on.
	// A standby VM is parked without a task, for the next one of its repository.
	Parked Phase = "parked"
	// Sleeping: Its work is being saved. The job sleep moves on and is repeated after a crash; a
	// person's comment may bring it back to work instead.
	Sleeping Phase = "sleeping"
	// Asleep: Its disk is an image and the VM is deleted, or being deleted. The row owns the image
	// until its task has been restored from it, or no longer needs it.
	Asleep Phase = "asleep"
	// Failed: It never came up, could not be used, or ended unexpectedly. The poller deletes the remains.
	Failed Phase = "failed"
	// Deleting: It is to be deleted, with its image, and the row keeps why. The deletion is repeated until the provider,
	// asked for the VM's ID, no longer has it; its bill is open until then.
	Deleting Phase = "deleting"
	// Gone: The provider has confirmed the deletion. The row stays for a day, so that a late creation is
	// recognized and the name is not reused; its bill stays forever.
	Gone Phase = "gone"
)

// Phases lists all phases of VMs in the order of a life.
func Phases() []Phase {
	return []Phase{
		Intended, Creating, Booting, Waking, Ready, Busy, Parked, Sleeping, Asleep, Failed, Deleting, Gone,
	}
}

// Usable reports whether a VM in this phase can be logged into and worked on.
func (p Phase) Usable() bool {
	return slices.Contains([]Phase{Waking, Ready, Busy, Parked, Sleeping}, p)
}

// Rising reports whether the VM is wanted and not usable yet.
func (p Phase) Rising() bool { return p == Intended || p == Creating || p == Booting }

// Over reports whether the VM will not be usable any more.
func (p Phase) Over() bool {
	return p == Asleep || p == Failed || p == Deleting || p == Gone
}

// Row is what is known and intended about one VM. It is changed by Next alone.
type Row struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	// Task is whose it is; zero for a spare VM and for one in which an image is baked.
	Task state.TaskKey `json:"task,omitzero"`
	Repo int64         `json:"repo,omitempty"`
	// Owner and Gen are what its name is derived from: see fleet.VMName.
	Owner    string            `json:"owner"`
	Gen      int               `json:"gen"`
	Provider string            `json:"provider"`
	Labels   map[string]string `json:"labels,omitempty"`

	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"` // when Phase began
	// Intended is when the row was stored; UpAt when the VM was usable for the first time.
	Intended time.Time `json:"intended"`
	UpAt     time.Time `json:"up_at,omitzero"`

	// ID is the provider's own. CreatedAt, by the provider's clock, is what paid hours count from;
	// EndedAt is when the provider had it no more.
	ID        string    `json:"id,omitempty"`
	Kind      string    `json:"kind,omitempty"`
	Location  string    `json:"location,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`

	// MicroHour is what a span of Paid costs, in millionths of Currency. Until the VM is made it is what
	// was reserved for it. Paid is 0 for VMs that cost nothing.
	MicroHour int64         `json:"micro_hour,omitempty"`
	Currency  string        `json:"currency,omitempty"`
	Paid      time.Duration `json:"paid,omitempty"`
	// Skip is how many spans an earlier row of the same VM object has on its bill (Rebuilds).
	Skip int64 `json:"skip,omitempty"`

	// Image is the provider's image it is made from; FromSleep is the row whose work it takes over;
	// FromImage says that Image is that one's disk.
	Image     string `json:"image,omitempty"`
	FromSleep string `json:"from_sleep,omitempty"`
	FromImage bool   `json:"from_image,omitempty"`
	// Rebuilds names the row whose VM object this one takes over with a fresh disk; Heir, in that
	// row, names this one.
	Rebuilds string `json:"rebuilds,omitempty"`
	Heir     string `json:"heir,omitempty"`
	// Spare is set while a VM without a task is kept for the next one of its repository.
	Spare bool `json:"spare,omitempty"`
	// NotAfter is when it goes whoever owns it, zero for never.
	NotAfter time.Time `json:"not_after,omitzero"`

	// Pins are the host keys that are accepted, in authorized_keys form, once there are any besides
	// the derived one of its first boot.
	Pins []string `json:"pins,omitempty"`
	// Snapshot is the image of its disk.
	Snapshot string `json:"snapshot,omitempty"`

	// Why is why it ended, one of the fleet's closed list; Detail is for the operator.
	Why    string `json:"why,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// EventKind is what happened to a VM.
type EventKind string

// The events of VMs.
const (
	Made     EventKind = "made"     // the provider has it: ID, Kind, Location, CreatedAt, MicroHour, Currency, Paid; Usable
	Runs     EventKind = "runs"     // the provider says that it runs
	Pinned   EventKind = "pinned"   // Pins are accepted from now on
	Up       EventKind = "up"       // it can be used; Pins replace the others if there are any
	Work     EventKind = "work"     // a run of its task is on it
	Rest     EventKind = "rest"     // the run has ended, or another VM has it
	Sleep    EventKind = "sleep"    // its work is being put away
	Imaged   EventKind = "imaged"   // its disk is an image: Snapshot, Why
	Keep     EventKind = "keep"     // its task needs it no more; it is kept for the next one: Why
	End      EventKind = "end"      // it shall be deleted: Why, Detail
	Fail     EventKind = "fail"     // it cannot be used (any more): Why, Detail
	Deleted  EventKind = "deleted"  // the provider has it no more
	Inherits EventKind = "inherits" // its VM object goes to another row: Heir
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
	// Usable says that it needs no first contact: whoever asked for it may log in.
	Usable bool

	Pins     []string
	Snapshot string
	Heir     string
	Why      string
	Detail   string
}
