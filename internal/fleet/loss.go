package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
)

// lossAfter is the least time between two looks that miss a VM, or the image of a VM that sleeps, before it is
// believed to be lost. It is shorter where the fleet ticks faster, as in tests.
const lossAfter = time.Minute

func (f *Fleet) lossAfter() time.Duration { return min(lossAfter, 12*f.cfg.Tick) }

// ask returns the VM of a row as the provider has it. It asks by id where the row has one, so that a VM that was made
// late under the row's name is not taken for it.
func (f *Fleet) ask(ctx context.Context, row state.VMRow) (VM, error) {
	market, ok := f.market()
	if !ok || row.ID == "" || row.Heir != "" { // the object of a row with an heir has another name
		return f.provider.Get(ctx, row.Name)
	}
	vm, err := market.GetByID(ctx, row.ID)
	vm.Name = row.Name
	return vm, err
}

// confirm is ask for a VM that may have somebody's work on it: a Market's ErrNotFound or StateEnded is returned only
// if a look at least lossAfter ago had the same result and none since then has found the VM. Until then the error is
// ErrMissing.
func (f *Fleet) confirm(ctx context.Context, row state.VMRow) (VM, error) {
	vm, err := f.ask(ctx, row)
	if _, ok := f.market(); !ok || row.ID == "" {
		return vm, err
	}
	var says string
	switch {
	case errors.Is(err, ErrNotFound):
		says = "the provider does not find it"
	case err != nil:
		return vm, err
	case vm.State == StateEnded:
		says = fmt.Sprintf("the provider says that it has ended (%s: %s)", vm.Ended, vm.Detail)
	default:
		f.found(row.Name)
		return vm, nil
	}
	now := f.cfg.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	first, again := f.missed[row.Name]
	if again && now.Sub(first) >= f.lossAfter() {
		return vm, err
	}
	if !again {
		f.missed[row.Name] = now
		f.cfg.Log.Warn().Str("vm", row.Name).Str("id", row.ID).Msg(says + "; checking again")
	}
	return VM{}, fmt.Errorf("%w: VM %s: %s", ErrMissing, row.Name, says)
}

// found forgets that a VM was missed.
func (f *Fleet) found(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.missed, name)
}

// wait pauses for all of a duration, also if rows change meanwhile.
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

// listed finds a row's VM in a list: by its id, or by its name where the row has no id yet.
func listed(vms []VM, row state.VMRow) (VM, bool) {
	for _, vm := range vms {
		if row.ID != "" && vm.ID == row.ID || row.ID == "" && vm.Name == row.Name {
			return vm, true
		}
	}
	return VM{}, false
}

// another reports whether a VM is not the one that the row of its name has seen.
func another(row state.VMRow, vm string) bool { return row.ID != "" && vm != "" && row.ID != vm }

// lost fails rows whose VM was in use and is gone, or has ended by itself.
func (f *Fleet) lost(ctx context.Context, s survey) error {
	var errs []error
	for _, row := range s.rows {
		if !row.Phase.Usable() {
			continue
		}
		if vm, ok := listed(s.vms, row); ok && vm.State != StateEnded {
			f.found(row.Name)
			continue
		}
		if _, err := f.lose(ctx, row); err != nil {
			errs = append(errs, fmt.Errorf("VM %s: %w", row.Name, err))
		}
	}
	return errors.Join(errs...)
}

// lose fails a row whose VM is confirmed to be gone, or to have ended, and reports whether it did.
func (f *Fleet) lose(ctx context.Context, row state.VMRow) (bool, error) {
	vm, err := f.confirm(ctx, row)
	switch {
	case errors.Is(err, ErrNotFound):
		vm = VM{State: StateEnded, Ended: ReasonVanished}
	case errors.Is(err, ErrMissing):
		return false, nil
	case err != nil:
		return false, err
	}
	if vm.State != StateEnded {
		return false, nil
	}
	f.forget(row.Name)
	_, failed, err := f.apply(ctx, row.Name, state.VMEvent{Kind: state.VMFail, Why: string(vm.Ended), Detail: vm.Detail})
	return failed, err
}

// lastingImage finds the image of a VM that sleeps. That it is gone, or cannot be used, is believed when two looks
// say so, lossAfter apart: the error is ErrNotFound.
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

// image finds one of the provider's images by its id. ErrNotFound says that there is none that can be used, ErrBusy
// that it is being made.
func (f *Fleet) image(ctx context.Context, id string) (*Image, error) {
	imager, ok := f.provider.(Imager)
	if !ok {
		return nil, fmt.Errorf("%w: this provider makes no images", ErrInvalid)
	}
	f.mu.Lock()
	known, at := f.usable, f.usableAt
	f.mu.Unlock()
	if known.ID == id && f.cfg.Now().Sub(at) < f.cfg.Tick { // an intent and its order need the same
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
