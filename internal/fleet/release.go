package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// Release deletes a VM with all its data, or keeps it for the next task of its repository (see [Pool]). It may be
// called again, also for a VM that does not exist. why must be one of [Reasons].
func (f *Fleet) Release(ctx context.Context, name string, why Reason) error {
	if !why.Valid() {
		return fmt.Errorf("release VM %s: reason %q is not in the list", name, why)
	}
	f.forget(name)
	row, err := f.rows.Get(ctx, name)
	if errors.Is(err, vm.ErrNoRow) {
		err = f.provider.Delete(ctx, name, why)
	} else if err == nil {
		err = f.release(ctx, row, why)
	}
	if err != nil {
		return fmt.Errorf("release VM %s: %w", name, err)
	}
	f.cfg.Log.Info().Str("vm", name).Str("reason", string(why)).Msg("VM released")
	return nil
}

func (f *Fleet) release(ctx context.Context, row vm.Row, why Reason) error {
	if f.keeps(row, why) {
		_, kept, err := f.apply(ctx, row.Name, vm.Event{Kind: vm.Keep, Why: string(why)})
		if kept || err != nil {
			return err
		}
	}
	return f.conclude(ctx, row.Name, why, why == ReasonAsleep)
}

// finish deletes the provider resources of an ended row and stores that they are gone. The caller must hold the row's
// deletion lock.
func (f *Fleet) finish(ctx context.Context, row vm.Row) error {
	if waits, err := f.heirWaits(ctx, row); waits || err != nil {
		return err
	}
	if row.Snapshot == "" || row.EndedAt.IsZero() { // otherwise the provider has confirmed that only the image is left
		if err := f.deleteOf(ctx, row); err != nil {
			return err
		}
	}
	f.found(row.Name)
	if row.Phase == vm.Deleting && row.Snapshot != "" {
		imager, ok := f.provider.(Imager)
		if !ok {
			return fmt.Errorf("%w: no image %s", ErrInvalid, row.Snapshot)
		}
		if err := imager.DeleteImage(ctx, row.Snapshot); err != nil {
			return err
		}
	}
	if row.Phase == vm.Gone {
		return nil
	}
	_, _, err := f.apply(ctx, row.Name, vm.Event{Kind: vm.Deleted})
	return err
}

// deleteOf deletes the VM of a row by its ID, not another VM of the same name.
func (f *Fleet) deleteOf(ctx context.Context, row vm.Row) error {
	if row.Phase == vm.Gone || row.Heir != "" { // a VM that was created late, or not taken over by the heir, has the row's name, and its ID is not stored here
		return f.provider.Delete(ctx, row.Name, Reason(row.Why))
	}
	return f.delete(ctx, VM{Name: row.Name, ID: row.ID}, Reason(row.Why))
}

// heirWaits reports whether another row will take over the VM but has not done so yet.
func (f *Fleet) heirWaits(ctx context.Context, row vm.Row) (bool, error) {
	if row.Heir == "" || row.Phase == vm.Gone {
		return false, nil
	}
	heir, err := f.rows.Get(ctx, row.Heir)
	if errors.Is(err, vm.ErrNoRow) {
		return false, nil
	}
	return err == nil && heir.Phase == vm.Intended, err
}

// Snapshot creates an image of the disk of a resting VM and returns it when it is available and stored. The VM is off
// afterwards: the caller releases it with ReasonAsleep, and the row keeps the image until ForgetImage. It may be called
// again and continues where it stopped. After an error the VM is usable again, or will be after the next Acquire.
func (f *Fleet) Snapshot(ctx context.Context, name string) (Image, error) {
	row, err := f.rows.Get(ctx, name)
	var img Image
	switch {
	case err != nil:
	case row.Phase == vm.Asleep:
		img = f.sleepImage(ctx, row)
	case row.Phase.Over():
		err = fmt.Errorf("%w: %s %s", ErrEnded, row.Why, row.Detail)
	default:
		img, err = f.snapshot(ctx, row)
	}
	if err != nil {
		return Image{}, fmt.Errorf("snapshot VM %s: %w", name, err)
	}
	return img, nil
}

