package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/state"
)

// Rows keeps what is intended and known about VMs. [state.VMRows] implements it.
type Rows interface {
	Intend(ctx context.Context, in state.VMIntent, caps state.VMCaps) (state.VMRow, error)
	Apply(ctx context.Context, name string, e state.VMEvent) (state.VMRow, bool, error)
	Get(ctx context.Context, name string) (state.VMRow, error)
	List(ctx context.Context) ([]state.VMRow, error)
	Prune(ctx context.Context, before time.Time) (int, error)
	SpanAllowed(ctx context.Context, row state.VMRow, caps state.VMCaps) error
	Times(ctx context.Context) (state.VMTimes, error)
	BookImages(ctx context.Context, images []state.VMImage, whole bool) error
	Since(ctx context.Context) (time.Time, error)
}

// Store remembers small facts and finds the task of a VM. [state.Store] implements it.
type Store interface {
	SetFact(ctx context.Context, name string, value []byte) error
	Fact(ctx context.Context, name string) ([]byte, error)
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
}

// Pool is what happens to VMs beyond one task's need.
type Pool struct {
	// Insurance is how many parked VMs may outlive their paid hour while the provider has refused one
	// for lack of capacity in the last 24 h (`hetzner.insurance`).
	Insurance int
	// Reuse keeps the VM of an ended task, if at least 15 min of its hour are left, for the next task of
	// the same repository, which gets it with a fresh disk (`hetzner.reuse`).
	Reuse bool
}

// Config is the policy around a provider. Zero values mean the defaults.
type Config struct {
	// Deployment tells the VMs of this errand from those of another one in the same
	// account.
	Deployment string
	// Store has the rows. It is needed.
	// Rows keeps the VMs, Store everything else that the fleet remembers.
	Rows  Rows
	Store Store
	// Caps bound how many VMs there may be and what they may cost. Default: 3 VMs at once, 10 new ones in
	// an hour.
	Caps state.VMCaps
	// Candidates are what may be ordered of a Market, the best first.
	Candidates []Candidate
	// Paid is the span that a Market's VMs are paid for at once. Default 1 h.
	Paid time.Duration
	// Pool is what happens to VMs beyond one task's need.
	Pool Pool
	// BaseGroups are the configured groups of base images; images of other groups are reaped. nil keeps all.
	BaseGroups []string
	// Contact makes a VM that runs usable; nil where it is as soon as it runs.
	Contact Contact
	// UserData is what a VM gets at its first boot; nil for nothing.
	UserData func(row state.VMRow) ([]byte, error)

	// Grace is how long a VM may be without an owner before the reaper deletes it.
	// Default 15 min.
	Grace time.Duration
	// Tick is the pause between two looks at the provider while a VM is on its way. Default 5 s.
	Tick time.Duration
	// ReapEvery is the pause between two passes of the reapers, and at most half of Grace. Default 5 min
	// for a Market, else 1 min: it is also the sign to the VMs on this host that somebody wants them.
	ReapEvery time.Duration
	// BootWithin is how long a VM may take until it runs, and again until it can be used; RestoreWithin
	// likewise for one that is made from an image of a sleeping VM. Both grow with what was measured.
	// Default 5 and 15 min.
	BootWithin, RestoreWithin time.Duration
	// SetUpWithin is how long a VM may take that answers and says that its first boot goes on. Default 30 min.
	SetUpWithin time.Duration
	// MaxAge is when a VM goes whoever owns it (LabelNotAfter). Default 7 days.
	MaxAge time.Duration

	// SSH is how VMs are reached.
	SSH remote.Config
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Sleep waits, or until ctx ends; for tests with a clock of their own. Default is a timer, which the
	// change of a row cuts short.
	Sleep func(ctx context.Context, d time.Duration) error
	// Log gets one line for every VM that comes or goes.
	Log zerolog.Logger
	// Without leaves safeguards out, so that tests can show that the lack would be noticed. No program
	// sets it and no configuration reaches it.
	Without []Safeguard
}

// Safeguard is a part of what keeps VMs from leaking.
type Safeguard string

