package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/errand-bot/errand/state"
)

// Release deletes a VM with all that is on it, or keeps it for the next task of its repository (see
// Pool). It may be called again, also for a VM that does not exist. why must be one of Reasons.
func (f *Fleet) Release(ctx context.Context, name string, why Reason) error {
	if !why.Valid() {
		return fmt.Errorf("release VM %s: reason %q is not in the list", name, why)
	}
	f.forget(name)
	row, err := f.rows.Get(ctx, name)
	if errors.Is(err, state.ErrNoVMRow) {
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

func (f *Fleet) release(ctx context.Context, row state.VMRow, why Reason) error {
	if f.keeps(row, why) {
		_, kept, err := f.apply(ctx, row.Name, state.VMEvent{Kind: state.VMKeep, Why: string(why)})
		if kept || err != nil {
			return err
		}
	}
	return f.conclude(ctx, row.Name, why, why == ReasonAsleep)
}

// finish deletes what the provider has of a row that is over, and stores that it is gone. The caller has locked the row's
// deletion.
func (f *Fleet) finish(ctx context.Context, row state.VMRow) error {
	if waits, err := f.heirWaits(ctx, row); waits || err != nil {
		return err
	}
	if row.Snapshot == "" || row.EndedAt.IsZero() { // else the provider has confirmed that only the image is left
		if err := f.deleteOf(ctx, row); err != nil {
			return err
		}
	}
	f.found(row.Name)
	if row.Phase == state.VMDeleting && row.Snapshot != "" {
		imager, ok := f.provider.(Imager)
		if !ok {
			return fmt.Errorf("%w: no image %s", ErrInvalid, row.Snapshot)
		}
		if err := imager.DeleteImage(ctx, row.Snapshot); err != nil {
			return err
		}
	}
	if row.Phase == state.VMGone {
		return nil
	}
	_, _, err := f.apply(ctx, row.Name, state.VMEvent{Kind: state.VMDeleted})
	return err
}

// deleteOf deletes the VM of a row: the one whose id it has, not whatever has its name.
func (f *Fleet) deleteOf(ctx context.Context, row state.VMRow) error {
	if row.Phase == state.VMGone || row.Heir != "" { // an object that was made late, or not taken over by the heir, has the row's name and no id here
		return f.provider.Delete(ctx, row.Name, Reason(row.Why))
	}
	return f.delete(ctx, VM{Name: row.Name, ID: row.ID}, Reason(row.Why))
}

// heirWaits reports whether the VM object goes to another row, which has not taken it yet.
func (f *Fleet) heirWaits(ctx context.Context, row state.VMRow) (bool, error) {
	if row.Heir == "" || row.Phase == state.VMGone {
		return false, nil
	}
	heir, err := f.rows.Get(ctx, row.Heir)
	if errors.Is(err, state.ErrNoVMRow) {
		return false, nil
	}
	return err == nil && heir.Phase == state.VMIntended, err
}

// Snapshot makes an image of the disk of a VM at rest and returns it when it is available and
// stored. The VM is off afterwards: the caller releases it with ReasonAsleep, and the row keeps the image
// until ForgetImage. It may be called again and goes on where it was. If it fails the VM is usable again,
// or will be by the next Acquire.
func (f *Fleet) Snapshot(ctx context.Context, name string) (Image, error) {
	row, err := f.rows.Get(ctx, name)
	var img Image
	switch {
	case err != nil:
	case row.Phase == state.VMAsleep:
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

// sleepImage returns the image of a VM that sleeps; only its id if the provider does not say more.
func (f *Fleet) sleepImage(ctx context.Context, row state.VMRow) Image {
	if imager, ok := f.provider.(Imager); ok {
		img, err := imager.ImageByID(ctx, row.Snapshot)
		if err == nil {
			return img
		}
		f.cfg.Log.Warn().Err(err).Str("vm", row.Name).Str("image", row.Snapshot).Msg("failed to read the size of an image")
	}
	return Image{ID: row.Snapshot}
}

func (f *Fleet) snapshot(ctx context.Context, row state.VMRow) (img Image, err error) {
	imager, ok := f.provider.(Imager)
	if !ok {
		return img, fmt.Errorf("%w: this provider makes no images", ErrInvalid)
	}
	row, first, err := f.apply(ctx, row.Name, state.VMEvent{Kind: state.VMSleep})
	if err != nil {
		return img, err
	}
	if row.Phase != state.VMSleeping {
		return img, fmt.Errorf("%w: it is %s", ErrBusy, row.Phase)
	}
	f.sync(ctx, row)
	f.forget(row.Name)
	if err = imager.PowerOff(ctx, row.ID); err == nil {
		if img, err = f.imaged(ctx, imager, row, first); err == nil {
			_, _, err = f.apply(ctx, row.Name, state.VMEvent{Kind: state.VMImaged, Snapshot: img.ID, Why: string(ReasonAsleep)})
			f.bookImages(ctx, []Image{img}, false) // it may be deleted before the reapers list it
			return img, err
		}
	}
	if errors.Is(err, ErrNotFound) {
		return img, f.doubt(ctx, row, err)
	}
	if ctx.Err() != nil || errors.Is(err, ErrUnknownOutcome) {
		return img, err // the next call goes on
	}
	if errors.Is(err, ErrQuota) {
		f.reportLimit(err)
	}
	_, _, restErr := f.apply(ctx, row.Name, state.VMEvent{Kind: state.VMRest})
	return img, errors.Join(err, imager.PowerOn(ctx, row.ID), restErr)
}

// doubt returns the error of a call that did not find a row's VM: ErrNotFound if the VM is confirmed to be gone, else
// one with which the call is tried again.
func (f *Fleet) doubt(ctx context.Context, row state.VMRow, cause error) error {
	if _, err := f.confirm(ctx, row); err != nil {
		return err
	}
	return fmt.Errorf("%w: %v", ErrMissing, cause) //nolint:errorlint // it is not ErrNotFound
}

const (
	// syncFor bounds one attempt to have a VM write its disk.
	syncFor = time.Minute
	// syncTries is how often that is tried; the time between two tries begins with two ticks and doubles.
	syncTries = 4
)

// sync has a VM write its disk before it is powered off, since it may not obey and be cut off. While that fails the VM is
// left running and it is tried again, whatever the provider says about the VM's state: one answer may be wrong. A VM that
// cannot be reached is powered off in the end: its disk is all that there is of its work, and one that obeys writes it.
func (f *Fleet) sync(ctx context.Context, row state.VMRow) {
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

// syncOnce is one attempt of sync. It reports whether the provider says that the VM is not running.
func (f *Fleet) syncOnce(ctx context.Context, row state.VMRow) (off bool, err error) {
	vm, err := f.Get(ctx, row.Name)
	if err != nil {
		return false, err
	}
	within, cancel := context.WithTimeout(ctx, syncFor)
	defer cancel()
	return vm.State != StateRunning, f.cfg.Contact.Sync(within, vm.Endpoint)
}

// imageWithin bounds how long a VM stays off for its image.
const imageWithin = time.Hour

// imaged begins the image of a VM that is off, or finds the one that was begun, and waits for it. With first its sleep
// has just begun.
func (f *Fleet) imaged(ctx context.Context, imager Imager, row state.VMRow, first bool) (Image, error) {
	return MakeImage(ctx, imager, ImageSpec{VM: row.ID, Labels: f.imageLabels(row), First: first}, ImageWait{
		Since: row.Since, Within: imageWithin, First: f.imageReady(ctx, row), Pause: f.ticks(2), Now: f.cfg.Now, Wait: f.wait, Log: f.cfg.Log,
	})
}

// imageLabels name the image that is made of a row's disk in its present sleep. One that an earlier sleep has left has
// other labels, and is not adopted.
func (f *Fleet) imageLabels(row state.VMRow) map[string]string {
	labels := map[string]string{LabelKind: ImageSleep, LabelSleep: strconv.FormatInt(row.Since.UnixNano(), 10)}
	for _, key := range []string{LabelDeployment, LabelOwner, LabelGeneration, LabelRepo} {
		if value, ok := row.Labels[key]; ok {
			labels[key] = value
		}
	}
	return labels
}

// ForgetImage deletes the image that Snapshot made, when its task has woken from it, or will not any
// more. It may be called again.
func (f *Fleet) ForgetImage(ctx context.Context, id string) error {
	rows, err := f.rows.List(ctx)
	if err != nil {
		return fmt.Errorf("forget image %s: %w", id, err)
	}
	for _, row := range rows {
		if row.Snapshot == id && row.Phase != state.VMGone {
			if err := f.conclude(ctx, row.Name, ReasonAsleep, false); err != nil {
				return fmt.Errorf("forget image %s: %w", id, err)
			}
			return nil
		}
	}
	imager, ok := f.provider.(Imager)
	if !ok {
		return nil
	}
	if err := imager.DeleteImage(ctx, id); err != nil {
		return fmt.Errorf("forget image %s: %w", id, err)
	}
	return nil
}

// wakeInPlace starts a VM that was powered off for an image which did not come about.
func (f *Fleet) wakeInPlace(ctx context.Context, row state.VMRow) (VM, error) {
	imager, ok := f.provider.(Imager)
	if !ok {
		return VM{}, fmt.Errorf("%w: VM %s is off", ErrInvalid, row.Name)
	}
	if _, _, err := f.apply(ctx, row.Name, state.VMEvent{Kind: state.VMRest}); err != nil {
		return VM{}, err
	}
	if err := imager.PowerOn(ctx, row.ID); err != nil {
		return VM{}, err
	}
	for end := f.cfg.Now().Add(f.cfg.BootWithin); f.cfg.Now().Before(end); {
		vm, err := f.get(ctx, row.Name, 0)
		if err != nil || vm.State == StateRunning {
			return vm, err
		}
		if err := f.pause(ctx, f.cfg.Tick); err != nil {
			return VM{}, err
		}
	}
	return VM{}, fmt.Errorf("%w: VM %s does not start again", ErrBusy, row.Name)
}

// Wipe deletes every VM of the deployment at the provider and tells no row of it: for the end of a demo or
// a test, when the store is closed.
func (f *Fleet) Wipe(ctx context.Context, why Reason) error {
	vms, err := f.provider.List(ctx)
	if err != nil {
		return fmt.Errorf("wipe VMs: %w", err)
	}
	var errs []error
	for _, vm := range vms {
		f.forget(vm.Name)
		errs = append(errs, f.delete(ctx, vm, why))
	}
	return errors.Join(errs...)
}
