package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Further errors of providers with a remote API. All of them arrive wrapped.
var (
	// ErrUnknownOutcome means that the call may or may not have taken effect. The caller checks with Get or List before
	// it does anything else.
	ErrUnknownOutcome = errors.New("outcome unknown")
	// ErrQuota means that a limit of the account on VMs, CPUs or addresses is reached; which one is unknown. Another
	// location does not help, a smaller type may.
	ErrQuota = errors.New("account limit reached")
	// ErrLimited means that the API's rate limit is reached. Wait before any further call.
	ErrLimited = errors.New("too many calls to the provider")
	// ErrBusy means that another action on the VM is in progress. Retry after some seconds.
	ErrBusy = errors.New("VM is busy")
	// ErrUnauthorized means that the provider refuses the credential. Nothing may be concluded from missing VMs.
	ErrUnauthorized = errors.New("provider refuses the credential")
	// ErrMissing means that the provider did not find a known VM, or reports that it has ended, and this has not been
	// confirmed by a later check. The VM may still exist.
	ErrMissing = errors.New("VM was not found; checking again")
	// ErrInvalid means that the provider will always refuse the request: the configuration must change.
	ErrInvalid = errors.New("provider refuses the request")
)

// Labels of the provider's resources, in addition to LabelDeployment, LabelOwner and LabelGeneration.
const (
	// LabelRepo is the ID of the repository that a VM or image serves.
	LabelRepo = "errand-repo"
	// LabelSleep is the time in Unix nanoseconds at which the VM of an image was suspended. Images of earlier
	// suspensions have the same owner and generation.
	LabelSleep = "errand-sleep"
	// LabelKind is the purpose of an image: ImageBase or ImageSnapshot.
	LabelKind = "errand-kind"
	// LabelGroup is the group of repositories for which a base image was baked.
	LabelGroup = "errand-group"
	// LabelNotAfter is the Unix time in seconds after which the resource may be deleted regardless of its owner.
	LabelNotAfter = "errand-not-after"
)

// Purposes of an image, as values of LabelKind.
const (
	ImageBase     = "base"
	ImageSnapshot = "sleep"
	// ImageBaking labels the VM in which a base image is built, until the image is available.
	ImageBaking = "baking"
)

// An Offer is a VM type that can be ordered in a location, according to the provider's current data.
type Offer struct {
	Type     string // provider's name, such as cx43
	Location string // provider's name, such as fsn1
	Arch     string // amd64 or arm64
	VCPU     int
	MemoryMB int
	DiskGB   int
	// MicroHour is the gross price of one started hour in millionths of Currency, including mandatory extras (an
	// address). MicroMonth is the maximum price of a month.
	MicroHour  int64
	MicroMonth int64
	Currency   string
	// Available is the provider's statement, which may be wrong.
	Available bool
	// GoneAfter is the time after which it can no longer be ordered, zero if unknown.
	GoneAfter time.Time
}

// A Market is a [Provider] whose VMs cost money. Each VM has a unique ID. Only the ID distinguishes VMs of the same
// name: an order that took effect late may have the name of a deleted VM.
type Market interface {
	Provider
	// GetByID is Get by ID, independent of the VM's current name.
	GetByID(ctx context.Context, id string) (VM, error)
	// DeleteByID is Delete by ID. It returns nil only after the provider has confirmed that the VM with this ID does
	// not exist.
	DeleteByID(ctx context.Context, id string, why Reason) error
	// Offers lists everything that can be ordered, with current prices. The list may be up to an hour old.
	Offers(ctx context.Context) ([]Offer, error)
	// ImageMicroGBMonth is the price of one gigabyte of an image per month, in millionths.
	ImageMicroGBMonth(ctx context.Context) (int64, error)
}

// An Image is a disk from which VMs are created.
type Image struct {
	ID     string
	Labels map[string]string
	// Ready is false while the image is being created, and for a failed one, which has Failed set.
	Ready, Failed bool
	// StoredMB is the billed size; DiskGB is the smallest disk of a VM created from it.
	StoredMB  int64
	DiskGB    int
	Arch      string
	Location  string
	CreatedAt time.Time
}

