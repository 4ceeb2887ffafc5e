package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// AcquireSpec requests a VM for a task or for another owner.
type AcquireSpec struct {
	// Task is the owner; zero for VMs without a task, such as one in which an image is baked.
	Task state.TaskKey
	// Owner determines the VM's name. It defaults to the task's key as REPO-ISSUE.
	Owner string
	// Gen is the lowest acceptable generation. VMs of earlier generations are not used.
	Gen   int
	Needs Needs
	// Repo is the repository whose code will be on the VM. It defaults to the task's.
	Repo int64
	// Image is the provider's image to create the VM from; empty selects its default.
	Image string
	// FromSleep names the suspended VM whose work this one continues. FromImage states that Image is that VM's disk.
	FromSleep string
	FromImage bool
	// Candidates, if any, replace Config.Candidates for this order.
	Candidates []Candidate
	// Behind is the number of tasks that have waited longer for a VM and get one first.
	Behind int
	// Labels are added to the fleet's own labels of the VM.
	Labels map[string]string
}

// intent is the row of a VM that has been requested.
type intent struct {
	vm.Row
	// isNew states that this call stored the row and that the provider has not been called yet.
	isNew bool
}

func (s AcquireSpec) withDefaults() AcquireSpec {
	if s.Owner == "" {
		s.Owner = fmt.Sprintf("%d-%d", s.Task.Repo, s.Task.Issue)
	}
	if s.Repo == 0 {
		s.Repo = s.Task.Repo
	}
	return s
}

const (
	// maxUnusableVMs is the number of consecutive unusable VMs after which one call gives up.
	maxUnusableVMs = 5
	// unknownRecheck is the interval of checks after an unknown outcome, because a create may take effect late.
	unknownRecheck = 5 * time.Second
)

// errRowEnded reports that a row ended while a caller waited for it, so that the next generation is due.
var errRowEnded = errors.New("the VM has ended")

// Acquire returns a usable VM, creating it if the owner has none, and waits until it is up. It may be called again at
// any time, after a crash or with another ctx, and continues where it stopped: the intent is stored before the provider
// is called, and is found again by its owner. VM.Gen is the generation of the VM; generations that ended or never came
// up are skipped automatically.
//
// [ErrNoCapacity] (a *[NoCapacityError] with a reason and a hint for users) means wait and call again. It may wrap a
// *[vm.LimitError]; one with the limit vm.LimitVMHours does not pass without action. [ErrInvalid] and
// [ErrUnauthorized] require the operator. All other errors may be retried.
func (f *Fleet) Acquire(ctx context.Context, spec AcquireSpec) (VM, error) {
	spec = spec.withDefaults()
	var last error
	for range maxUnusableVMs {
		in, err := f.findOrCreateIntent(ctx, spec)
		if err == nil {
			var server VM
			if server, err = f.bringUp(ctx, in, spec); err == nil {
				f.cfg.Log.Info().Str("vm", server.Name).Str("owner", spec.Owner).Str("kind", server.Kind).Msg("VM acquired")
				return server, nil
			}
		}
		if !errors.Is(err, errRowEnded) {
			return VM{}, fmt.Errorf("acquire VM for %s: %w", spec.Owner, err)
		}
		spec.Gen, last = max(spec.Gen, in.Gen+1), err
	}
	return VM{}, fmt.Errorf("acquire VM for %s: %w", spec.Owner, &NoCapacityError{
		Reason: fmt.Sprintf("%d VMs in a row were unusable: %s", maxUnusableVMs, shortenError(last)), Cause: last,
	})
}

