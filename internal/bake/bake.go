// Package bake builds base images: disks with packages, tool chains, an agent program, a copy of each repository and
// warm caches, so that work on a VM made from one can start immediately.
//
// An image belongs to a configured group of repositories. It is built in a dedicated VM, which the fleet provides and
// which is always deleted: the operator's script runs as root, errand adds its own files, everything that VMs must not
// share is removed (host keys, credentials, traces of the first boot), and the disk of the powered-off VM becomes the
// image. No secret reaches the VM: repositories are copied as git bundles. The two newest images of each group are
// kept, so that a bad image has a predecessor.
//
// Start here: [Baker.Bake].
package bake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
)

// An Order requests the VM in which an image is built.
type Order struct {
	// Owner determines the VM's name; it is the same for every attempt at the same image.
	Owner string
	// Image, Type and Location are the provider's identifiers. The fleet chooses where one is empty.
	Image, Type, Location string
	// Labels are added to the fleet's own labels of the VM.
	Labels map[string]string
}

// VMs provides the VM in which an image is built.
type VMs interface {
	// Acquire returns a usable VM, creating it if necessary.
	Acquire(ctx context.Context, o Order) (fleet.VM, error)
	// Connect returns a live connection to the VM, as root or as the agent's user. VMs owns and closes it.
	Connect(ctx context.Context, vm string, root bool) (*remote.Client, error)
	// Release deletes the VM.
	Release(ctx context.Context, vm string, why fleet.Reason) error
	// Sweep deletes the VMs of interrupted bakes.
	Sweep(ctx context.Context) error
}

// Images creates, lists and deletes images. Every [fleet.Imager] implements it.
type Images interface {
	PowerOff(ctx context.Context, id string) error
	fleet.ImageMaker
	Images(ctx context.Context) ([]fleet.Image, error)
}

// A Source provides copies of repositories.
type Source interface {
	// Bundle returns a git bundle with all branches of a repository. The caller closes it.
	Bundle(ctx context.Context, repo string) (Bundle, error)
}

// A Bundle is an open git bundle of a repository.
type Bundle struct {
	io.ReadCloser
	Size int64 // in bytes
	// Head is the repository's default branch.
	Head string
}

// Config holds the dependencies of a [Baker].
type Config struct {
	Groups Groups
	VMs    VMs
	Images Images
	// Source may be nil: then no repository is copied and no cache is warmed.
	Source Source
	// Runner opens the errand-runner binary for a machine type such as amd64. If it is nil, the first task installs the
	// runner.
	Runner func(arch string) (data []byte, name string, err error)
	// Clean is a shell script that removes everything from a VM that VMs must not share. It must not replace its shell
	// with exec, because a sync follows.
	Clean string
	// Begin returns an error while the operator keeps VMs from being created. Otherwise the bake counts as work under way until begun
	// is called, when its VM is in the store or could not be created. nil always permits it.
	Begin func(ctx context.Context) (begun func(), err error)
	// Asked is the folder for requests of other processes on this host (see [Ask]). Empty disables requests.
	Asked string
	// Now, Wait and Log default to time.Now, a timer and no log.
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
	Log  zerolog.Logger
}

// A Baker bakes images, one per group at a time. It keeps no state of its own: the images' labels hold all of it.
type Baker struct{ cfg Config }

// New returns a [Baker].
func New(cfg Config) *Baker {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Wait == nil {
		cfg.Wait = clock.Sleep
	}
	return &Baker{cfg: cfg}
}

// Limits that the operator cannot configure.
const (
	imageTime   = 60 * time.Minute // until an image is available
	releaseTime = 2 * time.Minute
	pollEvery   = 10 * time.Second
)

// ErrUnknownGroup is returned for a group that is not in the configuration.
var ErrUnknownGroup = errors.New("no such group under `bake`")

// Bake builds a new image of a group and returns it when it is available. It then deletes all but the two newest images
// of the group. The VM is deleted even after an error; if that deletion fails, the fleet's reaper repeats it.
func (b *Baker) Bake(ctx context.Context, name string) (img fleet.Image, err error) {
	group, ok := b.cfg.Groups[name]
	if !ok {
		return fleet.Image{}, fmt.Errorf("bake %s: %w", name, ErrUnknownGroup)
	}
	begun, err := b.begin(ctx)
	if err != nil {
		return fleet.Image{}, fmt.Errorf("bake %s: %w", name, err)
	}
	log := b.cfg.Log.With().Str("group", name).Logger()
	began := b.cfg.Now()
	labels := b.labels(name, group, began)
	vm, err := b.cfg.VMs.Acquire(ctx, Order{
		Owner: "bake-" + name, Image: group.Image, Type: group.Type, Location: group.Location,
		Labels: map[string]string{fleet.LabelKind: fleet.ImageBaking, fleet.LabelGroup: name},
	})
	begun()
	if err != nil {
		return fleet.Image{}, fmt.Errorf("bake %s: %w", name, err)
	}
	log = log.With().Str("vm", vm.Name).Logger()
	log.Info().Msg("baking an image")
	defer func() {
		why := fleet.ReasonDone
		if err != nil {
			why = fleet.ReasonFailed
		}
		free, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		if rerr := b.cfg.VMs.Release(free, vm.Name, why); rerr != nil {
			err = errors.Join(err, rerr)
		}
	}()
	if err := b.fill(ctx, vm, group, log); err != nil {
		return fleet.Image{}, fmt.Errorf("bake %s: %w", name, err)
	}
	if img, err = b.createImage(ctx, vm.ID, labels); err != nil {
		return fleet.Image{}, fmt.Errorf("bake %s: %w", name, err)
	}
	log.Info().Str("image", img.ID).Int64("stored_mb", img.StoredMB).Dur("took", b.cfg.Now().Sub(began)).Msg("image available")
	if err := b.prune(ctx, name, log); err != nil {
		return img, fmt.Errorf("bake %s: the image is available, but deleting older ones failed: %w", name, err)
	}
	return img, nil
}

// begin returns an error if no VM may be created now. Otherwise the caller has to call begun once the VM is in the store,
// or will not be created.
func (b *Baker) begin(ctx context.Context) (begun func(), err error) {
	if b.cfg.Begin == nil {
		return func() {}, nil
	}
	return b.cfg.Begin(ctx)
}

// createImage creates an image from the disk of VM id and waits until the image is available.
func (b *Baker) createImage(ctx context.Context, id string, labels map[string]string) (fleet.Image, error) {
	if err := b.cfg.Images.PowerOff(ctx, id); err != nil {
		return fleet.Image{}, fmt.Errorf("power off: %w", err)
	}
	img, err := b.make(ctx, id, labels)
	if errors.Is(err, fleet.ErrUnknownOutcome) {
		if err := b.cfg.Wait(ctx, pollEvery); err != nil {
			return fleet.Image{}, err
		}
		img, err = b.make(ctx, id, labels) // adopts the image if the first call created it
	}
	if err != nil {
		return fleet.Image{}, fmt.Errorf("create the image: %w", err)
	}
	return img, nil
}

func (b *Baker) make(ctx context.Context, id string, labels map[string]string) (fleet.Image, error) {
	return fleet.MakeImage(ctx, b.cfg.Images, fleet.ImageSpec{VM: id, Labels: labels}, fleet.ImageWait{
		Since: b.cfg.Now(), Within: imageTime, First: pollEvery, Pause: pollEvery, Now: b.cfg.Now, Wait: b.cfg.Wait, Log: b.cfg.Log,
	})
}