// A NetworkCloser is a provider that can restrict the outgoing traffic of its VMs to their tether. VMs whose first boot
// installs packages have an open network until it has finished; no code of a repository is on them before.
type NetworkCloser interface {
	Provider
	// CloseNetwork restricts the outgoing traffic of a VM whose first boot has finished, if the configuration says so.
	// It returns nil once the restriction is in effect, and may be repeated at any time. ErrBusy means try again.
	CloseNetwork(ctx context.Context, id string) error
	// OpensNetwork reports whether VMs from an image have an open network until CloseNetwork; empty is the default image.
	OpensNetwork(image string) bool
}

// An Imager is a [Provider] that creates images of VMs. Images outlive their VMs. VMs and images are identified by ID.
type Imager interface {
	Provider
	// SetupUser is the login with root's rights on a new VM, as which base images are baked.
	SetupUser() string
	// Image starts creating an image of a powered-off VM and returns it before it is ready. Unless spec.First is set,
	// it adopts an existing image of that VM with exactly these labels. ErrBusy means that nothing was started.
	Image(ctx context.Context, spec ImageSpec) (Image, error)
	// ImageByID returns one image, or ErrNotFound if this deployment has none with this ID.
	ImageByID(ctx context.Context, id string) (Image, error)
	// Images lists this deployment's images completely, or returns an error.
	Images(ctx context.Context) ([]Image, error)
	// DeleteImage deletes an image. Deleting a missing image is not an error.
	DeleteImage(ctx context.Context, id string) error
	// PowerOff shuts the VM down, and cuts the power if that takes over a minute.
	PowerOff(ctx context.Context, id string) error
	// PowerOn starts the VM.
	PowerOn(ctx context.Context, id string) error
}

// A Rebuilder is a [Provider] that can give a VM a fresh disk and a new name within the paid hour.
type Rebuilder interface {
	Provider
	// Rebuild turns the VM named from into the VM of spec: first it changes the name and labels in one call, then it
	// rebuilds the disk with the image and user data of spec. Until the VM runs its state is StateCreating. After an
	// unknown outcome Rebuild may be called again.
	Rebuild(ctx context.Context, from string, spec Spec) (VM, error)
}

// An UnmanagedResource is a resource in the provider's account, other than a VM, that costs money or may do so.
type UnmanagedResource struct {
	Kind      string // volume, primary_ip, ssh_key, firewall, image, server
	ID        string
	Name      string
	Labels    map[string]string
	CreatedAt time.Time
	// HasOwnLabel states that it has this deployment's label. Others are reported and never changed.
	HasOwnLabel bool
}

// UnlistedError holds the errors of kinds of resources that could not be listed.
type UnlistedError struct{ Kinds map[string]error }

func (e *UnlistedError) Error() string {
	text := "not listed"
	for i, kind := range slices.Sorted(maps.Keys(e.Kinds)) {
		text += fmt.Sprintf("%s %s (%v)", map[bool]string{true: ":", false: ","}[i == 0], kind, e.Kinds[kind])
	}
	return text
}

// Unwrap returns the errors ordered by kind.
func (e *UnlistedError) Unwrap() (list []error) {
	for _, kind := range slices.Sorted(maps.Keys(e.Kinds)) {
		list = append(list, e.Kinds[kind])
	}
	return list
}

// An Auditor is a [Provider] that can list everything in its account.
type Auditor interface {
	Provider
	// ListUnmanaged lists everything that is not a VM of this deployment: unused keys, addresses and volumes of this
	// deployment, and all resources without its label. The list of each kind is complete or omitted. With an
	// *[UnlistedError], which names the omitted kinds, the other kinds are returned as well.
	ListUnmanaged(ctx context.Context) ([]UnmanagedResource, error)
	// DeleteUnmanaged deletes a resource that HasOwnLabel and refuses others.
	DeleteUnmanaged(ctx context.Context, s UnmanagedResource) error
}
