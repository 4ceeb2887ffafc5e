package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/errand-bot/errand/state/vm"
)

// release implements [Fleet.Release].
func (d *deleter) release(ctx context.Context, name string, why Reason) error {
	if !slices.Contains(Reasons(), why) {
		return fmt.Errorf("release VM %s: reason %q is not in the list", name, why)
	}
	d.inventory.dropCached(name)
	row, err := d.rows.Get(ctx, name)
	if errors.Is(err, vm.ErrNoRow) {
		err = d.provider.Delete(ctx, name, why)
	} else if err == nil {
		err = d.releaseRow(ctx, row, why)
	}
	if err != nil {
		return fmt.Errorf("release VM %s: %w", name, err)
	}
	d.cfg.Log.Info().Str("vm", name).Str("reason", string(why)).Msg("VM released")
	return nil
}

func (d *deleter) releaseRow(ctx context.Context, row vm.Row, why Reason) error {
	if d.keepsAsStandby(row, why) {
		_, kept, err := d.apply(ctx, row.Name, vm.Event{Kind: vm.Keep, EndReason: why})
		if kept || err != nil {
			return err
		}
	}
	return d.endAndDelete(ctx, row, why, why == ReasonAsleep)
}

// deleteResources deletes the provider resources of an ended row and stores that they are gone. The caller must hold
// the row's deletion lock.
func (d *deleter) deleteResources(ctx context.Context, row vm.Row) error {
	if waits, err := d.isTakeoverPending(ctx, row); waits || err != nil {
		return err
	}
	if row.Snapshot == "" || row.EndedAt.IsZero() { // otherwise the provider has confirmed that only the image is left
		if err := d.deleteByRow(ctx, row); err != nil {
			return err
		}
	}
	d.inventory.resetMissed(row.Name)
	if row.Phase == vm.Deleting && row.Snapshot != "" {
		imager, ok := d.provider.(Imager)
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
	_, _, err := d.apply(ctx, row.Name, vm.Event{Kind: vm.Deleted})
	return err
}

// deleteByRow deletes the VM of a row by its ID, not another VM of the same name.
func (d *deleter) deleteByRow(ctx context.Context, row vm.Row) error {
	// A VM that was created late, or not taken over by the successor, has the row's name, and its ID is not stored
	// here.
	if row.Phase == vm.Gone || row.Successor != "" {
		return d.provider.Delete(ctx, row.Name, row.EndReason)
	}
	if taken, err := d.isTaken(ctx, row); taken || err != nil {
		return err
	}
	return d.delete(ctx, VM{Name: row.Name, ID: row.ID}, row.EndReason)
}

// isTaken reports whether the VM of a row from a backup has another name since: errand has then given it to another task of which this
// store does not know.
func (d *deleter) isTaken(ctx context.Context, row vm.Row) (bool, error) {
	market, ok := d.asMarket()
	if !ok || row.ID == "" {
		return false, nil
	}
	since, err := d.rows.Since(ctx)
	if err != nil || !row.Intended.Before(since) {
		return false, err
	}
	server, err := market.GetByID(ctx, row.ID)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil || server.Name == row.Name:
		return false, err
	}
	d.cfg.Log.Warn().Str("vm", row.Name).Str("id", row.ID).Str("name", server.Name).Msg("the VM was renamed after the backup from which errand was restored; it is left alone")
	return true, nil
}

// isTakeoverPending reports whether another row will take over the VM but has not done so yet.
func (d *deleter) isTakeoverPending(ctx context.Context, row vm.Row) (bool, error) {
	if row.Successor == "" || row.Phase == vm.Gone {
		return false, nil
	}
	successor, err := d.rows.Get(ctx, row.Successor)
	if errors.Is(err, vm.ErrNoRow) {
		return false, nil
	}
	return err == nil && successor.Phase == vm.Intended, err
}

// wipe implements [Fleet.Wipe].
func (d *deleter) wipe(ctx context.Context, why Reason) error {
	vms, err := d.provider.List(ctx)
	if err != nil {
		return fmt.Errorf("wipe VMs: %w", err)
	}
	var errs []error
	for _, server := range vms {
		d.inventory.dropCached(server.Name)
		errs = append(errs, d.delete(ctx, server, why))
	}
	return errors.Join(errs...)
}