// shortenError cuts the text of an error to the length of a sentence.
func shortenError(err error) string {
	const most = 300
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// findOrCreateIntent returns the owner's live row or stores a new intent.
func (f *Fleet) findOrCreateIntent(ctx context.Context, spec AcquireSpec) (intent, error) {
	rows, err := f.rows.List(ctx)
	if err != nil {
		return intent{}, err
	}
	gen, err := f.rows.FirstGen(ctx)
	if err != nil {
		return intent{}, err
	}
	gen = max(gen, spec.Gen)
	for _, row := range rows {
		if row.Owner == spec.Owner && row.Gen >= spec.Gen {
			if !row.Phase.Over() && !row.Standby {
				return intent{Row: row}, nil
			}
			gen = max(gen, row.Gen+1)
		}
	}
	in, err := f.newIntent(ctx, spec, gen)
	if err != nil {
		return intent{}, err
	}
	caps, err := f.caps(ctx, in.Task)
	if err != nil {
		return intent{}, err
	}
	caps.Reserved = spec.Behind
	if spare, ok := f.standby.findStandby(ctx, rows, spec); ok {
		row, err := f.standby.rebuildIntent(ctx, in, spare, caps)
		if !errors.Is(err, vm.ErrOver) {
			return intent{Row: row}, asNoCapacity(err)
		}
	}
	row, err := f.rows.Intend(ctx, in, caps)
	if f.standby.makeRoom(ctx, rows, err) {
		row, err = f.rows.Intend(ctx, in, caps)
	}
	if errors.Is(err, vm.ErrOver) { // another caller was faster
		return intent{Row: vm.Row{Gen: gen}}, errRowEnded
	}
	return intent{Row: row, isNew: err == nil}, asNoCapacity(err)
}

// asNoCapacity converts a reached cap to [ErrNoCapacity].
func asNoCapacity(err error) error {
	var limit *vm.LimitError
	if errors.As(err, &limit) {
		return &NoCapacityError{Reason: limit.Reason, Cause: limit}
	}
	return err
}

// newIntent returns the intent to store; for a [Market] with the highest price among its possible offers.
func (f *Fleet) newIntent(ctx context.Context, spec AcquireSpec, gen int) (vm.Intent, error) {
	now := f.cfg.Now()
	in := vm.Intent{
		Name: VMName(f.cfg.Deployment, spec.Owner, gen), Task: spec.Task, Repo: spec.Repo, Owner: spec.Owner, Gen: gen,
		Provider: f.provider.Name(), Image: spec.Image, FromSleep: spec.FromSleep, FromImage: spec.FromImage,
	}
	in.Labels = map[string]string{LabelDeployment: f.cfg.Deployment, LabelOwner: labelValue(spec.Owner), LabelGeneration: strconv.Itoa(gen)}
	if spec.Repo != 0 {
		in.Labels[LabelRepo] = strconv.FormatInt(spec.Repo, 10)
	}
	maps.Copy(in.Labels, spec.Labels)
	if _, ok := f.asMarket(); !ok {
		return in, nil
	}
	in.NotAfter = now.Add(f.cfg.MaxAge).UTC().Truncate(time.Second)
	in.Labels[LabelNotAfter] = strconv.FormatInt(in.NotAfter.Unix(), 10)
	offers, err := f.orders.offers(ctx, spec)
	if err != nil {
		return vm.Intent{}, err
	}
	in.MicroHour, in.Currency = highestPrice(offers)
	in.Paid = f.cfg.Paid
	return in, nil
}

// bringUp waits until a row's VM is usable and performs the missing steps.
func (f *Fleet) bringUp(ctx context.Context, in intent, spec AcquireSpec) (VM, error) {
	row, first := in.Row, in.isNew
	for {
		switch {
		case row.Phase.Over():
			return VM{}, fmt.Errorf("%w: %s: %s %s", errRowEnded, row.Name, row.EndReason, row.Detail)
		case row.Phase.Usable():
			return f.vmInUse(ctx, row)
		case row.Phase == vm.Intended:
			next, err := f.create(ctx, intent{row, first}, spec)
			if err != nil {
				return VM{}, err
			}
			row, first = next, false
			if !row.Phase.Rising() {
				continue
			}
		}
		if err := f.waitOrChange(ctx, f.cfg.Tick); err != nil {
			return VM{}, fmt.Errorf("wait for VM %s (%s): %w", row.Name, row.Phase, err)
		}
		if err := f.starts.poll(ctx); err != nil && ctx.Err() == nil {
			f.cfg.Log.Warn().Err(err).Msg("failed to check VMs; retrying")
		}
		next, err := f.rows.Get(ctx, row.Name)
		if err != nil {
			return VM{}, err
		}
		row = next
	}
}

// vmInUse returns the VM of a row in use, if it still exists.
func (f *Fleet) vmInUse(ctx context.Context, row vm.Row) (VM, error) {
	server, err := f.inventory.get(ctx, row.Name, existenceTTL)
	for errors.Is(err, ErrMissing) {
		if err := f.sleep(ctx, f.lossAfter()); err != nil {
			return VM{}, err
		}
		server, err = f.inventory.get(ctx, row.Name, existenceTTL)
	}
	switch {
	case errors.Is(err, ErrNotFound):
		_, _, err = f.apply(ctx, row.Name, vm.Event{Kind: vm.Fail, EndReason: ReasonVanished})
		return VM{}, errors.Join(errRowEnded, err)
	case err != nil:
		return VM{}, err
	case server.State == StateEnded:
		_, _, err = f.apply(ctx, row.Name, vm.Event{Kind: vm.Fail, EndReason: server.Ended, Detail: server.Detail})
		return VM{}, errors.Join(errRowEnded, err)
	case server.State == StateOff:
		return f.suspension.wakeInPlace(ctx, row)
	}
	return server, nil
}

// create orders the VM of an intent, one candidate after the other, and stores the outcome. If the outcome is unknown
// the row stays in phase intended, and the next check determines it.
func (f *Fleet) create(ctx context.Context, in intent, spec AcquireSpec) (vm.Row, error) {
	row := in.Row
	want := Spec{Name: row.Name, Labels: row.Labels, Needs: spec.Needs, Image: row.Image, First: in.isNew}
	var err error
	if f.cfg.UserData != nil {
		if want.UserData, err = f.cfg.UserData(row); err != nil {
			return row, fmt.Errorf("create user data of VM %s: %w", row.Name, err)
		}
	}
	server, err := f.orders.placeOrder(ctx, row, want, spec)
	isUnknown := false
	if err == nil {
		if isUnknown, err = f.starts.isUnknown(ctx, row, server); err != nil {
			return row, err
		}
	}
	switch {
	case isUnknown:
		return f.starts.giveUpUnknown(ctx, row, server)
	case err == nil:
		return f.starts.storeCreated(ctx, row, server)
	case errors.Is(err, ErrUnknownOutcome):
		f.cfg.Log.Warn().Err(err).Str("vm", row.Name).Msg("unknown whether the VM was created; checking again")
		return row, f.waitOrChange(ctx, max(unknownRecheck-f.cfg.Tick, 0))
	case errors.Is(err, ErrEnded), errors.Is(err, ErrNameTaken),
		row.Rebuilds != "" && (errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid)):
		return f.starts.giveUp(ctx, row, ReasonCreateFailed, err)
	default:
		return row, err
	}
}