// sleepImage returns the image of a suspended VM, with only its ID if the provider returns no more.
func (f *Fleet) sleepImage(ctx context.Context, row vm.Row) Image {
	if imager, ok := f.provider.(Imager); ok {
		img, err := imager.ImageByID(ctx, row.Snapshot)
		if err == nil {
			return img
		}
		f.cfg.Log.Warn().Err(err).Str("vm", row.Name).Str("image", row.Snapshot).Msg("failed to read the size of an image")
	}
	return Image{ID: row.Snapshot}
}

func (f *Fleet) snapshot(ctx context.Context, row vm.Row) (img Image, err error) {
	imager, ok := f.provider.(Imager)
	if !ok {
		return img, fmt.Errorf("%w: this provider makes no images", ErrInvalid)
	}
	row, first, err := f.apply(ctx, row.Name, vm.Event{Kind: vm.Sleep})
	if err != nil {
		return img, err
	}
	if row.Phase != vm.Sleeping {
		return img, fmt.Errorf("%w: it is %s", ErrBusy, row.Phase)
	}
	f.sync(ctx, row)
	f.forget(row.Name)
	if err = imager.PowerOff(ctx, row.ID); err == nil {
		if img, err = f.imaged(ctx, imager, row, first); err == nil {
			_, _, err = f.apply(ctx, row.Name, vm.Event{Kind: vm.Imaged, Snapshot: img.ID, Why: string(ReasonAsleep)})
			f.bookImages(ctx, []Image{img}, false) // it may be deleted before the reapers list it
			return img, err
		}
	}
	if errors.Is(err, ErrNotFound) {
		return img, f.doubt(ctx, row, err)
	}
	if ctx.Err() != nil || errors.Is(err, ErrUnknownOutcome) {
		return img, err // the next call continues
	}
	if errors.Is(err, ErrQuota) {
		f.reportLimit(err)
	}
	_, _, restErr := f.apply(ctx, row.Name, vm.Event{Kind: vm.Rest})
	return img, errors.Join(err, imager.PowerOn(ctx, row.ID), restErr)
}

// doubt converts the error of a call that did not find a row's VM: ErrNotFound if the VM is confirmed to be missing,
// otherwise an error after which the call is retried.
func (f *Fleet) doubt(ctx context.Context, row vm.Row, cause error) error {
	if _, err := f.confirm(ctx, row); err != nil {
		return err
	}
	return fmt.Errorf("%w: %v", ErrMissing, cause) //nolint:errorlint // it is not ErrNotFound
}

const (
	// syncFor limits one attempt to sync a VM's disk.
	syncFor = time.Minute
	// syncTries is the number of attempts; the pause between them starts at two ticks and doubles.
	syncTries = 4
)

// sync makes a VM write its disk before it is powered off, because power-off may have to cut the power. While that
// fails the VM stays on and sync retries, whatever state the provider reports: a single response may be wrong. A VM
// that stays unreachable is powered off in the end: its disk contains all of its work, and a clean shutdown writes it.
func (f *Fleet) sync(ctx context.Context, row vm.Row) {
	if f.cfg.Contact == nil {
		return
	}
	for try := range syncTries {
		off, err := f.syncOnce(ctx, row)
		if err == nil {
			return
		}
		last := try == syncTries-1 || off && try > 0
		f.cfg.Log.Warn().Err(err).Str("vm", row.Name).Bool("retrying", !last).Msg("failed to sync the disk")
		if last || f.wait(ctx, f.ticks(2)<<try) != nil {
			return
		}
	}
}

