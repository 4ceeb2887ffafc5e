package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/remote"
)

// A Fleet manages the VMs of one deployment. It is safe for concurrent use. A restart loses only sightings and cached
// data.
//
// Its parts have one subject each. A part uses only the parts above it in the list.
type Fleet struct {
	*core
	inventory  *inventory
	images     *imageStore
	limit      *accountLimit
	deletion   *deleter
	orders     *orderer
	standby    *standby
	suspension *suspender
	starts     *starter
	reaping    *reaper
}

// New returns the fleet of a provider. The caller must close it.
func New(p Provider, cfg Config) *Fleet {
	_, market := p.(Market)
	cfg = cfg.withDefaults(market)
	c := &core{provider: p, rows: cfg.Rows, store: cfg.Store, cfg: cfg, changed: make(chan struct{})}
	f := &Fleet{core: c, limit: &accountLimit{core: c}}
	f.inventory = newInventory(c)
	f.images = &imageStore{core: c, listing: make(chan struct{}, 1)}
	f.deletion = newDeleter(c, f.inventory)
	f.orders = &orderer{core: c, images: f.images, limit: f.limit, deletion: f.deletion, refused: map[Candidate]candidateRefusal{}}
	f.standby = &standby{core: c, inventory: f.inventory, deletion: f.deletion, orders: f.orders}
	f.suspension = &suspender{core: c, inventory: f.inventory, images: f.images, limit: f.limit, deletion: f.deletion}
	f.starts = newStarter(c, f.inventory)
	f.reaping = &reaper{
		core: c, inventory: f.inventory, images: f.images, limit: f.limit, deletion: f.deletion,
		sighted: map[string]sighting{}, alarms: map[string]Alarm{}, unreadablePasses: map[string]int{},
	}
	return f
}

// Close closes the connections. The VMs stay.
func (f *Fleet) Close() { f.inventory.pool.Close() }

// Get returns a VM: the provider's facts with the host keys of its row. A [Market]'s facts may be a quarter of an hour
// old, and older while it does not respond; Client and Acquire check whether the VM still exists. ErrMissing means that
// the provider did not find the VM and that this must be confirmed.
func (f *Fleet) Get(ctx context.Context, name string) (VM, error) {
	return f.inventory.get(ctx, name, factsTTL)
}

// List returns all VMs of this deployment, including ended ones.
func (f *Fleet) List(ctx context.Context) ([]VM, error) {
	return f.inventory.list(ctx)
}

// Images lists this deployment's images completely, or returns an error. The list may be up to within old, so that
// concurrent callers share one request.
func (f *Fleet) Images(ctx context.Context, within time.Duration) ([]Image, error) {
	return f.images.list(ctx, within)
}

// Release deletes a VM with all its data, or keeps it for the next task of its repository (see [Pool]). It may be
// called again, also for a VM that does not exist. why must be one of [Reasons].
func (f *Fleet) Release(ctx context.Context, name string, why Reason) error {
	return f.deletion.release(ctx, name, why)
}

// Snapshot creates an image of the disk of a resting VM and returns it when it is available and stored. The VM is off
// afterwards: the caller releases it with ReasonAsleep, and the row keeps the image until ForgetImage. It may be called
// again and continues where it stopped. After an error the VM is usable again, or will be after the next Acquire.
func (f *Fleet) Snapshot(ctx context.Context, name string) (Image, error) {
	return f.suspension.snapshot(ctx, name)
}

// ForgetImage deletes the image created by Snapshot when its task has been restored from it or never will be. It may be
// called again.
func (f *Fleet) ForgetImage(ctx context.Context, id string) error {
	return f.suspension.forgetImage(ctx, id)
}

// Outlives reports whether a parked VM may be kept beyond its paid span, in case the provider has no capacity when its
// task continues: capacity was refused in the last 24 h, the VM is among the `hetzner.insurance` oldest parked ones,
// the caps allow another span, and the VM does not reach its maximum age soon, because its work is saved half a day
// before that.
func (f *Fleet) Outlives(ctx context.Context, name string) (bool, error) {
	return f.standby.survivesRelease(ctx, name)
}

