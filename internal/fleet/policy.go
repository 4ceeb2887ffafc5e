package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/remote"
)

// Config is the policy around a provider.
type Config struct {
	// Deployment tells the VMs of this errand from those of another one in the same
	// account.
	Deployment string
	// MaxVMs is how many VMs may exist at once (`limits.vms`). Default 3.
	MaxVMs int
	// Grace is how long a VM may be without an owner before the reaper deletes it.
	// Default 15 min.
	Grace time.Duration
	// SSH is how VMs are reached.
	SSH remote.Config
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Log gets one line for every VM that comes or goes.
	Log zerolog.Logger
}

// Fleet is the VMs of one deployment. It is safe for concurrent use and keeps
// nothing that a restart would lose: names are derived, the rest is the
// provider's knowledge.
type Fleet struct {
	provider Provider
	cfg      Config
	pool     *remote.Pool

	mu      sync.Mutex
	making  map[string]int // names being created now, by callers
	sighted map[string]sighting
}

// New returns the fleet of a provider. Close it at the end.
func New(p Provider, cfg Config) *Fleet {
	if cfg.MaxVMs <= 0 {
		cfg.MaxVMs = 3
	}
	if cfg.Grace <= 0 {
		cfg.Grace = 15 * time.Minute
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	f := &Fleet{provider: p, cfg: cfg, making: map[string]int{}, sighted: map[string]sighting{}}
	f.pool = remote.NewPool(cfg.SSH, f.endpoint, 0)
	return f
}

// Close closes the connections. The VMs stay.
func (f *Fleet) Close() { f.pool.Close() }

// NoCapacityError says why there is no VM now. It matches ErrNoCapacity.
type NoCapacityError struct {
	Reason string
}

func (e *NoCapacityError) Error() string { return fmt.Sprintf("%v: %s", ErrNoCapacity, e.Reason) }

// Is makes errors.Is(err, ErrNoCapacity) true.
func (e *NoCapacityError) Is(target error) bool { return target == ErrNoCapacity }

// Hint says what a person can do about it.
func (e *NoCapacityError) Hint() string {
	return "It starts by itself when a VM is free; raise `limits.vms` to have more at once."
}

// VMName derives the name of an owner's VM. It is the same for the same arguments
// for ever, valid for every provider, and different for different owners.
func VMName(deployment, owner string, gen int) string {
	sum := sha256.Sum256([]byte(deployment + "\x00" + owner))
	suffix := "-" + hex.EncodeToString(sum[:4]) + "-g" + strconv.Itoa(gen)
	slug := strings.Trim(strings.Map(nameRune, "errand-"+deployment+"-"+owner), "-")
	if room := maxNameLen - len(suffix); len(slug) > room {
		slug = strings.TrimRight(slug[:room], "-")
	}
	return slug + suffix
}

func nameRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
		return r
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	default:
		return '-'
	}
}

// Acquire returns the running VM of an owner (a task's key) and generation, making
// it if there is none. It may be called again at any time and gives the same VM.
// ErrNoCapacity (with its reason, see NoCapacityError) means wait; ErrEnded means
// release it and go on with the next generation.
func (f *Fleet) Acquire(ctx context.Context, owner string, gen int, needs Needs) (VM, error) {
	name := VMName(f.cfg.Deployment, owner, gen)
	done, err := f.reserve(ctx, name)
	if err != nil {
		return VM{}, fmt.Errorf("acquire VM for %s: %w", owner, err)
	}
	defer done()
	spec := Spec{Name: name, Needs: needs, Labels: map[string]string{
		LabelDeployment: f.cfg.Deployment, LabelOwner: labelValue(owner), LabelGeneration: strconv.Itoa(gen),
	}}
	vm, err := f.provider.Create(ctx, spec)
	if err != nil {
		return VM{}, fmt.Errorf("acquire VM for %s: %w", owner, err)
	}
	f.cfg.Log.Info().Str("vm", vm.Name).Str("owner", owner).Str("kind", vm.Kind).Msg("VM acquired")
	return vm, nil
}

// labelValue makes an owner fit for a label of any provider.
func labelValue(owner string) string {
	value := strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || r >= 'A' && r <= 'Z' {
			return r
		}
		return nameRune(r)
	}, owner)
	return strings.Trim(value[:min(len(value), maxNameLen)], "-_.")
}

// reserve takes one of the places for name until done is called. A VM that exists
// has its place already. The lock is held while the provider lists, so that two
// callers cannot both take the last place.
func (f *Fleet) reserve(ctx context.Context, name string) (done func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	vms, err := f.provider.List(ctx)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for making := range f.making {
		taken[making] = true
	}
	for _, vm := range vms {
		if vm.State != StateEnded || vm.Name == name {
			taken[vm.Name] = true
		}
	}
	if !taken[name] && len(taken) >= f.cfg.MaxVMs {
		return nil, &NoCapacityError{Reason: fmt.Sprintf("%d of %d VMs are in use", len(taken), f.cfg.MaxVMs)}
	}
	f.making[name]++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.making[name]--; f.making[name] == 0 {
			delete(f.making, name)
		}
	}, nil
}

// Release deletes a VM with all that is on it. It may be called again, also for a
// VM that does not exist. why must be one of Reasons.
func (f *Fleet) Release(ctx context.Context, name string, why Reason) error {
	if !why.Valid() {
		return fmt.Errorf("release VM %s: reason %q is not in the list", name, why)
	}
	f.pool.Forget(name)
	if err := f.provider.Delete(ctx, name, why); err != nil {
		return fmt.Errorf("release VM %s: %w", name, err)
	}
	f.cfg.Log.Info().Str("vm", name).Str("reason", string(why)).Msg("VM released")
	return nil
}

// Client returns the live connection to a VM, connecting if there is none. The
// connection belongs to the fleet: callers do not close it. ErrNotFound and
// ErrEnded say that there will be none.
func (f *Fleet) Client(ctx context.Context, name string) (*remote.Client, error) {
	return f.pool.Client(ctx, name)
}

func (f *Fleet) endpoint(ctx context.Context, name string) (remote.Endpoint, error) {
	vm, err := f.provider.Get(ctx, name)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			return remote.Endpoint{}, err
		}
		return remote.Endpoint{}, fmt.Errorf("%w: %w", remote.ErrUnreachable, err)
	}
	if vm.State == StateEnded {
		return remote.Endpoint{}, fmt.Errorf("%w: %s: %s", ErrEnded, vm.Ended, vm.Detail)
	}
	return vm.Endpoint, nil
}

// Get returns what the provider knows of one VM.
func (f *Fleet) Get(ctx context.Context, name string) (VM, error) { return f.provider.Get(ctx, name) }

// List returns all VMs of this deployment, ended ones too.
func (f *Fleet) List(ctx context.Context) ([]VM, error) { return f.provider.List(ctx) }

// Describe says what a VM of this fleet is.
func (f *Fleet) Describe(ctx context.Context) (Description, error) { return f.provider.Describe(ctx) }
