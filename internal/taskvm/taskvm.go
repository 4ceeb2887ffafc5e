// Package taskvm gives each task its VM, as the workflow sees it: it acquires, restores, suspends and deletes the VM, and
// connects errand to it. Package fleet decides about VMs without knowing tasks; this package translates between the two.
//
// Start with VMs.Acquire.
package taskvm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/bake"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/vm"
)

// A Fleet creates and deletes VMs; *fleet.Fleet is one.
type Fleet interface {
	Acquire(ctx context.Context, spec fleet.AcquireSpec) (fleet.VM, error)
	Release(ctx context.Context, vm string, why fleet.Reason) error
	Images(ctx context.Context, age time.Duration) ([]fleet.Image, error)
}

// A Store lists tasks; *store.Store is one.
type Store interface {
	Overviews(ctx context.Context) ([]state.TaskOverview, error)
}

// Config is what VMs needs. All fields are required.
type Config struct {
	Fleet Fleet
	Store Store
	Rows  Rows
	// Times returns how long creating and imaging VMs took recently.
	Times func(ctx context.Context) (vm.Times, error)
	// RefusedAt returns when the provider last refused a VM because of a limit of the account; see fleet.Fleet.AccountRefusedAt.
	RefusedAt func() time.Time
	// Disconnect closes errand's connection to a VM that is no longer used.
	Disconnect func(vm string)
	// Provider is the provider's name in the configuration.
	Provider string
	// BaseGroup returns the group whose base image a repository's VMs are created from, if there is one.
	BaseGroup func(repo string) (string, bool)
	Log       zerolog.Logger
}

// VMs gives each task its VM.
type VMs struct{ cfg Config }

// New returns the VMs of all tasks.
func New(cfg Config) *VMs { return &VMs{cfg} }

// Acquire returns the task's VM, and creates or restores it if necessary. It may be repeated after any failure: the fleet
// has a row of each VM. The error is workspace.ErrNoVM,
// workspace.ErrNoSnapshot, or a *vm.LimitError if a limit of VMs is reached.
func (v *VMs) Acquire(ctx context.Context, t *state.Task) (state.VM, error) {
	wants := t.Settings.VM
	spec := fleet.AcquireSpec{
		Task: t.Key, Gen: generation(t),
		Needs: fleet.Needs{VCPU: wants.MinVCPU, MemoryMB: wants.MinMemoryMB, DiskGB: wants.MinDiskGB},
	}
	if a := t.WorkToRestore(); a != nil {
		spec.FromSleep = a.VM
		if a.Mode == settings.SleepSnapshot {
			spec.Image, spec.FromImage = a.Ref, true
		}
	}
	if spec.Image == "" {
		var err error
		if spec.Image, err = v.baseImage(ctx, t); err != nil {
			return state.VM{}, err
		}
	}
	line, err := v.findPlace(ctx, t)
	if err != nil {
		return state.VM{}, err
	}
	if line.mustWait {
		return state.VM{}, v.accountRefusal(ctx, t, line.place)
	}
	spec.Behind = line.behind
	vm, err := v.cfg.Fleet.Acquire(ctx, spec)
	if err != nil {
		return state.VM{}, v.refusal(ctx, t, spec, line.place, err)
	}
	if t.VM != nil && t.VM.Name != vm.Name {
		v.cfg.Disconnect(t.VM.Name)
	}
	return state.VM{
		Name: vm.Name, Provider: v.cfg.Provider, Kind: vm.Kind, Gen: vm.Gen, CreatedAt: vm.CreatedAt,
		Paid: vm.Paid, MicroHour: vm.MicroHour, Currency: vm.Currency, SuspendDuration: v.imagingTime(ctx, t),
	}, nil
}

// standing is where a task stands in the queue for VMs.
type standing struct {
	place  int // from 1
	behind int // the number of tasks that get a VM first and have none intended yet
	// mustWait means that the provider refuses VMs because of a limit of the account, and that those that were deleted since
	// are for the tasks ahead.
	mustWait bool
}

// findPlace returns where the task stands in the queue, or would stand if it had to wait.
func (v *VMs) findPlace(ctx context.Context, t *state.Task) (standing, error) {
	tasks, err := v.cfg.Store.Overviews(ctx)
	if err != nil {
		return standing{}, err
	}
	if !slices.ContainsFunc(tasks, isQueued) {
		return standing{place: 1}, nil
	}
	rows, err := v.cfg.Rows.List(ctx)
	if err != nil {
		return standing{}, err
	}
	first := ahead(waiting(tasks, rows), t.Key)
	s := standing{place: len(first) + 1}
	for _, other := range first {
		if !slices.ContainsFunc(rows, func(r vm.Row) bool { return isIntendedFor(r, []state.TaskOverview{other}) }) {
			s.behind++
		}
	}
	has := slices.ContainsFunc(rows, func(r vm.Row) bool { return r.Task == t.Key && !r.Phase.Over() && r.Gen >= generation(t) })
	s.mustWait = !has && len(first) > 0 && len(first) >= accountRoom(rows, v.cfg.Provider, v.cfg.RefusedAt())
	return s, nil
}

// imagingTime returns how long suspending the task's VM takes if its disk is imaged, which takes minutes; otherwise 0.
func (v *VMs) imagingTime(ctx context.Context, t *state.Task) time.Duration {
	if t.Settings.VM.Sleep != settings.SleepSnapshot {
		return 0
	}
	times, err := v.cfg.Times(ctx)
	if err != nil {
		v.cfg.Log.Warn().Err(err).Msg("failed to read image durations") // the margin of the policy remains
	}
	return vm.Percentile(times.Image, 95)
}

// baseImage returns the newest image that was baked for a task's repository, or "" for none.
func (v *VMs) baseImage(ctx context.Context, t *state.Task) (string, error) {
	group, ok := v.cfg.BaseGroup(t.Repo.FullName())
	if !ok {
		return "", nil
	}
	images, err := v.cfg.Fleet.Images(ctx, time.Minute)
	if err != nil {
		return "", fmt.Errorf("look for the base image of %s: %w", group, err)
	}
	if ready := bake.AvailableImages(images, group); len(ready) > 0 { // the newest first
		return ready[0].ID, nil
	}
	return "", nil
}

// generation returns the number of the task's VM, or of its next one: one more than that of the VM before it.
func generation(t *state.Task) int {
	switch {
	case t.VM == nil:
		return max(len(t.VMs), t.LastVMGen()) + 1
	case t.Fresh:
		return max(len(t.VMs)+1, t.LastVMGen()) + 1
	}
	return t.VM.Gen
}

// Release deletes a VM and closes the connection to it. It may be repeated.
func (v *VMs) Release(ctx context.Context, name string, why state.VMEndReason) error {
	v.cfg.Disconnect(name)
	if why == state.VMEndFresh {
		why = fleet.ReasonFresh
	}
	if !slices.Contains(fleet.Reasons(), why) {
		why = fleet.ReasonFailed
	}
	return v.cfg.Fleet.Release(ctx, name, why)
}

// IsGone reports whether an error means that a VM, or the run on it, is lost for good.
func IsGone(err error) bool {
	return errors.Is(err, fleet.ErrEnded) || errors.Is(err, fleet.ErrNotFound) || errors.Is(err, runnerctl.ErrUnknownRun) ||
		errors.Is(err, remote.ErrHostKey)
}
