package state

import (
	"slices"
	"time"
)

// VMPhase is where a VM is in its life. A row is one VM object of the provider: it is billed and named
// as that object is, and its name is never used again.
type VMPhase string

// The phases of a VM. docs/lifecycle.md is made from these comments.
const (
	// VMIntended: The row with its name, its labels and the price of its first hour is stored, together
	// with the check of the caps; whether the provider has the VM is not known yet. The fleet looks the
	// name up, then creates. After a crash it looks again: what a lost answer left is adopted.
	VMIntended VMPhase = "intended"
	// VMCreating: The provider has it and its id is stored; it is not up yet. The poller moves on when
	// it runs, or gives up after a while. Nothing of ours has to live meanwhile.
	VMCreating VMPhase = "creating"
	// VMBooting: It runs. A first login over the host key that we gave it, the key's rotation and a login as the
	// agent's user move on. Each of these may be repeated after a crash: both keys are pinned meanwhile.
	VMBooting VMPhase = "booting"
	// VMWaking: As ready, for a VM that takes over work which an earlier one put away and that is not
	// unpacked yet. The launch of the run moves on and is repeated after a crash.
	VMWaking VMPhase = "waking"
	// VMReady: It can be used and nothing has run on it yet. The launch of a run moves on.
	VMReady VMPhase = "ready"
	// VMBusy: A run of its task is on it. The end of the run moves on, in the transaction that
	// stores that end.
	VMBusy VMPhase = "busy"
	// VMParked: Its task rests, and its hour is paid. The next run, or the end of the hour, moves on.
	// A spare VM is parked without a task, for the next one of its repository.
	VMParked VMPhase = "parked"
	// VMSleeping: Its work is being put away. The job sleep moves on and is repeated after a crash; a
	// person's word may bring it back to work instead.
	VMSleeping VMPhase = "sleeping"
	// VMAsleep: Its disk is an image and the VM is deleted, or being deleted. The row owns the image
	// until its task has woken from it, or will not any more.
	VMAsleep VMPhase = "asleep"
	// VMFailed: It never came up, could not be used, or ended by itself. The poller deletes what is left.
	VMFailed VMPhase = "failed"
	// VMDeleting: It is to be deleted, with its image, and the row keeps why. The delete is repeated until the provider,
	// asked for the VM's id, has it no more; its bill is open until then.
	VMDeleting VMPhase = "deleting"
	// VMGone: The provider has confirmed that it has it no more. The row stays for a day, so that a create that lands late is
	// known for what it is and nobody takes the name again; its bill stays for ever.
	VMGone VMPhase = "gone"
)

// VMPhases lists all phases of VMs in the order of a life.
func VMPhases() []VMPhase {
	return []VMPhase{
		VMIntended, VMCreating, VMBooting, VMWaking, VMReady, VMBusy, VMParked, VMSleeping, VMAsleep, VMFailed, VMDeleting, VMGone,
	}
}

// Usable reports whether a VM in this phase can be logged into and worked on.
func (p VMPhase) Usable() bool {
	return slices.Contains([]VMPhase{VMWaking, VMReady, VMBusy, VMParked, VMSleeping}, p)
}

// Rising reports whether the VM is wanted and not usable yet.
func (p VMPhase) Rising() bool { return p == VMIntended || p == VMCreating || p == VMBooting }

// Over reports whether the VM will not be usable any more.
func (p VMPhase) Over() bool {
	return p == VMAsleep || p == VMFailed || p == VMDeleting || p == VMGone
}

// VMRow is what is known and intended about one VM. It is changed by NextVM alone.
type VMRow struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	// Task is whose it is; zero for a spare VM and for one in which an image is baked.
	Task TaskKey `json:"task,omitzero"`
	Repo int64   `json:"repo,omitempty"`
	// Owner and Gen are what its name is derived from: see fleet.VMName.
	Owner    string            `json:"owner"`
	Gen      int               `json:"gen"`
	Provider string            `json:"provider"`
	Labels   map[string]string `json:"labels,omitempty"`

	Phase VMPhase   `json:"phase"`
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

// VMEventKind is what happened to a VM.
type VMEventKind string

// The events of VMs.
const (
	VMMade     VMEventKind = "made"     // the provider has it: ID, Kind, Location, CreatedAt, MicroHour, Currency, Paid; Usable
	VMRuns     VMEventKind = "runs"     // the provider says that it runs
	VMPinned   VMEventKind = "pinned"   // Pins are accepted from now on
	VMUp       VMEventKind = "up"       // it can be used; Pins replace the others if there are any
	VMWork     VMEventKind = "work"     // a run of its task is on it
	VMRest     VMEventKind = "rest"     // the run has ended, or another VM has it
	VMSleep    VMEventKind = "sleep"    // its work is being put away
	VMImaged   VMEventKind = "imaged"   // its disk is an image: Snapshot, Why
	VMKeep     VMEventKind = "keep"     // its task needs it no more; it is kept for the next one: Why
	VMEnd      VMEventKind = "end"      // it shall be deleted: Why, Detail
	VMFail     VMEventKind = "fail"     // it cannot be used (any more): Why, Detail
	VMDeleted  VMEventKind = "deleted"  // the provider has it no more
	VMInherits VMEventKind = "inherits" // its VM object goes to another row: Heir
)

// VMEvent is a fact about a VM. Kind says which of the other fields are set.
type VMEvent struct {
	Kind VMEventKind
	// Now is set by ApplyVM.
	Now time.Time

	ID        string
	VMKind    string
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
