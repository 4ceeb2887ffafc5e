package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/state/vm"
)

const (
	// freshFor is how long a [Market]'s report that a VM exists is valid for callers who want to connect to it.
	freshFor = time.Minute
	// factsFor is how long facts that do not change, such as address and logins, are valid. The reapers' list renews
	// them every few minutes.
	factsFor = 15 * time.Minute
)

// sawVM is a [Market]'s last report on a VM.
type sawVM struct {
	vm VM
	at time.Time
}

// Get returns a VM: the provider's facts with the host keys of its row. A [Market]'s facts may be a quarter of an hour
// old, and older while it does not respond; Client and Acquire check whether the VM still exists. ErrMissing means that
// the provider did not find the VM and that this must be confirmed.
func (f *Fleet) Get(ctx context.Context, name string) (VM, error) { return f.get(ctx, name, factsFor) }

// get is Get with a maximum age of the facts.
func (f *Fleet) get(ctx context.Context, name string, within time.Duration) (VM, error) {
	row, err := f.rows.Get(ctx, name)
	if errors.Is(err, vm.ErrNoRow) {
		return f.provider.Get(ctx, name)
	}
	if err != nil {
		return VM{}, err
	}
	server, err := f.facts(ctx, row, within)
	if err != nil {
		return VM{}, err
	}
	return f.withRow(server, row)
}

// facts asks the provider or uses cached facts. Cached facts of a running VM are used for longer while the provider
// does not respond: the VM's work need not wait, and another VM at the address would not have the host key.
func (f *Fleet) facts(ctx context.Context, row vm.Row, within time.Duration) (VM, error) {
	if server, ok := f.remembered(row.Name, within); ok && !isAnother(row, server.ID) {
		return server, nil
	}
	look := f.confirm
	if row.Phase.Over() {
		look = f.ask
	}
	server, err := look(ctx, row)
	if err == nil {
		f.remember(server)
		return server, nil
	}
	if old, ok := f.remembered(row.Name, math.MaxInt64); ok && !isAnother(row, old.ID) && silent(ctx, err) {
		f.cfg.Log.Warn().Err(err).Str("vm", row.Name).Msg("provider unavailable; using cached VM details")
		return old, nil
	}
	return VM{}, err
}

// silent reports whether an error of a check says nothing about the VM.
func silent(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrMissing) && !errors.Is(err, ErrEnded)
}

// withRow adds the row's data to a VM.
func (f *Fleet) withRow(server VM, row vm.Row) (VM, error) {
	switch {
	case len(row.Pins) > 0:
		server.Endpoint.HostKeys = row.Pins
	case f.cfg.Contact != nil:
		key, err := f.cfg.Contact.HostKey(row)
		if err != nil {
			return VM{}, fmt.Errorf("host key of VM %s: %w", row.Name, err)
		}
		server.Endpoint.HostKeys = []string{key}
	}
	server.Gen, server.Paid = row.Gen, row.Paid
	return server, nil
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

// remember caches a [Market]'s facts about a running VM. Other providers' lists are cheap, and reading them signals
// that errand is alive.
func (f *Fleet) remember(server VM) {
	if _, ok := f.market(); !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if server.State == StateRunning {
		f.seen[server.Name] = sawVM{server, f.cfg.Now()}
	} else {
		delete(f.seen, server.Name)
	}
}

// forgetFacts drops the cached facts about a VM.
func (f *Fleet) forgetFacts(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.seen, name)
}

// forget drops all cached data about a VM.
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

// List returns all VMs of this deployment, including ended ones.
func (f *Fleet) List(ctx context.Context) ([]VM, error) {
	vms, err := f.provider.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, server := range vms {
		f.remember(server)
	}
	return vms, nil
}

func (f *Fleet) endpoint(ctx context.Context, name string) (remote.Endpoint, error) {
	name, runner := strings.CutSuffix(name, runnerSuffix)
	server, err := f.get(ctx, name, freshFor)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			return remote.Endpoint{}, err
		}
		return remote.Endpoint{}, fmt.Errorf("%w: %w", remote.ErrUnreachable, err)
	}
	if server.State == StateEnded {
		return remote.Endpoint{}, fmt.Errorf("%w: %s: %s", ErrEnded, server.Ended, server.Detail)
	}
	if server.Endpoint.Address == "" {
		return remote.Endpoint{}, fmt.Errorf("%w: it has no address yet", remote.ErrUnreachable)
	}
	if login := server.Facts[FactRunnerLogin]; runner && login != "" {
		server.Endpoint.User = login
	}
	return server.Endpoint, nil
}

// apply applies an event to a row and wakes callers that wait for a change.
func (f *Fleet) apply(ctx context.Context, name string, e vm.Event) (vm.Row, bool, error) {
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

// pause waits for d or until a row changes.
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
