package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// A suspender stores the disks of resting VMs as images, and starts VMs again whose image failed.
type suspender struct {
	*core
	inventory *inventory
	images    *imageStore
	limit     *accountLimit
	deletion  *deleter
}

// snapshot implements [Fleet.Snapshot].
func (s *suspender) snapshot(ctx context.Context, name string) (Image, error) {
	row, err := s.rows.Get(ctx, name)
	var img Image
	switch {
	case err != nil:
	case row.Phase == vm.Asleep:
		img = s.sleepImage(ctx, row)
	case row.Phase.Over():
		err = fmt.Errorf("%w: %s %s", ErrEnded, row.EndReason, row.Detail)
	default:
		img, err = s.suspend(ctx, row)
	}
	if err != nil {
		return Image{}, fmt.Errorf("snapshot VM %s: %w", name, err)
	}
	return img, nil
}

// sleepImage returns the image of a suspended VM, with only its ID if the provider returns no more.
func (s *suspender) sleepImage(ctx context.Context, row vm.Row) Image {
	if imager, ok := s.provider.(Imager); ok {
		img, err := imager.ImageByID(ctx, row.Snapshot)
		if err == nil {
			return img
		}
		s.cfg.Log.Warn().Err(err).Str("vm", row.Name).Str("image", row.Snapshot).Msg("failed to read the size of an image")
	}
	return Image{ID: row.Snapshot}
}

func (s *suspender) suspend(ctx context.Context, row vm.Row) (img Image, err error) {
	imager, ok := s.provider.(Imager)
	if !ok {
		return img, fmt.Errorf("%w: this provider makes no images", ErrInvalid)
	}
	row, first, err := s.apply(ctx, row.Name, vm.Event{Kind: vm.Sleep})
	if err != nil {
		return img, err
	}
	if row.Phase != vm.Sleeping {
		return img, fmt.Errorf("%w: it is %s", ErrBusy, row.Phase)
	}
	s.suspendOrRetry(ctx, row)
	s.inventory.dropCached(row.Name)
	if err = imager.PowerOff(ctx, row.ID); err == nil {
		if img, err = s.ensureImage(ctx, imager, row, first); err == nil {
			_, _, err = s.apply(ctx, row.Name, vm.Event{Kind: vm.Imaged, Snapshot: img.ID, EndReason: ReasonAsleep})
			s.images.bookImages(ctx, []Image{img}, false) // it may be deleted before the reapers list it
			return img, err
		}
	}
	if errors.Is(err, ErrNotFound) {
		return img, s.inventory.checkMissing(ctx, row, err)
	}
	if ctx.Err() != nil || errors.Is(err, ErrUnknownOutcome) {
		return img, err // the next call continues
	}
	if errors.Is(err, ErrQuota) {
		s.limit.raiseAlarm(err)
	}
	_, _, restErr := s.apply(ctx, row.Name, vm.Event{Kind: vm.Rest})
	return img, errors.Join(err, imager.PowerOn(ctx, row.ID), restErr)
}

const (
	// syncTimeout limits one attempt to sync a VM's disk.
	syncTimeout = time.Minute
	// syncTries is the number of attempts; the pause between them starts at two ticks and doubles.
	syncTries = 4
)

// suspendOrRetry makes a VM write its disk before it is powered off, because power-off may have to cut the power. While
// that fails the VM stays on and sync retries, whatever state the provider reports: a single response may be wrong. A
// VM that stays unreachable is powered off in the end: its disk contains all of its work, and a clean shutdown writes
// it.
func (s *suspender) suspendOrRetry(ctx context.Context, row vm.Row) {
	if s.cfg.Contact == nil {
		return
	}
	for try := range syncTries {
		off, err := s.syncOnce(ctx, row)
		if err == nil {
			return
		}
		last := try == syncTries-1 || off && try > 0
		s.cfg.Log.Warn().Err(err).Str("vm", row.Name).Bool("retrying", !last).Msg("failed to sync the disk")
		if last || s.sleep(ctx, s.ticks(2)<<try) != nil {
			return
		}
	}
}

// syncOnce makes one attempt of sync. It reports whether the VM is not running according to the provider.
func (s *suspender) syncOnce(ctx context.Context, row vm.Row) (off bool, err error) {
	server, err := s.inventory.get(ctx, row.Name, factsTTL)
	if err != nil {
		return false, err
	}
	within, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	return server.State != StateRunning, s.cfg.Contact.Sync(within, server.Endpoint)
}

// imageWithin limits how long a VM stays off for its image.
const imageWithin = time.Hour

// ensureImage orders the image of a powered-off VM, or finds the one already ordered, and waits for it. first states
// that the suspension has just started.
func (s *suspender) ensureImage(ctx context.Context, imager Imager, row vm.Row, first bool) (Image, error) {
	return MakeImage(ctx, imager, ImageSpec{VM: row.ID, Labels: s.imageLabels(row), First: first}, ImageWait{
		Since:  row.Since,
		Within: imageWithin,
		First:  s.images.imageReady(ctx, row),
		Pause:  s.ticks(2),
		Now:    s.cfg.Now,
		Wait:   s.sleep,
		Log:    s.cfg.Log,
	})
}

// imageLabels returns the labels of the image for a row's current suspension. Images of earlier suspensions have other
// labels and are not adopted.
func (s *suspender) imageLabels(row vm.Row) map[string]string {
	labels := map[string]string{LabelKind: ImageSnapshot, LabelSleep: strconv.FormatInt(row.Since.UnixNano(), 10)}
	for _, key := range []string{LabelDeployment, LabelOwner, LabelGeneration, LabelRepo} {
		if value, ok := row.Labels[key]; ok {
			labels[key] = value
		}
	}
	return labels
}

// forgetImage implements [Fleet.ForgetImage].
func (s *suspender) forgetImage(ctx context.Context, id string) error {
	rows, err := s.rows.List(ctx)
	if err != nil {
		return fmt.Errorf("delete image %s: %w", id, err)
	}
	for _, row := range rows {
		if row.Snapshot == id && row.Phase != vm.Gone {
			if err := s.deletion.endAndDelete(ctx, row, ReasonAsleep, false); err != nil {
				return fmt.Errorf("delete image %s: %w", id, err)
			}
			return nil
		}
	}
	imager, ok := s.provider.(Imager)
	if !ok {
		return nil
	}
	if err := imager.DeleteImage(ctx, id); err != nil {
		return fmt.Errorf("delete image %s: %w", id, err)
	}
	return nil
}

// wakeInPlace starts a VM that was powered off for an image whose creation failed.
func (s *suspender) wakeInPlace(ctx context.Context, row vm.Row) (VM, error) {
	imager, ok := s.provider.(Imager)
	if !ok {
		return VM{}, fmt.Errorf("%w: VM %s is off", ErrInvalid, row.Name)
	}
	if _, _, err := s.apply(ctx, row.Name, vm.Event{Kind: vm.Rest}); err != nil {
		return VM{}, err
	}
	if err := imager.PowerOn(ctx, row.ID); err != nil {
		return VM{}, err
	}
	for end := s.cfg.Now().Add(s.cfg.BootWithin); s.cfg.Now().Before(end); {
		server, err := s.inventory.get(ctx, row.Name, 0)
		if err != nil || server.State == StateRunning {
			return server, err
		}
		if err := s.waitOrChange(ctx, s.cfg.Tick); err != nil {
			return VM{}, err
		}
	}
	return VM{}, fmt.Errorf("%w: VM %s does not restart", ErrBusy, row.Name)
}
