package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// vms gives tasks their VMs: it translates between tasks and the fleet.
type vms struct{ s *Server }

// Acquire returns the task's VM. A repeated call finds what an earlier one made: the fleet keeps a row of
// each.
func (v vms) Acquire(ctx context.Context, t *state.Task) (state.VM, error) {
	wants := t.Settings.VM
	spec := fleet.AcquireSpec{
		Task: t.Key, Gen: generation(t),
		Needs: fleet.Needs{VCPU: wants.MinVCPU, MemoryMB: wants.MinMemoryMB, DiskGB: wants.MinDiskGB},
	}
	if a := t.Wakes(); a != nil {
		spec.FromSleep = a.VM
		if a.Mode == state.SleepSnapshot {
			spec.Image, spec.FromImage = a.Ref, true
		}
	}
	if spec.Image == "" {
		var err error
		if spec.Image, err = v.s.baseImage(ctx, t); err != nil {
			return state.VM{}, err
		}
	}
	vm, err := v.s.fleet.Acquire(ctx, spec)
	if err != nil {
		return state.VM{}, v.refused(ctx, t, spec, err)
	}
	if t.VM != nil && t.VM.Name != vm.Name {
		v.s.keeper.Forget(t.VM.Name)
	}
	return state.VM{
		Name: vm.Name, Provider: v.s.cfg.Provider, Kind: vm.Kind, Gen: vm.Gen, CreatedAt: vm.CreatedAt,
		Paid: vm.Paid, MicroHour: vm.MicroHour, Currency: vm.Currency, PutAway: v.putAway(ctx, t),
	}, nil
}

// putAway is how long it takes to put the task's VM to sleep: images of whole disks take minutes.
func (v vms) putAway(ctx context.Context, t *state.Task) time.Duration {
	if t.Settings.VM.Sleep != state.SleepSnapshot {
		return 0
	}
	times, err := v.s.store.VMs.Times(ctx)
	if err != nil {
		v.s.opts.Log.Warn().Err(err).Msg("look how long images take") // the policy's margin stays
	}
	return vm.Percentile(times.Image, 95)
}

// refused says what an error of the fleet means to the task: workspace.ErrNoVM with what people need of it,
// or a *vm.LimitError, which says more than that there is none now.
func (v vms) refused(ctx context.Context, t *state.Task, spec fleet.AcquireSpec, err error) error {
	var limit *vm.LimitError
	var none *fleet.NoCapacityError
	switch {
	case spec.FromImage && errors.Is(err, fleet.ErrNotFound):
		return fmt.Errorf("%w: %w", workspace.ErrNoSnapshot, err)
	case errors.As(err, &limit) && limit.Limit == vm.LimitVMs:
		return fmt.Errorf("%w: %s%s", workspace.ErrNoVM, limit.Reason, v.holders(ctx, t))
	case errors.As(err, &limit):
		return limit
	case errors.As(err, &none):
		return fmt.Errorf("%w: %s. %s", workspace.ErrNoVM, none.Reason, none.Hint())
	case errors.Is(err, fleet.ErrUnauthorized), errors.Is(err, fleet.ErrInvalid):
		v.s.opts.Log.Error().Err(err).Str("task", t.Key.String()).Msg("get a VM: the operator has to correct the configuration")
		return fmt.Errorf("%w: %s", workspace.ErrNoVM, operatorsPart(v.s.cfg.Provider, err))
	}
	return err
}

// operatorsPart says to people what only the operator can mend. The task waits meanwhile.
func operatorsPart(provider string, err error) string {
	if errors.Is(err, fleet.ErrUnauthorized) {
		return fmt.Sprintf("the provider refuses errand's token; the operator has to correct `%s.token`, then it goes on by itself", provider)
	}
	return fmt.Sprintf("the provider refuses what errand asks for; the operator finds why in the log, and has to correct `%s` in the configuration", provider)
}

// maxHolders is how many tasks are named that have the VMs which another one waits for.
const maxHolders = 3

// holders says which tasks have VMs now, those first that keep theirs until a person acts. Tasks of other
// repositories are counted and not named: not everybody who reads this may know of them.
func (v vms) holders(ctx context.Context, waiting *state.Task) string {
	tasks, err := v.s.store.Glances(ctx)
	if err != nil {
		v.s.opts.Log.Warn().Err(err).Msg("look for who has the VMs")
		return "" // the reason is said without them
	}
	var stuck, others []string
	elsewhere := 0
	for _, t := range tasks {
		switch name := fmt.Sprintf("#%d (%s)", t.Key.Issue, words.Phase(t.Phase)); {
		case !t.HasVM || t.Key == waiting.Key:
		case t.Key.Repo != waiting.Key.Repo:
			elsewhere++
		case t.Phase == state.PhaseFailed || t.Phase == state.PhaseAwaitingAnswer:
			stuck = append(stuck, name)
		default:
			others = append(others, name)
		}
	}
	named := append(stuck, others...)
	if more := len(named) - maxHolders; more > 0 {
		named = append(named[:maxHolders], fmt.Sprintf("%d more here", more))
	}
	if elsewhere > 0 {
		named = append(named, words.Many(elsewhere, "task")+" of other repositories")
	}
	if len(named) == 0 {
		return ""
	}
	s := ", by " + strings.Join(named, ", ")
	if len(stuck) > 0 {
		s += "; an answer, `retry` or `cancel` there gives one back sooner"
	}
	return s
}