// syncOnce makes one attempt of sync. It reports whether the VM is not running according to the provider.
func (f *Fleet) syncOnce(ctx context.Context, row vm.Row) (off bool, err error) {
	server, err := f.Get(ctx, row.Name)
	if err != nil {
		return false, err
	}
	within, cancel := context.WithTimeout(ctx, syncFor)
	defer cancel()
	return server.State != StateRunning, f.cfg.Contact.Sync(within, server.Endpoint)
}

// imageWithin limits how long a VM stays off for its image.
const imageWithin = time.Hour

// imaged orders the image of a powered-off VM, or finds the one already ordered, and waits for it. first states that
// the suspension has just started.
func (f *Fleet) imaged(ctx context.Context, imager Imager, row vm.Row, first bool) (Image, error) {
	return MakeImage(ctx, imager, ImageSpec{VM: row.ID, Labels: f.imageLabels(row), First: first}, ImageWait{
		Since: row.Since, Within: imageWithin, First: f.imageReady(ctx, row), Pause: f.ticks(2), Now: f.cfg.Now, Wait: f.wait, Log: f.cfg.Log,
	})
}

// imageLabels returns the labels of the image for a row's current suspension. Images of earlier suspensions have other
// labels and are not adopted.
func (f *Fleet) imageLabels(row vm.Row) map[string]string {
	labels := map[string]string{LabelKind: ImageSleep, LabelSleep: strconv.FormatInt(row.Since.UnixNano(), 10)}
	for _, key := range []string{LabelDeployment, LabelOwner, LabelGeneration, LabelRepo} {
		if value, ok := row.Labels[key]; ok {
			labels[key] = value
		}
	}
	return labels
}

// ForgetImage deletes the image created by Snapshot when its task has been restored from it or never will be. It may be
// called again.
func (f *Fleet) ForgetImage(ctx context.Context, id string) error {
	rows, err := f.rows.List(ctx)
	if err != nil {
		return fmt.Errorf("delete image %s: %w", id, err)
	}
	for _, row := range rows {
		if row.Snapshot == id && row.Phase != vm.Gone {
			if err := f.conclude(ctx, row.Name, ReasonAsleep, false); err != nil {
				return fmt.Errorf("delete image %s: %w", id, err)
			}
			return nil
		}
	}
	imager, ok := f.provider.(Imager)
	if !ok {
		return nil
	}
	if err := imager.DeleteImage(ctx, id); err != nil {
		return fmt.Errorf("delete image %s: %w", id, err)
	}
	return nil
}

// wakeInPlace starts a VM that was powered off for an image whose creation failed.
func (f *Fleet) wakeInPlace(ctx context.Context, row vm.Row) (VM, error) {
	imager, ok := f.provider.(Imager)
	if !ok {
		return VM{}, fmt.Errorf("%w: VM %s is off", ErrInvalid, row.Name)
	}
	if _, _, err := f.apply(ctx, row.Name, vm.Event{Kind: vm.Rest}); err != nil {
		return VM{}, err
	}
	if err := imager.PowerOn(ctx, row.ID); err != nil {
		return VM{}, err
	}
	for end := f.cfg.Now().Add(f.cfg.BootWithin); f.cfg.Now().Before(end); {
		server, err := f.get(ctx, row.Name, 0)
		if err != nil || server.State == StateRunning {
			return server, err
		}
		if err := f.pause(ctx, f.cfg.Tick); err != nil {
			return VM{}, err
		}
	}
	return VM{}, fmt.Errorf("%w: VM %s does not restart", ErrBusy, row.Name)
}

// Wipe deletes every VM of the deployment at the provider without updating rows, for the end of a demo or test after
// the store is closed.
func (f *Fleet) Wipe(ctx context.Context, why Reason) error {
	vms, err := f.provider.List(ctx)
	if err != nil {
		return fmt.Errorf("wipe VMs: %w", err)
	}
	var errs []error
	for _, server := range vms {
		f.forget(server.Name)
		errs = append(errs, f.delete(ctx, server, why))
	}
	return errors.Join(errs...)
}
