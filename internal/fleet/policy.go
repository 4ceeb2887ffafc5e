package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// Rows stores the intent and state of each VM. [vm.Rows] implements it.
type Rows interface {
	Intend(ctx context.Context, in vm.Intent, caps vm.Caps) (vm.Row, error)
	Apply(ctx context.Context, name string, e vm.Event) (vm.Row, bool, error)
	Get(ctx context.Context, name string) (vm.Row, error)
	List(ctx context.Context) ([]vm.Row, error)
	Prune(ctx context.Context, before time.Time) (int, error)
	SpanAllowed(ctx context.Context, row vm.Row, caps vm.Caps) error
	Times(ctx context.Context) (vm.Times, error)
	BookImages(ctx context.Context, images []vm.Image, whole bool) error
	Since(ctx context.Context) (time.Time, error)
	FirstGen(ctx context.Context) (int, error)
}

// Store stores small values by name and reads tasks. [store.Store] implements it.
type Store interface {
	SetFact(ctx context.Context, name string, value []byte) error
	Fact(ctx context.Context, name string) ([]byte, error)
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
}

// Pool configures the use of VMs beyond one task.
type Pool struct {
	// Insurance is the number of parked VMs that may be kept beyond their paid hour if the provider refused a VM for
	// lack of capacity in the last 24 h (`hetzner.insurance`).
	Insurance int
	// Reuse keeps the VM of an ended task, if at least 15 min of its hour remain, for the next task of the same
	// repository, which gets it with a fresh disk (`hetzner.reuse`).
	Reuse bool
}

// Config is the policy for a provider. Zero values select the defaults.
type Config struct {
	// Deployment distinguishes the VMs of this errand from those of others in the same account.
	Deployment string
	// Rows stores the VMs, Store all other data of the fleet. Both are required.
	Rows  Rows
	Store Store
	// Caps limit the number and cost of VMs. Default: 3 VMs at once, 10 new ones per hour.
	Caps vm.Caps
	// Candidates may be ordered from a [Market], the preferred one first.
	Candidates []Candidate
	// Paid is the billing span of a [Market]'s VMs. Default 1 h.
	Paid time.Duration
	// Pool configures the use of VMs beyond one task.
	Pool Pool
	// BaseGroups are the configured groups of base images; images of other groups are reaped. Nil keeps all.
	BaseGroups []string
	// Contact makes a running VM usable; nil if VMs are usable as soon as they run.
	Contact Contact
	// UserData returns a VM's user data for the first boot; nil for none.
	UserData func(row vm.Row) ([]byte, error)

	// Grace is how long a VM may have no owner before the reaper deletes it. Default 15 min.
	Grace time.Duration
	// Tick is the interval of checks while a VM is coming up or going down. Default 5 s.
	Tick time.Duration
	// ReapEvery is the interval of the reapers, at most half of Grace. Default 5 min for a [Market], otherwise 1 min:
	// reaping also signals VMs on this host that errand is alive.
	ReapEvery time.Duration
	// BootWithin limits the time until a VM runs, and again until it is usable. RestoreWithin does the same for a VM
	// created from the image of a suspended one. Both grow with measured times. Default 5 and 15 min.
	BootWithin, RestoreWithin time.Duration
	// SetUpWithin limits the first boot of a VM that responds and reports that its first boot has not finished. Default
	// 30 min.
	SetUpWithin time.Duration
	// MaxAge is when a VM is deleted regardless of its owner (LabelNotAfter). Default 7 days.
	MaxAge time.Duration

	// SSH configures connections to VMs.
	SSH remote.Config
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Sleep waits for d or until ctx ends, for tests with their own clock. The default is a timer that a change of a
	// row cuts short.
	Sleep func(ctx context.Context, d time.Duration) error
	// Log gets one line for every created or deleted VM.
	Log zerolog.Logger
	// DisabledSafeguards disables safeguards, so that tests can show that their absence is noticed. No program or
	// configuration sets it.
	DisabledSafeguards []Safeguard
}

// A Safeguard is a part of the protection against leaked VMs.
type Safeguard string

// Safeguards that tests disable.
const (
	SafeguardReaper     Safeguard = "reaper"     // comparison of the provider's lists with the rows
	SafeguardTombstones Safeguard = "tombstones" // a VM whose row is gone has no owner
)

func (cfg Config) withDefaults(market bool) Config {
	or := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	or(&cfg.Grace, 15*time.Minute)
	or(&cfg.Tick, 5*time.Second)
	if market {
		or(&cfg.ReapEvery, 5*time.Minute)
	}
	or(&cfg.ReapEvery, time.Minute)
	cfg.ReapEvery = min(cfg.ReapEvery, max(cfg.Grace/2, 10*time.Millisecond))
	or(&cfg.BootWithin, 5*time.Minute)
	or(&cfg.RestoreWithin, 15*time.Minute)
	or(&cfg.SetUpWithin, 30*time.Minute)
	or(&cfg.MaxAge, 7*24*time.Hour)
	or(&cfg.Paid, time.Hour)
	if cfg.Caps.VMs <= 0 {
		cfg.Caps.VMs = 3
	}
	if cfg.Caps.PerHour <= 0 {
		cfg.Caps.PerHour = 10
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return cfg
}

// NoCapacityError explains why no VM is available. It matches [ErrNoCapacity] and its cause.
type NoCapacityError struct {
	// Reason is a clause for users.
	Reason string
	// Cause is a *vm.LimitError or the provider's last error; it may be nil.
	Cause error
}

func (e *NoCapacityError) Error() string { return fmt.Sprintf("%v: %s", ErrNoCapacity, e.Reason) }

// Is makes errors.Is(err, ErrNoCapacity) true.
func (e *NoCapacityError) Is(target error) bool { return target == ErrNoCapacity }

// Unwrap returns the cause.
func (e *NoCapacityError) Unwrap() error { return e.Cause }

// Hint returns advice for users.
func (e *NoCapacityError) Hint() string {
	var limit *vm.LimitError
	switch {
	case errors.As(e.Cause, &limit):
		return limit.Hint()
	case errors.Is(e.Cause, errRowEnded):
		return "errand retries automatically. The log has the error of each VM; the usual causes are the first boot (`hetzner.setup`) and the firewall (`hetzner.ssh_from`)."
	case errors.Is(e.Cause, ErrQuota):
		return "It starts automatically when another VM has been deleted. Request a higher limit (on servers, CPUs or addresses) from the provider, or lower `limits.vms` below it."
	case e.Cause != nil:
		return "errand retries automatically. More candidates (types and locations) improve the chances."
	}
	return "It starts automatically when a VM is free. Raise `limits.vms` to allow more at once."
}

// VMName derives the name of an owner's VM. It is deterministic, valid for every provider, and different for different
// owners.
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

// labelValue converts an owner to a label value that every provider accepts.
func labelValue(owner string) string {
	value := strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || r >= 'A' && r <= 'Z' {
			return r
		}
		return nameRune(r)
	}, owner)
	return strings.Trim(value[:min(len(value), maxNameLen)], "-_.")
}