// The safeguards that tests leave out.
const (
	SafeguardReaper     Safeguard = "reaper"     // what the provider lists is compared with the rows
	SafeguardTombstones Safeguard = "tombstones" // a VM whose row says that it is gone has no owner
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

// Fleet is the VMs of one deployment. It is safe for concurrent use and keeps
// nothing that a restart would lose but sightings and what may be asked again.
type Fleet struct {
	provider Provider
	rows     Rows
	store    Store
	cfg      Config
	pool     *remote.Pool

	polling  sync.Mutex    // held by who looks at the provider for all
	deleting sync.Mutex    // held by the pass that deletes VMs in the background
	listing  chan struct{} // has an element while somebody lists images for all

	mu      sync.Mutex
	polled  time.Time                // when that was
	checked time.Time                // when the provider was last asked about VMs that are on their way up
	coming  map[string]VM            // what is known of them, by name
	recheck retry                    // when that is tried again after it has failed
	listed  []Image                  // the last list of images
	read    time.Time                // when it was read
	ending  map[string]chan struct{} // VMs whose deletion is under way
	money   string                   // the currency of the account
	// usable is the image that was found to be so last, at usableAt.
	usable   Image
	usableAt time.Time
	changed  chan struct{}       // closed and made anew when a row changes
	refused  map[Candidate]deny  // lately, by the provider
	retries  map[string]retry    // of deletions, by VM
	seen     map[string]sawVM    // a Market's facts, so that it is not asked again and again
	sighted  map[string]sighting // by the reapers
	alarms   map[string]Alarm
	unread   map[string]int // further passes in which the list of a kind could not be read
	limit    accountLimit
	unmet    map[string]error     // why the last first contact with a VM failed
	missed   map[string]time.Time // since when the provider does not find a VM, see confirm
}

// New returns the fleet of a provider. Close it at the end.
func New(p Provider, cfg Config) *Fleet {
	_, market := p.(Market)
	cfg = cfg.withDefaults(market)
	f := &Fleet{
		provider: p, rows: cfg.Rows, store: cfg.Store, cfg: cfg, changed: make(chan struct{}), listing: make(chan struct{}, 1),
		coming: map[string]VM{}, ending: map[string]chan struct{}{}, refused: map[Candidate]deny{}, retries: map[string]retry{}, seen: map[string]sawVM{},
		sighted: map[string]sighting{}, alarms: map[string]Alarm{}, unmet: map[string]error{}, missed: map[string]time.Time{}, unread: map[string]int{},
	}
	f.pool = remote.NewPool(cfg.SSH, f.endpoint, 0)
	return f
}

// Close closes the connections. The VMs stay.
func (f *Fleet) Close() { f.pool.Close() }

// NoCapacityError says why there is no VM now. It matches ErrNoCapacity, and the cap or the refusals
// behind it.
type NoCapacityError struct {
	// Reason is a clause for people.
	Reason string
	// Cause is a *state.VMLimitError, or what the provider said last; nil if there is nothing to add.
	Cause error
}

func (e *NoCapacityError) Error() string { return fmt.Sprintf("%v: %s", ErrNoCapacity, e.Reason) }

// Is makes errors.Is(err, ErrNoCapacity) true.
func (e *NoCapacityError) Is(target error) bool { return target == ErrNoCapacity }

// Unwrap returns the cause.
func (e *NoCapacityError) Unwrap() error { return e.Cause }

// Hint says what a person can do about it.
func (e *NoCapacityError) Hint() string {
	var limit *state.VMLimitError
	switch {
	case errors.As(e.Cause, &limit):
		return limit.Hint()
	case errors.Is(e.Cause, errLifeOver):
		return "It is tried again by itself. The operator finds in the log what each said; what is done at the first boot (`hetzner.setup`) and who may reach VMs (`hetzner.ssh_from`) are the usual causes."
	case errors.Is(e.Cause, ErrQuota):
		return "It starts by itself when another VM is gone; ask the provider for a higher limit (on servers, CPUs or addresses), or lower `limits.vms` below it."
	case e.Cause != nil:
		return "It is tried again by itself; more candidates (types and locations) make it likelier to get one."
	}
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

// Client returns the live connection to a VM, connecting if there is none. The
// connection belongs to the fleet: callers do not close it. ErrNotFound and
// ErrEnded say that there will be none.
func (f *Fleet) Client(ctx context.Context, name string) (*remote.Client, error) {
	return f.pool.Client(ctx, name)
}

// runnerSuffix marks, in the pool, the connection of the user that keeps the runs. No name of a VM has it.
const runnerSuffix = "/runner"

// RunnerClient is Client for the user that keeps the records of runs and the tether: the one of FactRunnerLogin, or
// the agent's where the VM has no other.
func (f *Fleet) RunnerClient(ctx context.Context, name string) (*remote.Client, error) {
	vm, err := f.Get(ctx, name)
	if err != nil { // the agent's user knows no run of the other: never ask one in place of the other
		return nil, fmt.Errorf("connect to VM %s: %w", name, err)
	}
	if vm.Facts[FactRunnerLogin] != "" {
		name += runnerSuffix
	}
	return f.pool.Client(ctx, name)
}

// Describe says what a VM of this fleet is.
func (f *Fleet) Describe(ctx context.Context) (Description, error) { return f.provider.Describe(ctx) }

// lacks reports whether a safeguard is left out.
func (f *Fleet) lacks(s Safeguard) bool { return slices.Contains(f.cfg.Without, s) }
