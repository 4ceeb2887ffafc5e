package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Further errors of providers that live behind somebody's API. All of them arrive wrapped.
var (
	// ErrUnknownOutcome: nobody knows whether the call had its effect. The caller looks (Get, List)
	// before it does anything else.
	ErrUnknownOutcome = errors.New("outcome unknown")
	// ErrQuota: the account's own limit is reached, on VMs, CPUs or addresses; which one is not known. Another
	// place will not help, a smaller type may.
	ErrQuota = errors.New("account limit reached")
	// ErrLimited: too many calls. Wait before the next one, of whatever kind.
	ErrLimited = errors.New("too many calls to the provider")
	// ErrBusy: something else is being done to the VM. Try again in some seconds.
	ErrBusy = errors.New("VM is busy")
	// ErrUnauthorized: the credential is refused. Nothing that is missing from a list is gone.
	ErrUnauthorized = errors.New("provider refuses the credential")
	// ErrMissing: the provider did not find a VM that it had, or says that it has ended, and has not said so again a
	// while later. The VM may well be there: nothing is to be concluded yet.
	ErrMissing = errors.New("VM was not found; looking again")
	// ErrInvalid: the provider will never take this; a person has to change the configuration.
	ErrInvalid = errors.New("provider refuses the request")
)

// Labels of what a provider keeps for us, besides LabelDeployment, LabelOwner and LabelGeneration.
const (
	// LabelRepo is the id of the repository that a VM or image serves.
	LabelRepo = "errand-repo"
	// LabelSleep is when the VM was put to sleep of which a sleep image was made, in Unix nanoseconds: an image of an
	// earlier sleep has the same owner and generation.
	LabelSleep = "errand-sleep"
	// LabelKind is what an image is for: see ImageBase and ImageSleep.
	LabelKind = "errand-kind"
	// LabelGroup is the group of repositories that a base image was baked for.
	LabelGroup = "errand-group"
	// LabelNotAfter is the Unix time in seconds after which the thing is garbage, whoever owns it.
	LabelNotAfter = "errand-not-after"
)

// What an image is for, as the value of LabelKind.
const (
	ImageBase  = "base"
	ImageSleep = "sleep"
	// ImageBaking labels the VM in which a base image is made, until it is available.
	ImageBaking = "baking"
)

// Offer is a kind of VM that can be ordered in a place, as the provider says now.
type Offer struct {
	Type     string // the provider's word, such as cx43
	Location string // likewise, such as fsn1
	Arch     string // amd64 or arm64
	VCPU     int
	MemoryMB int
	DiskGB   int
	// MicroHour is what one started hour costs with what always comes along (an address), gross, in
	// millionths of Currency; MicroMonth is the most that a month costs.
	MicroHour  int64
	MicroMonth int64
	Currency   string
	// Available is the provider's claim; it may be wrong either way.
	Available bool
	// GoneAfter is when it cannot be ordered any more, zero if that is not known.
	GoneAfter time.Time
}

// Market is a Provider whose VMs cost money. Each is an object with an id of its own, and only the id tells it from
// another of its name: an order that was carried out late may have the name of a VM that is gone.
type Market interface {
	Provider
	// GetByID is Get for the VM with an id, whatever its name is by now.
	GetByID(ctx context.Context, id string) (VM, error)
	// DeleteByID is Delete for the VM with an id. It returns nil only when the provider has confirmed, when asked for
	// that id, that the VM is gone.
	DeleteByID(ctx context.Context, id string, why Reason) error
	// Offers lists everything that can be ordered, with today's prices. It may be an hour old.
	Offers(ctx context.Context) ([]Offer, error)
	// ImageMicroGBMonth is what a gigabyte of an image costs in a month, in millionths.
	ImageMicroGBMonth(ctx context.Context) (int64, error)
}

// Image is a disk that VMs are made from.
type Image struct {
	ID     string
	Labels map[string]string
	// Ready is false while it is being made, and for one that failed (then Failed is set).
	Ready, Failed bool
	// StoredMB is what is paid for; DiskGB is the least disk of a VM made from it.
	StoredMB  int64
	DiskGB    int
	Arch      string
	Location  string
	CreatedAt time.Time
}

// Imager is a Provider that makes images of VMs. Images outlive their VMs. VMs and images are named by their ids.
type Imager interface {
	Provider
	// Image begins to make an image of a VM that is powered off, and returns it before it is ready.
	// An image of that VM with exactly these labels is adopted instead of making a second one, unless spec.First is set.
	// ErrBusy says that nothing was begun.
	Image(ctx context.Context, spec ImageSpec) (Image, error)
	// ImageByID returns one image, ErrNotFound if there is none of this deployment.
	ImageByID(ctx context.Context, id string) (Image, error)
	// Images lists this deployment's images, or fails: never a part.
	Images(ctx context.Context) ([]Image, error)
	// DeleteImage deletes one; deleting what is gone is no error.
	DeleteImage(ctx context.Context, id string) error
	// PowerOff has the VM's disk at rest: asked first, cut off if it does not obey within a minute.
	PowerOff(ctx context.Context, id string) error
	// PowerOn starts it again.
	PowerOn(ctx context.Context, id string) error
}

// Rebuilder is a Provider that can give a VM a fresh disk under a new name, within the hour that is paid.
type Rebuilder interface {
	Provider
	// Rebuild turns the VM named from into the VM of spec: its name and labels first, in one call, then
	// a fresh disk with the image and the user data of spec. Until it runs it is StateCreating. After an
	// unknown outcome it may be called again.
	Rebuild(ctx context.Context, from string, spec Spec) (VM, error)
}

// Stray is something in the provider's account that costs money, or will, and is no VM.
type Stray struct {
	Kind      string // volume, primary_ip, ssh_key, firewall, image, server
	ID        string
	Name      string
	Labels    map[string]string
	CreatedAt time.Time
	// Ours says that it carries this deployment's label. Others are reported and never touched.
	Ours bool
}

// UnlistedError says, by kind, why some kinds of things could not be listed.
type UnlistedError struct{ Kinds map[string]error }

func (e *UnlistedError) Error() string {
	text := "not listed"
	for i, kind := range slices.Sorted(maps.Keys(e.Kinds)) {
		text += fmt.Sprintf("%s %s (%v)", map[bool]string{true: ":", false: ","}[i == 0], kind, e.Kinds[kind])
	}
	return text
}

// Unwrap returns the errors in the order of their kinds.
func (e *UnlistedError) Unwrap() (list []error) {
	for _, kind := range slices.Sorted(maps.Keys(e.Kinds)) {
		list = append(list, e.Kinds[kind])
	}
	return list
}

// Auditor is a Provider that can list everything in its account.
type Auditor interface {
	Provider
	// Strays lists what is not a VM of this deployment: our keys, addresses and volumes that nothing
	// uses, and whatever carries no label of ours. The list of each kind is whole or left out; with an
	// *UnlistedError, which names the kinds that are left out, the others are returned as well.
	Strays(ctx context.Context) ([]Stray, error)
	// DeleteStray deletes one that is Ours; it refuses others.
	DeleteStray(ctx context.Context, s Stray) error
}