// generation numbers the VM that the task has, or gets next: one more than those before it.
func generation(t *state.Task) int {
	switch {
	case t.VM == nil:
		return len(t.VMs) + 1
	case t.Fresh:
		return len(t.VMs) + 2
	}
	return t.VM.Gen
}

// owner is the task's name among the VMs.
func owner(k state.TaskKey) string { return fmt.Sprintf("%d-%d", k.Repo, k.Issue) }

// Release deletes a VM and lets its tether go.
func (v vms) Release(ctx context.Context, name, why string) error {
	v.s.keeper.Forget(name)
	reason := fleet.Reason(why)
	if why == "fresh" {
		reason = fleet.ReasonFresh
	}
	if !reason.Valid() {
		reason = fleet.ReasonFailed
	}
	return v.s.fleet.Release(ctx, name, reason)
}

// line is the tether as the steps see it.
type line struct{ s *Server }

// Ensure has a VM's tether attached.
func (l line) Ensure(ctx context.Context, vm string, task state.TaskKey) error {
	return l.s.keeper.Ensure(ctx, tether.Peer{VM: vm, Task: task})
}

// Forget lets it go.
func (l line) Forget(vm string) { l.s.keeper.Forget(vm) }

// RunToken is what a run shows at its tether.
func (l line) RunToken(run string) string { return l.s.tether.RunToken(run) }

// VMToken is what the runner shows there.
func (l line) VMToken(vm string) string { return l.s.tether.VMToken(vm) }

// Record stores a usage record in the run and its task.
func (l line) Record(ctx context.Context, u gateway.UsageRecord) error {
	spent := state.Event{Kind: state.EventSpent, Task: u.Task, Run: u.Run, Money: &u.Cost, Waiting: u.Wait}
	_, err := l.s.store.Apply(ctx, spent, store.Ack{Call: u.Reservation})
	return err
}

// CapReached returns what everything that costs money has to wait for, or nil; with free only caps on tokens count.
func (l line) CapReached(ctx context.Context, open, need state.Money, free bool) (*state.Waiting, error) {
	return l.s.store.Held(ctx, l.caps(free), open, need, l.s.opts.Now())
}

// Left is what the caps of all tasks together leave.
func (l line) Left(ctx context.Context, open state.Money, free bool) (state.Left, error) {
	return l.s.store.Left(ctx, l.caps(free), open, l.s.opts.Now())
}

func (l line) caps(free bool) store.Caps {
	caps := l.s.cfg.Caps()
	if free {
		caps.DayMicroUSD, caps.MonthMicroUSD = 0, 0
	}
	return caps
}

// MayStart says what a run that asks a provider of models has to wait for, nil for nothing.
func (l line) MayStart(ctx context.Context, provider string) (*state.Waiting, error) {
	if w, err := l.CapReached(ctx, l.s.gateway.InFlightCost(), state.Money{}, l.s.cfg.Subscribed()[provider]); w != nil || err != nil {
		return w, err
	}
	return l.s.gateway.Ready(ctx, provider)
}

// spent is what all tasks together have cost today and this month, with their caps.
func (s *Server) spent(ctx context.Context) (day, month state.Money, err error) {
	day, month, err = s.store.Spent(ctx, s.opts.Now())
	day.CapMicroUSD, month.CapMicroUSD = s.cfg.Caps().DayMicroUSD, s.cfg.Caps().MonthMicroUSD
	return day, month, err
}

// gone reports whether an error means that a VM, or the run on it, will not come back.
func gone(err error) bool {
	return errors.Is(err, fleet.ErrEnded) || errors.Is(err, fleet.ErrNotFound) || errors.Is(err, runnerctl.ErrUnknownRun) || errors.Is(err, remote.ErrHostKey)
}

// repoConfig reads a repository's own settings over the operator's.
func (s *Server) repoConfig(data []byte) (state.Settings, error) {
	return config.ParseRepo(data, s.cfg.Settings(), func(text string) bool {
		_, n := s.redact.Redact(text)
		return n > 0
	})
}

// taskURL is where people see a task, or empty.
func (s *Server) taskURL(t *state.Task) string {
	if s.cfg.PublicURL == "" {
		return ""
	}
	return fmt.Sprintf("%s/tasks/%s/%d", strings.TrimSuffix(s.cfg.PublicURL, "/"), t.Repo.FullName(), t.Key.Issue)
}

// DeleteVMs deletes every VM of this deployment. It is for the end of a demo or a test, after Run.
func (s *Server) DeleteVMs(ctx context.Context, why fleet.Reason) error {
	return s.fleet.Wipe(ctx, why)
}
