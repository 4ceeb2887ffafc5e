// Package fleet is where the VMs are: what a provider of VMs has to offer, and
// the little policy around it.
//
// A Provider states facts: it creates, looks up, lists and deletes VMs, and never
// decides. Fleet decides: how a VM is named after its owner, how many there may be
// at once, when one that nobody owns is deleted, and which connection to it is the
// live one. Every call is safe to repeat: a VM is looked for by its name before it
// is created, and deleting what is gone is no error.
//
// Start reading at Provider, then Fleet.Acquire. Package local is the provider on
// this host; package fleettest is the conformance suite that every provider runs.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/remote"
)

// Errors on which a caller decides. All of them arrive wrapped.
var (
	// ErrNotFound: the provider has no VM of this name.
	ErrNotFound = errors.New("no such VM")
	// ErrNameTaken: a VM of this name exists and is not the one asked for.
	ErrNameTaken = errors.New("VM name is taken")
	// ErrEnded: the VM of this name existed and has ended; it does not come back.
	// The caller releases it and asks for the next generation.
	ErrEnded = errors.New("VM has ended")
	// ErrNoCapacity: there can be no further VM at the moment. The caller waits.
	ErrNoCapacity = errors.New("no VM to be had")
)

// LabelDeployment is the label whose value is the deployment's name. A provider
// lists only VMs that carry its own.
const LabelDeployment = "errand-deployment"

// LabelOwner and LabelGeneration say whose VM it is and which in a row.
const (
	LabelOwner      = "errand-owner"
	LabelGeneration = "errand-generation"
)

// Needs are what a repository asks of a VM. Zero means no wish.
type Needs struct {
	VCPU     int
	MemoryMB int
	DiskGB   int
}

// Spec asks for a VM.
type Spec struct {
	// Name is the key: one VM per name. ValidName says what it may be.
	Name string
	// Labels are kept with the VM. LabelDeployment is set by the provider.
	Labels map[string]string
	Needs  Needs
	// Image is a base image of the provider; empty is its default.
	Image string
	// Offer is the type and place to order, for a Market. Only Type and Location count.
	Offer Offer
	// First says that no VM of this name was ever asked for: Create need not search for one before it makes it.
	First bool
	// UserData is what cloud-init gets at the first boot. It holds no secret but the first host key,
	// which is replaced as soon as the VM is up.
	UserData []byte
}

// State is what a provider knows about a VM's life.
type State string

const (
	// StateCreating: it exists, but has not been up yet. Create goes on with it.
	StateCreating State = "creating"
	// StateRunning: it is up; its SSH answers, or soon will.
	StateRunning State = "running"
	// StateOff: we have powered it off, for an Image. It is there, and Imager.PowerOn starts it.
	StateOff State = "off"
	// StateEnded: it has ended by itself and only its remains exist, until Delete.
	StateEnded State = "ended"
)

// Isolation says what keeps a VM's processes from the host that runs errand.
type Isolation string

const (
	// IsolationVM: another machine.
	IsolationVM Isolation = "vm"
	// IsolationFull: own files, processes and network.
	IsolationFull Isolation = "full"
	// IsolationNone: nothing. No real agent may run here without the operator's leave.
	IsolationNone Isolation = "none"
)

// UnsandboxedError refuses a real agent in a VM without isolation.
type UnsandboxedError struct {
	VM, Kind string
}

func (e *UnsandboxedError) Error() string {
	return fmt.Sprintf("VM %s (%s) does not isolate an agent from its host", e.VM, e.Kind)
}

// Hint says what the operator can do about it.
func (e *UnsandboxedError) Hint() string {
	return "Install bubblewrap on the host (`errand doctor` says what is missing), or set `local.allow_unsandboxed: true`."
}

