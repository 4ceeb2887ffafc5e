// Package bake makes base images: disks with packages, tool chains, an agent's program, a copy of each
// repository and warm caches, so that a VM made from one can begin at once.
//
// An image belongs to a group of repositories of the configuration. It is made in a VM of its own, which the
// fleet provides and which is deleted whatever happens: the operator's script runs as root, then what
// errand adds, then everything is taken off that one VM must not share with another (host keys, credentials, the traces of
// its first boot), and the disk at rest becomes the image. Nothing secret ever reaches the VM: repositories come as
// git bundles. Of each group the last two images are kept, so that one that turns out bad has a predecessor.
//
// Start reading at Baker.Bake, which is the order of all that.
package bake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
)

// Order asks for the VM in which an image is made.
type Order struct {
	// Owner is what the VM's name is derived from: the same for every try at the same image.
	Owner string
	// Image, Type and Location are the provider's words; empty ones are the fleet's to choose.
	Image, Type, Location string
	// Labels are put on the VM besides the fleet's own.
	Labels map[string]string
}

// VMs provides the VM in which an image is made.
type VMs interface {
	// Acquire returns a VM that can be used, making it if there is none.
	Acquire(ctx context.Context, o Order) (fleet.VM, error)
	// Connect returns the live connection to it, as root or as the agent's user. It belongs to VMs.
	Connect(ctx context.Context, vm string, root bool) (*remote.Client, error)
	// Release deletes it.
	Release(ctx context.Context, vm string, why fleet.Reason) error
	// Sweep deletes the VMs of bakings that somebody began and did not end.
	Sweep(ctx context.Context) error
}

// Images makes and keeps images. Every fleet.Imager is one.
type Images interface {
	PowerOff(ctx context.Context, id string) error
	fleet.ImageMaker
	Images(ctx context.Context) ([]fleet.Image, error)
}

// Source gives copies of repositories.
type Source interface {
	// Bundle returns a git bundle with all branches of a repository, which the caller closes.
	Bundle(ctx context.Context, repo string) (Bundle, error)
}

// Bundle is a repository as a file.
type Bundle struct {
	io.ReadCloser
	Size int64 // in bytes
	// Head is its default branch.
	Head string
}

// Config is what a Baker is made of.
type Config struct {
	Groups Groups
	VMs    VMs
	Images Images
	// Source may be nil: then no repository is copied, and nothing is warmed.
	Source Source
	// Runner opens the runner for a machine type such as amd64; nil leaves it to the first task.
	Runner func(arch string) (data []byte, name string, err error)
	// Clean is a shell script that takes everything off a VM which another one must not have. It must not replace its
	// shell by exec, for a sync follows.
	Clean string
	// Asked is the folder by which others on this host ask for an image (see Ask); empty for none.
	Asked string
	// Now, Wait and Log are the clock, how to wait, and where to tell; time.Now and a timer by default.
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
	Log  zerolog.Logger
}

// Baker bakes images, one of a group at a time. It keeps nothing: what is there is in the images' labels.
type Baker struct{ cfg Config }

// New returns a Baker.
func New(cfg Config) *Baker {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Wait == nil {
		cfg.Wait = wait
	}
	return &Baker{cfg: cfg}
}

// wait waits, or returns when ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Bounds of what is not the operator's to bound.
const (
	imageTime   = 60 * time.Minute // until an image is available
	releaseTime = 2 * time.Minute
	pollEvery   = 10 * time.Second
)

// ErrUnknownGroup: the configuration has no such group.
var ErrUnknownGroup = errors.New("no such group under `bake`")

// Bake makes a new image of a group and returns it when it is available. Older images than the one before
// are deleted then. The VM is deleted whatever happens; if that fails, too, the fleet's reaper will do it.
func (b *Baker) Bake(ctx context.Context, name string) (img fleet.Image, err error) {
	group, ok := b.cfg.Groups[name]
	if !ok {
		return fleet.Image{}, fmt.Errorf("bake %s: %w", name, ErrUnknownGroup)
	}
	log := b.cfg.Log.With().Str("group", name).Logger()
	began := b.cfg.Now()
	labels := b.labels(name, group, began)
	vm, err := b.cfg.VMs.Acquire(ctx, Order{
		Owner: "bake-" + name, Image: group.Image, Type: group.Type, Location: group.Location,
		Labels: map[string]string{fleet.LabelKind: fleet.ImageBaking, fleet.LabelGroup: name},
	})
	if err != nil {
		return fleet.Image{}, fmt.Errorf("bake %s: %w", name, err)
	}
	log = log.With().Str("vm", vm.Name).Logger()
	log.Info().Msg("baking begins")
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
	if img, err = b.take(ctx, vm.ID, labels); err != nil {
		return fleet.Image{}, fmt.Errorf("bake %s: %w", name, err)
	}
	log.Info().Str("image", img.ID).Int64("stored_mb", img.StoredMB).Dur("took", b.cfg.Now().Sub(began)).Msg("the image is available")
	if err := b.prune(ctx, name, log); err != nil {
		return img, fmt.Errorf("bake %s: the image is there, but older ones are, too: %w", name, err)
	}
	return img, nil
}

// take makes the image of the disk of the VM with an id and waits until it can be used.
func (b *Baker) take(ctx context.Context, id string, labels map[string]string) (fleet.Image, error) {
	if err := b.cfg.Images.PowerOff(ctx, id); err != nil {
		return fleet.Image{}, fmt.Errorf("bring the disk to rest: %w", err)
	}
	img, err := b.make(ctx, id, labels)
	if errors.Is(err, fleet.ErrUnknownOutcome) {
		if err := b.cfg.Wait(ctx, pollEvery); err != nil {
			return fleet.Image{}, err
		}
		img, err = b.make(ctx, id, labels) // adopts what the first call has made
	}
	if err != nil {
		return fleet.Image{}, fmt.Errorf("make the image: %w", err)
	}
	return img, nil
}

func (b *Baker) make(ctx context.Context, id string, labels map[string]string) (fleet.Image, error) {
	return fleet.MakeImage(ctx, b.cfg.Images, fleet.ImageSpec{VM: id, Labels: labels}, fleet.ImageWait{
		Since: b.cfg.Now(), Within: imageTime, First: pollEvery, Pause: pollEvery, Now: b.cfg.Now, Wait: b.cfg.Wait, Log: b.cfg.Log,
	})
}
