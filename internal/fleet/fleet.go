// Package fleet manages VMs: the interface of VM providers, and the policy for their use.
//
// A [Provider] creates, looks up, lists and deletes VMs and makes no decisions. A [Fleet] decides how a VM is named
// after its owner, how many VMs may exist, when an unowned VM is deleted, and which connection to it is live. Every
// call is safe to repeat: a VM is looked up by name before it is created, and deleting a missing VM is not an error.
//
// Start here: [Provider], then [Fleet] with its parts, and [Fleet.Acquire]. Package local is the provider for this
// host; package fleettest is the conformance suite for all providers.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/remote"
)

// Errors that callers check for. All of them arrive wrapped.
var (
	// ErrNotFound means that the provider has no VM of this name.
	ErrNotFound = errors.New("no such VM")
	// ErrNameTaken means that another VM of this name exists.
	ErrNameTaken = errors.New("VM name is taken")
	// ErrEnded means that the VM of this name has ended for good. The caller releases it and requests the next
	// generation.
	ErrEnded = errors.New("VM has ended")
	// ErrNoCapacity means that no further VM is possible now. The caller waits.
	ErrNoCapacity = errors.New("no VM available")
)

// LabelDeployment is the label with the deployment's name. A provider lists only VMs of its own deployment.
const LabelDeployment = "errand-deployment"

// LabelOwner and LabelGeneration identify the owner and its consecutive VMs.
const (
	LabelOwner      = "errand-owner"
	LabelGeneration = "errand-generation"
)

// Needs are a repository's minimum requirements on a VM. Zero means none.
type Needs struct {
	VCPU     int
	MemoryMB int
	DiskGB   int
}

// Spec describes a VM to create.
type Spec struct {
	// Name is the key: one VM per name. See [ValidName].
	Name string
	// Labels are stored with the VM. The provider sets LabelDeployment.
	Labels map[string]string
	Needs  Needs
	// Image is a base image of the provider; empty selects its default.
	Image string
	// Offer is the type and location to order from a [Market]. Only Type and Location are used.
	Offer Offer
	// First states that no VM of this name was ever ordered, so that Create need not look for one.
	First bool
	// UserData is passed to cloud-init at the first boot. Its only secret is the first host key, which is replaced as
	// soon as the VM is up.
	UserData []byte
}

// State is the provider's view of a VM's life.
type State string

const (
	// StateCreating means that it exists but has not been up yet. Create continues with it.
	StateCreating State = "creating"
	// StateRunning means that it is up; its SSH server responds now or soon.
	StateRunning State = "running"
	// StateOff means that the fleet has powered it off to create an [Image]. Imager.PowerOn starts it.
	StateOff State = "off"
	// StateEnded means that it ended without a request and only its remains exist, until Delete.
	StateEnded State = "ended"
)

// Isolation describes the separation of a VM's processes from the host that runs errand.
type Isolation string

const (
	// IsolationVM is a separate machine.
	IsolationVM Isolation = "vm"
	// IsolationFull means separate files, processes and network.
	IsolationFull Isolation = "full"
	// IsolationNone means none. Real agents may not run here without the operator's permission.
	IsolationNone Isolation = "none"
)

// Keys of VM.Facts.
const (
	// FactRunner is the path of an errand-runner that the VM already has.
	FactRunner = "runner"
	// FactHome is the login's home directory inside the VM.
	FactHome = "home"
	// FactRunnerLogin is a separate login that owns run records and the tether, which the agent's user cannot access.
	// It may sudo to the agent's user.
	FactRunnerLogin = "runner-login"
	// FactRunnerDir is the folder for the runner's programs: both users may run them, but the agent's user cannot
	// change them.
	FactRunnerDir = "runner-dir"
	// FactLog is the provider's log of this VM, on this host.
	FactLog = "log"
)

// A VM is a provider's data on one VM.
type VM struct {
	Name     string
	Labels   map[string]string
	State    State
	Endpoint remote.Endpoint
	// Kind is the provider's name for its kind, such as "bwrap" or a server type.
	Kind      string
	Isolation Isolation
	// ID is the provider's ID, empty if the name is the only key.
	ID string
	// Location and the price of one started hour; see [Offer]. Zero for VMs that cost nothing.
	Location  string
	MicroHour int64
	Currency  string
	// Gen numbers the VMs of an owner; Paid is the billing span of MicroHour. A [Fleet] sets both.
	Gen  int
	Paid time.Duration
	// TetherPort is the loopback port in the VM on which the tether listens.
	TetherPort int
	// CreatedAt is by the provider's clock; billing spans start at it.
	CreatedAt time.Time
	// Ended and Detail give the reason if State is StateEnded.
	Ended  Reason
	Detail string
	// Facts are further data under the Fact keys.
	Facts map[string]string
}

// A Description is a provider's description of itself, for status pages.
type Description struct {
	Provider  string
	Kind      string
	Isolation Isolation
	// Notes are sentences for the operator: why no better isolation is available, what to install, resource limits.
	Notes []string
	// Choices may be ordered, in order of preference, if the provider's VMs cost money.
	Choices []Choice
}

// A Provider is a source of VMs. Implementations are safe for concurrent use, keep no essential data in memory, and see
// only VMs of their own deployment.
type Provider interface {
	// Name is the provider's name in the configuration.
	Name() string
	// Create returns the VM of this name, creating it if there is none. It adopts an existing VM if its labels match,
	// otherwise the error is ErrNameTaken; for a VM that has ended it is ErrEnded. After an unknown outcome it may be
	// called again.
	Create(ctx context.Context, spec Spec) (VM, error)
	// Get returns one VM, or ErrNotFound. With providers whose VMs end when the orchestrator is gone, Get and List also
	// signal that it is alive.
	Get(ctx context.Context, name string) (VM, error)
	// List returns all VMs of this deployment including ended ones, or an error. It never returns an incomplete list.
	List(ctx context.Context) ([]VM, error)
	// Delete ends a VM with all its processes and files and logs the reason. Deleting a missing VM is not an error.
	Delete(ctx context.Context, name string, why Reason) error
	// Describe describes the provider's VMs.
	Describe(ctx context.Context) (Description, error)
}

const maxNameLen = 63

// ValidName returns an error unless name is 1 to 63 lower-case letters, digits and inner hyphens, which every provider
// accepts.
func ValidName(name string) error {
	if name == "" || len(name) > maxNameLen {
		return fmt.Errorf("VM name %q: must have 1 to %d characters", name, maxNameLen)
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