// AllowAgent returns an *UnsandboxedError unless a real agent may run in vm: it is
// isolated, or the operator has given leave (`local.allow_unsandboxed`). The
// scripted agent of the demo need not ask.
func AllowAgent(vm VM, allowUnsandboxed bool) error {
	switch vm.Isolation {
	case IsolationVM, IsolationFull:
		return nil
	}
	if allowUnsandboxed {
		return nil
	}
	return &UnsandboxedError{VM: vm.Name, Kind: vm.Kind}
}

// Fact keys of VM.Facts.
const (
	// FactRunner is the path of an errand-runner that the VM already has.
	FactRunner = "runner"
	// FactHome is the login's home as the VM sees it.
	FactHome = "home"
	// FactRunnerLogin is the login that keeps the records of runs and the tether, where that is another user than the agent's,
	// who may do nothing of what this one may. It may become the agent's user by sudo.
	FactRunnerLogin = "runner-login"
	// FactRunnerDir is where the runner's programs are to lie there: both users may run them, the agent's may not
	// change them.
	FactRunnerDir = "runner-dir"
	// FactLog is the provider's own log of this VM, on this host.
	FactLog = "log"
)

// VM is a provider's knowledge of one VM.
type VM struct {
	Name     string
	Labels   map[string]string
	State    State
	Endpoint remote.Endpoint
	// Kind is the provider's word for what it is, such as "bwrap" or a server type.
	Kind      string
	Isolation Isolation
	// ID is the provider's own id, empty where the name is all there is.
	ID string
	// Location, and what one started hour costs: see Offer. Zero for VMs that cost nothing.
	Location  string
	MicroHour int64
	Currency  string
	// Gen numbers the VMs of an owner, and Paid is the span that MicroHour is for; a Fleet sets them.
	Gen  int
	Paid time.Duration
	// TetherPort is the loopback port in the VM that the tether's end listens on.
	TetherPort int
	// CreatedAt is by the provider's clock; paid hours count from it.
	CreatedAt time.Time
	// Ended and Detail say why, if State is StateEnded.
	Ended  Reason
	Detail string
	// Facts are what else is known, under the Fact keys.
	Facts map[string]string
}

// Description is a provider's account of itself, for status and doctor.
type Description struct {
	Provider  string
	Kind      string
	Isolation Isolation
	// Notes are sentences for the operator: why no better kind, what to install, how much a VM may use.
	Notes []string
	// Choices are what may be ordered, in the order of preference, for a provider whose VMs cost money.
	Choices []Choice
}

// Provider is where VMs come from. Implementations are safe for concurrent use,
// keep nothing that matters in memory, and see only VMs of their own deployment.
type Provider interface {
	// Name is the word for it in the configuration.
	Name() string
	// Create returns the VM of this name, making it if there is none. A VM that
	// exists is adopted if its labels fit, else the error is ErrNameTaken; one that
	// has ended is ErrEnded. After an unknown outcome it may be called again.
	Create(ctx context.Context, spec Spec) (VM, error)
	// Get returns one VM, ErrNotFound if there is none. Where VMs end by themselves
	// when the orchestrator is gone, Get and List are the sign that it is not.
	Get(ctx context.Context, name string) (VM, error)
	// List returns all VMs of this deployment, ended ones too, or an error: a list
	// that may be incomplete is never returned.
	List(ctx context.Context) ([]VM, error)
	// Delete ends a VM with all its processes and files, and remembers why in the
	// log. Deleting what does not exist is no error.
	Delete(ctx context.Context, name string, why Reason) error
	// Describe says what a VM of this provider is.
	Describe(ctx context.Context) (Description, error)
}

const maxNameLen = 63

// ValidName returns an error unless name is 1 to 63 lower-case letters, digits and
// inner hyphens, which is what every provider can carry.
func ValidName(name string) error {
	if name == "" || len(name) > maxNameLen {
		return fmt.Errorf("VM name %q: has to have 1 to %d characters", name, maxNameLen)
	}
	for i, c := range []byte(name) {
		inner := i > 0 && i < len(name)-1
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-' && inner:
		default:
			return fmt.Errorf("VM name %q: only a-z, 0-9 and inner hyphens", name)
		}
	}
	return nil
}
