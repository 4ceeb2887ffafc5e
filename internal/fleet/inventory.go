package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/state/vm"
)

// An inventory answers questions about single VMs, from the provider or from cached facts.
type inventory struct {
	*core
	pool *remote.Pool
	// onForget are called by forget, for parts that cache data about VMs.
	onForget []func(name string)

	mu     sync.Mutex
	cached map[string]cachedVM  // cached facts of a [Market]
	missed map[string]time.Time // since when the provider does not find a VM; see confirm
}

func newInventory(c *core) *inventory {
	v := &inventory{core: c, cached: map[string]cachedVM{}, missed: map[string]time.Time{}}
	v.pool = remote.NewPool(c.cfg.SSH, v.endpoint, 0)
	return v
}

const (
	// existenceTTL is how long a [Market]'s report that a VM exists is valid for callers who want to connect to it.
	existenceTTL = time.Minute
	// factsTTL is how long facts that do not change, such as address and logins, are valid. The reapers' list renews
	// them every few minutes.
	factsTTL = 15 * time.Minute
)

// cachedVM is a [Market]'s last report on a VM.
type cachedVM struct {
	vm VM
	at time.Time
}

func (v *inventory) Get(ctx context.Context, name string) (VM, error) {
	return v.get(ctx, name, factsTTL)
}

// get returns a VM: the provider's facts, at most that old, with the host keys of its row. Facts are older while the
// provider does not respond. ErrMissing means that the provider did not find the VM and that this must be confirmed.
func (v *inventory) get(ctx context.Context, name string, within time.Duration) (VM, error) {
	row, err := v.rows.Get(ctx, name)
	if errors.Is(err, vm.ErrNoRow) {
		return v.provider.Get(ctx, name)
	}
	if err != nil {
		return VM{}, err
	}
	server, err := v.readFacts(ctx, row, within)
	if err != nil {
		return VM{}, err
	}
	return v.withRow(server, row)
}

// readFacts asks the provider or uses cached facts. Cached facts of a running VM are used for longer while the provider
// does not respond: the VM's work need not wait, and another VM at the address would not have the host key.
func (v *inventory) readFacts(ctx context.Context, row vm.Row, within time.Duration) (VM, error) {
	if server, ok := v.cachedVM(row.Name, within); ok && !isDifferentVM(row, server.ID) {
		return server, nil
	}
	find := v.confirmState
	if row.Phase.Over() {
		find = v.askProvider
	}
	server, err := find(ctx, row)
	if err == nil {
		v.cacheVM(server)
		return server, nil
	}
	if old, ok := v.cachedVM(row.Name, math.MaxInt64); ok && !isDifferentVM(row, old.ID) && isInconclusive(ctx, err) {
		v.cfg.Log.Warn().Err(err).Str("vm", row.Name).Msg("provider unavailable; using cached VM details")
		return old, nil
	}
	return VM{}, err
}

// isInconclusive reports whether an error of a check says nothing about the VM.
func isInconclusive(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrMissing) && !errors.Is(err, ErrEnded)
}

// withRow adds the row's data to a VM.
func (v *inventory) withRow(server VM, row vm.Row) (VM, error) {
	switch {
	case len(row.Pins) > 0:
		server.Endpoint.HostKeys = row.Pins
	case v.cfg.Contact != nil:
		key, err := v.cfg.Contact.HostKey(row)
		if err != nil {
			return VM{}, fmt.Errorf("host key of VM %s: %w", row.Name, err)
		}
		server.Endpoint.HostKeys = []string{key}
	}
	server.Gen, server.Paid = row.Gen, row.Paid
	return server, nil
}

func (v *inventory) cachedVM(name string, within time.Duration) (VM, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s, ok := v.cached[name]
	return s.vm, ok && v.cfg.Now().Sub(s.at) < within
}

// cacheVM caches a [Market]'s facts about a running VM. Other providers' lists are cheap, and reading them signals
// that errand is alive.
func (v *inventory) cacheVM(server VM) {
	if _, ok := v.asMarket(); !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if server.State == StateRunning {
		v.cached[server.Name] = cachedVM{server, v.cfg.Now()}
	} else {
		delete(v.cached, server.Name)
	}
}

// forgetFacts drops the cached facts about a VM.
func (v *inventory) forgetFacts(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.cached, name)
}

// dropCached drops all cached data about a VM, also of other parts.
func (v *inventory) dropCached(name string) {
	v.forgetFacts(name)
	for _, forget := range v.onForget {
		forget(name)
	}
	v.pool.Forget(name)
	v.pool.Forget(name + runnerSuffix)
}

// list returns all VMs of this deployment, including ended ones.
func (v *inventory) list(ctx context.Context) ([]VM, error) {
	vms, err := v.provider.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, server := range vms {
		v.cacheVM(server)
	}
	return vms, nil
}

func (v *inventory) endpoint(ctx context.Context, name string) (remote.Endpoint, error) {
	name, runner := strings.CutSuffix(name, runnerSuffix)
	server, err := v.get(ctx, name, existenceTTL)
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

// checkMissing converts the error of a call that did not find a row's VM: ErrNotFound if the VM is confirmed to be
// missing, otherwise an error after which the call is retried.
func (v *inventory) checkMissing(ctx context.Context, row vm.Row, cause error) error {
	if _, err := v.confirmState(ctx, row); err != nil {
		return err
	}
	return fmt.Errorf("%w: %v", ErrMissing, cause) //nolint:errorlint // it is not ErrNotFound
}