// SpanAllowed returns a *vm.LimitError if the caps forbid another paid span of a VM. A VM without a row or cost is
// always allowed.
func (f *Fleet) SpanAllowed(ctx context.Context, name string) error {
	return f.standby.spanAllowed(ctx, name)
}

// ReapPlan examines all resources and returns those to delete with the reasons, without acting. Each kind is judged by
// its own complete list: if the list of a kind could not be read nothing of this kind is deleted, and other kinds are
// not affected. It returns an error if the store cannot be read. Each call counts as a sighting.
func (f *Fleet) ReapPlan(ctx context.Context, opts ReapOptions) (ReapPlan, error) {
	return f.reaping.newPlan(ctx, opts)
}

// Reap deletes exactly the items in plan.Delete. It returns the deleted ones; failures are in the error and in the next
// plan.
func (f *Fleet) Reap(ctx context.Context, plan ReapPlan) ([]ReapItem, error) {
	return f.reaping.execute(ctx, plan)
}

// LastRefusal returns the latest order that the provider refused, or the zero value if none was refused since the start or the last success.
func (f *Fleet) LastRefusal() OrderRefusal { return f.orders.latestRefusal() }

// Alarms returns the current alarms, for status pages and metrics.
func (f *Fleet) Alarms() []Alarm {
	return f.reaping.currentAlarms()
}

// AccountRefusedAt returns when the provider last refused to create a VM because of a limit of the account. It is zero if
// it never did, or has created one since; a restart forgets it.
func (f *Fleet) AccountRefusedAt() time.Time { return f.limit.refusedAt() }

// Wipe deletes every VM of the deployment at the provider without updating rows, for the end of a demo or test after
// the store is closed.
func (f *Fleet) Wipe(ctx context.Context, why Reason) error {
	return f.deletion.wipe(ctx, why)
}

// Client returns the live connection to a VM, connecting if necessary. The fleet owns the connection; callers must not
// close it. ErrNotFound and ErrEnded are permanent.
func (f *Fleet) Client(ctx context.Context, name string) (*remote.Client, error) {
	return f.inventory.pool.Client(ctx, name)
}

// runnerSuffix marks the pool's connection of the runner's user. No VM name contains it.
const runnerSuffix = "/runner"

// RunnerClient is Client for the user that owns run records and the tether: that of FactRunnerLogin, or the agent's if
// the VM has no other.
func (f *Fleet) RunnerClient(ctx context.Context, name string) (*remote.Client, error) {
	vm, err := f.inventory.get(ctx, name, factsTTL)
	if err != nil { // the agent's user cannot access the other's runs, so never substitute it
		return nil, fmt.Errorf("connect to VM %s: %w", name, err)
	}
	if vm.Facts[FactRunnerLogin] != "" {
		name += runnerSuffix
	}
	return f.inventory.pool.Client(ctx, name)
}

// Describe describes the fleet's VMs.
func (f *Fleet) Describe(ctx context.Context) (Description, error) { return f.provider.Describe(ctx) }

// Run advances the rows: it checks the provider each Config.Tick while some VM is coming up or being deleted, and reaps
// each Config.ReapEvery. It returns when ctx ends. Only one fleet of a deployment may run.
func (f *Fleet) Run(ctx context.Context) error {
	var reaped time.Time
	var deleting sync.WaitGroup
	defer deleting.Wait()
	for {
		if err := f.starts.poll(ctx); err != nil && ctx.Err() == nil {
			f.cfg.Log.Warn().Err(err).Msg("failed to check VMs; retrying")
		}
		f.deletion.deleteInBackground(ctx, &deleting)
		if now := f.cfg.Now(); now.Sub(reaped) >= f.cfg.ReapEvery {
			reaped = now
			f.reaping.runPass(ctx)
		}
		if err := f.waitOrChange(ctx, min(f.cfg.Tick, f.cfg.ReapEvery)); err != nil {
			return nil //nolint:nilerr // ctx has ended
		}
	}
}
