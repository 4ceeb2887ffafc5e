package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// lossAfter is the minimum time between two checks that do not find a VM, or the image of a suspended one, before it
// counts as lost. It is shorter if the fleet ticks faster, as in tests.
const lossAfter = time.Minute

func (f *Fleet) lossAfter() time.Duration { return min(lossAfter, 12*f.cfg.Tick) }

// ask returns the provider's data on the VM of a row. It asks by ID if the row has one, so that a VM created late under
// the row's name is not mistaken for it.
func (f *Fleet) ask(ctx context.Context, row vm.Row) (VM, error) {
	market, ok := f.market()
	if !ok || row.ID == "" || row.Heir != "" { // the resource of a row with an heir has another name
		return f.provider.Get(ctx, row.Name)
	}
	server, err := market.GetByID(ctx, row.ID)
	server.Name = row.Name
	return server, err
}

// confirm is ask for a VM that may contain work. It returns a [Market]'s ErrNotFound or StateEnded only if a check at
// least lossAfter ago had the same result and no check since found the VM. Until then the error is ErrMissing.
func (f *Fleet) confirm(ctx context.Context, row vm.Row) (VM, error) {
	server, err := f.ask(ctx, row)
	if _, ok := f.market(); !ok || row.ID == "" {
		return server, err
	}
	var says string
	switch {
	case errors.Is(err, ErrNotFound):
		says = "the provider does not find it"
	case err != nil:
		return server, err
	case server.State == StateEnded:
		says = fmt.Sprintf("the provider says that it has ended (%s: %s)", server.Ended, server.Detail)
	default:
		f.found(row.Name)
		return server, nil
	}
	now := f.cfg.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	first, again := f.missed[row.Name]
	if again && now.Sub(first) >= f.lossAfter() {
		return server, err
	}
	if !again {
		f.missed[row.Name] = now
		f.cfg.Log.Warn().Str("vm", row.Name).Str("id", row.ID).Msg(says + "; checking again")
	}
	return VM{}, fmt.Errorf("%w: VM %s: %s", ErrMissing, row.Name, says)
}

// found resets the record that a VM was not found.
func (f *Fleet) found(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.missed, name)
}

// wait sleeps for the whole duration, even if rows change.
func (f *Fleet) wait(ctx context.Context, d time.Duration) error {
	for end := f.cfg.Now().Add(d); ; {
		left := end.Sub(f.cfg.Now())
		if left <= 0 {
			return nil
		}
		if err := f.pause(ctx, left); err != nil {
			return err
		}
	}
}

// findListed finds a row's VM in a list by ID, or by name if the row has no ID yet.
func findListed(vms []VM, row vm.Row) (VM, bool) {
	for _, server := range vms {
		if row.ID != "" && server.ID == row.ID || row.ID == "" && server.Name == row.Name {
			return server, true
		}
	}
	return VM{}, false
}

// isAnother reports whether a VM is not the one that the row of its name refers to.
func isAnother(row vm.Row, server string) bool {
	return row.ID != "" && server != "" && row.ID != server
}

// lost fails rows in use whose VM is missing or has ended unexpectedly.
func (f *Fleet) lost(ctx context.Context, s survey) error {
	var errs []error
	for _, row := range s.rows {
		if !row.Phase.Usable() {
			continue
		}
		if server, ok := findListed(s.vms, row); ok && server.State != StateEnded {
			f.found(row.Name)
			continue
		}
		if _, err := f.lose(ctx, row); err != nil {
			errs = append(errs, fmt.Errorf("VM %s: %w", row.Name, err))
		}
	}
	return errors.Join(errs...)
}

// lose fails a row whose VM is confirmed to be missing or ended, and reports whether it did.
func (f *Fleet) lose(ctx context.Context, row vm.Row) (bool, error) {
	server, err := f.confirm(ctx, row)
	switch {
	case errors.Is(err, ErrNotFound):
		server = VM{State: StateEnded, Ended: ReasonVanished}
	case errors.Is(err, ErrMissing):
		return false, nil
	case err != nil:
		return false, err
	}
	if server.State != StateEnded {
		return false, nil
	}
	f.forget(row.Name)
	_, failed, err := f.apply(ctx, row.Name, vm.Event{Kind: vm.Fail, Why: string(server.Ended), Detail: server.Detail})
	return failed, err
}

// lastingImage returns the image of a suspended VM. If two checks, lossAfter apart, report that it is missing or
// unusable, the error is ErrNotFound.
func (f *Fleet) lastingImage(ctx context.Context, id string) (*Image, error) {
	img, err := f.image(ctx, id)
	if !errors.Is(err, ErrNotFound) {
		return img, err
	}
	f.cfg.Log.Warn().Err(err).Msg("image of a suspended VM not found; checking again")
	if err := f.wait(ctx, f.lossAfter()); err != nil {
		return nil, err
	}
	return f.image(ctx, id)
}

// image returns one of the provider's images by ID. ErrNotFound means that there is no usable one, ErrBusy that it is
// being created.
func (f *Fleet) image(ctx context.Context, id string) (*Image, error) {
	imager, ok := f.provider.(Imager)
	if !ok {
		return nil, fmt.Errorf("%w: this provider makes no images", ErrInvalid)
	}
	f.mu.Lock()
	known, at := f.usable, f.usableAt
	f.mu.Unlock()
	if known.ID == id && f.cfg.Now().Sub(at) < f.cfg.Tick { // an intent and its order need the same image
		return &known, nil
	}
	img, err := imager.ImageByID(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case img.Failed:
		return nil, fmt.Errorf("%w: image %s cannot be used", ErrNotFound, id)
	case !img.Ready:
		return nil, fmt.Errorf("%w: image %s is being made", ErrBusy, id)
	}
	f.mu.Lock()
	f.usable, f.usableAt = img, f.cfg.Now()
	f.mu.Unlock()
	return &img, nil
}
