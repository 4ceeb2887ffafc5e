package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/state"
)

const (
	// freshFor is how long a Market's word that a VM is there is good for callers who want to connect to it.
	freshFor = time.Minute
	// factsFor is how long its facts are good that do not change: the address, the logins. The reapers' list renews
	// them every few minutes.
	factsFor = 15 * time.Minute
)

// sawVM is what a Market said about a VM.
type sawVM struct {
	vm VM
	at time.Time
}

// Get returns what is known of one VM: the provider's facts, with the host keys of its row. A Market's facts may be a
// quarter of an hour old, and older while it does not answer; Client and Acquire find out whether the VM is still there.
// ErrMissing says that the provider did not find the VM, and that this has to be confirmed.
func (f *Fleet) Get(ctx context.Context, name string) (VM, error) { return f.get(ctx, name, factsFor) }

// get is Get with facts that are at most so old.
func (f *Fleet) get(ctx context.Context, name string, within time.Duration) (VM, error) {
	row, err := f.rows.Get(ctx, name)
	if errors.Is(err, state.ErrNoVMRow) {
		return f.provider.Get(ctx, name)
	}
	if err != nil {
		return VM{}, err
	}
	vm, err := f.facts(ctx, row, within)
	if err != nil {
		return VM{}, err
	}
	return f.dressed(vm, row)
}

// facts asks the provider, or remembers. What it said of a VM that ran is good for longer while it does not answer: the
// VM's work does not wait for it, and whoever has the address by now does not have the host key.
func (f *Fleet) facts(ctx context.Context, row state.VMRow, within time.Duration) (VM, error) {
	if vm, ok := f.remembered(row.Name, within); ok && !another(row, vm.ID) {
		return vm, nil
	}
	look := f.confirm
	if row.Phase.Over() {
		look = f.ask
	}
	vm, err := look(ctx, row)
	if err == nil {
		f.remember(vm)
		return vm, nil
	}
	if old, ok := f.remembered(row.Name, math.MaxInt64); ok && !another(row, old.ID) && silent(ctx, err) {
		f.cfg.Log.Warn().Err(err).Str("vm", row.Name).Msg("provider unavailable; using cached VM details")
		return old, nil
	}
	return VM{}, err
}

// silent reports whether an error of a look at a VM says nothing about the VM.
func silent(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrMissing) && !errors.Is(err, ErrEnded)
}

// dressed adds what the row knows about a VM.
func (f *Fleet) dressed(vm VM, row state.VMRow) (VM, error) {
	switch {
	case len(row.Pins) > 0:
		vm.Endpoint.HostKeys = row.Pins
	case f.cfg.Contact != nil:
		key, err := f.cfg.Contact.HostKey(row)
		if err != nil {
			return VM{}, fmt.Errorf("host key of VM %s: %w", row.Name, err)
		}
		vm.Endpoint.HostKeys = []string{key}
	}
	vm.Gen, vm.Paid = row.Gen, row.Paid
	return vm, nil
}

func (f *Fleet) market() (Market, bool) {
	m, ok := f.provider.(Market)
	return m, ok
}

func (f *Fleet) remembered(name string, within time.Duration) (VM, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.seen[name]
	return s.vm, ok && f.cfg.Now().Sub(s.at) < within
}

// remember keeps a Market's facts about a VM that runs. The others' lists are cheap, and the sign that we live.
func (f *Fleet) remember(vm VM) {
	if _, ok := f.market(); !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if vm.State == StateRunning {
		f.seen[vm.Name] = sawVM{vm, f.cfg.Now()}
	} else {
		delete(f.seen, vm.Name)
	}
}

// forgetFacts drops what the provider said about a VM.
func (f *Fleet) forgetFacts(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.seen, name)
}

// forget drops what is remembered about a VM.
func (f *Fleet) forget(name string) {
	f.mu.Lock()
	delete(f.seen, name)
	delete(f.coming, name)
	delete(f.retries, name)
	delete(f.unmet, name)
	f.mu.Unlock()
	f.pool.Forget(name)
	f.pool.Forget(name + runnerSuffix)
}

// List returns all VMs of this deployment, ended ones too.
func (f *Fleet) List(ctx context.Context) ([]VM, error) {
	vms, err := f.provider.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, vm := range vms {
		f.remember(vm)
	}
	return vms, nil
}

func (f *Fleet) endpoint(ctx context.Context, name string) (remote.Endpoint, error) {
	name, runner := strings.CutSuffix(name, runnerSuffix)
	vm, err := f.get(ctx, name, freshFor)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			return remote.Endpoint{}, err
		}
		return remote.Endpoint{}, fmt.Errorf("%w: %w", remote.ErrUnreachable, err)
	}
	if vm.State == StateEnded {
		return remote.Endpoint{}, fmt.Errorf("%w: %s: %s", ErrEnded, vm.Ended, vm.Detail)
	}
	if vm.Endpoint.Address == "" {
		return remote.Endpoint{}, fmt.Errorf("%w: it has no address yet", remote.ErrUnreachable)
	}
	if login := vm.Facts[FactRunnerLogin]; runner && login != "" {
		vm.Endpoint.User = login
	}
	return vm.Endpoint, nil
}

// apply does an event to a row and wakes those who wait for one.
func (f *Fleet) apply(ctx context.Context, name string, e state.VMEvent) (state.VMRow, bool, error) {
	row, changed, err := f.rows.Apply(ctx, name, e)
	if err != nil || !changed {
		return row, changed, err
	}
	f.mu.Lock()
	close(f.changed)
	f.changed = make(chan struct{})
	f.mu.Unlock()
	f.cfg.Log.Debug().Str("vm", name).Str("event", string(e.Kind)).Str("phase", string(row.Phase)).Str("why", row.Why).Msg("VM")
	return row, true, nil
}

// pause waits, until a row changes at the most.
func (f *Fleet) pause(ctx context.Context, d time.Duration) error {
	if f.cfg.Sleep != nil {
		return f.cfg.Sleep(ctx, d)
	}
	f.mu.Lock()
	changed := f.changed
	f.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
