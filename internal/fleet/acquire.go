package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
)

// AcquireSpec asks for a VM for a task, or for another owner.
type AcquireSpec struct {
	// Task is whose it is; zero for what is no task's, such as an image that is baked.
	Task state.TaskKey
	// Owner is what the name is derived from. Default is the task's key as REPO-ISSUE.
	Owner string
	// Gen is the least generation that will do: a VM of an earlier one is not taken.
	Gen   int
	Needs Needs
	// Repo is whose code will be on it. Default is the task's.
	Repo int64
	// Image is the provider's image to make it from; empty is its default.
	Image string
	// FromSleep names the VM whose work it takes over, and FromImage says that Image is that one's disk.
	FromSleep string
	FromImage bool
	// Candidates are what may be ordered of a Market instead of Config.Candidates, if there are any.
	Candidates []Candidate
	// Labels are kept with the VM besides the fleet's own.
	Labels map[string]string
}

// intent is the row of a VM that is wanted.
type intent struct {
	state.VMRow
	// first says that this call has stored it, and that nothing was asked of the provider yet.
	first bool
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
	// maxLives is how many VMs in a row may turn out to be useless in one call.
	maxLives = 5
	// lookAgain is how long after an unknown outcome a VM is looked for: a create may land late.
	lookAgain = 5 * time.Second
)

// errLifeOver says that a row's life ended while somebody waited for it: the next generation is due.
var errLifeOver = errors.New("the VM's life is over")

// Acquire returns a VM that can be used, making it if the owner has none, and waits until it is up. It
// may be called again at any time, after a crash or with another ctx, and goes on where it was: the
// intent is stored before anything is asked of the provider, and is found again by its owner. VM.Gen says
// which generation it has become; a VM that ended, or never came up, is passed over by itself.
//
// ErrNoCapacity (a *NoCapacityError, with a reason and a hint for people) means wait and call again; it
// may wrap a *state.VMLimitError, of which one with the limit state.LimitVMHours does not end by itself.
// ErrInvalid and ErrUnauthorized need the operator. Everything else is worth another try.
func (f *Fleet) Acquire(ctx context.Context, spec AcquireSpec) (VM, error) {
	spec = spec.withDefaults()
	var last error
	for range maxLives {
		in, err := f.intend(ctx, spec)
		if err == nil {
			var vm VM
			if vm, err = f.bringUp(ctx, in, spec); err == nil {
				f.cfg.Log.Info().Str("vm", vm.Name).Str("owner", spec.Owner).Str("kind", vm.Kind).Msg("VM acquired")
				return vm, nil
			}
		}
		if !errors.Is(err, errLifeOver) {
			return VM{}, fmt.Errorf("acquire VM for %s: %w", spec.Owner, err)
		}
		spec.Gen, last = max(spec.Gen, in.Gen+1), err
	}
	return VM{}, fmt.Errorf("acquire VM for %s: %w", spec.Owner, &NoCapacityError{
		Reason: fmt.Sprintf("%d VMs in a row could not be used: %s", maxLives, words(last)), Cause: last,
	})
}

// words cuts what an error says to what fits into a sentence.
func words(err error) string {
	const most = 300
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// intend finds the owner's live row, or stores a new intent.
func (f *Fleet) intend(ctx context.Context, spec AcquireSpec) (intent, error) {
	rows, err := f.rows.List(ctx)
	if err != nil {
		return intent{}, err
	}
	gen := max(spec.Gen, 1)
	for _, row := range rows {
		if row.Owner == spec.Owner && row.Gen >= spec.Gen {
			if !row.Phase.Over() && !row.Spare {
				return intent{VMRow: row}, nil
			}
			gen = max(gen, row.Gen+1)
		}
	}
	in, err := f.newIntent(ctx, spec, gen)
	if err != nil {
		return intent{}, err
	}
	if spare, ok := f.spareFor(ctx, rows, spec); ok {
		row, err := f.rebuildIntent(ctx, in, spare)
		if !errors.Is(err, state.ErrVMOver) {
			return intent{VMRow: row}, refusal(err)
		}
	}
	row, err := f.rows.Intend(ctx, in, f.caps())
	if f.makeRoom(ctx, rows, err) {
		row, err = f.rows.Intend(ctx, in, f.caps())
	}
	if errors.Is(err, state.ErrVMOver) { // somebody was quicker
		return intent{VMRow: state.VMRow{Gen: gen}}, errLifeOver
	}
	return intent{VMRow: row, first: err == nil}, refusal(err)
}

// refusal makes a cap that is reached an ErrNoCapacity.
func refusal(err error) error {
	var limit *state.VMLimitError
	if errors.As(err, &limit) {
		return &NoCapacityError{Reason: limit.Reason, Cause: limit}
	}
	return err
}

// caps are those for this provider: what costs nothing is bounded in number only.
func (f *Fleet) caps() state.VMCaps {
	if _, ok := f.market(); ok {
		return f.cfg.Caps
	}
	return state.VMCaps{VMs: f.cfg.Caps.VMs}
}

// newIntent is what will be stored; for a Market with the price of the dearest that may come of it.
func (f *Fleet) newIntent(ctx context.Context, spec AcquireSpec, gen int) (state.VMIntent, error) {
	now := f.cfg.Now()
	in := state.VMIntent{
		Name: VMName(f.cfg.Deployment, spec.Owner, gen), Task: spec.Task, Repo: spec.Repo, Owner: spec.Owner, Gen: gen,
		Provider: f.provider.Name(), Image: spec.Image, FromSleep: spec.FromSleep, FromImage: spec.FromImage,
	}
	in.Labels = map[string]string{LabelDeployment: f.cfg.Deployment, LabelOwner: labelValue(spec.Owner), LabelGeneration: strconv.Itoa(gen)}
	if spec.Repo != 0 {
		in.Labels[LabelRepo] = strconv.FormatInt(spec.Repo, 10)
	}
	maps.Copy(in.Labels, spec.Labels)
	if _, ok := f.market(); !ok {
		return in, nil
	}
	in.NotAfter = now.Add(f.cfg.MaxAge).UTC().Truncate(time.Second)
	in.Labels[LabelNotAfter] = strconv.FormatInt(in.NotAfter.Unix(), 10)
	offers, err := f.offers(ctx, spec)
	if err != nil {
		return state.VMIntent{}, err
	}
	in.MicroHour, in.Currency = dearest(offers)
	in.Paid = f.cfg.Paid
	return in, nil
}

// offers are what may be ordered for a spec; none is a *NoCapacityError.
func (f *Fleet) offers(ctx context.Context, spec AcquireSpec) ([]Offer, error) {
	market, ok := f.market()
	if !ok {
		return nil, nil
	}
	all, err := market.Offers(ctx)
	if err != nil {
		return nil, err
	}
	w, want := wish{needs: spec.Needs}, f.candidates(spec)
	switch {
	case spec.FromImage:
		w.image, err = f.lastingImage(ctx, spec.Image)
	case spec.Image != "": // one that we made needs its disk; others are names that only the provider knows
		if w.image, err = f.image(ctx, spec.Image); errors.Is(err, ErrNotFound) {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	refused := maps.Clone(f.refused)
	f.mu.Unlock()
	use, not := choose(all, want, w, refused, f.cfg.Now())
	if len(use) == 0 {
		return nil, noneLeft(not, errNoCandidate)
	}
	return use, nil
}

func (f *Fleet) candidates(spec AcquireSpec) []Candidate {
	if len(spec.Candidates) > 0 {
		return spec.Candidates
	}
	return f.cfg.Candidates
}

// errNoCandidate is the cause when the provider was not even asked.
var errNoCandidate = errors.New("no candidate is left")

// noneLeft says why no candidate will do.
func noneLeft(not []string, cause error) error {
	const most = 4
	if len(not) > most {
		not = append(slices.Clone(not[:most]), fmt.Sprintf("and %d more", len(not)-most))
	}
	reason := "no type of VM is configured"
	if len(not) > 0 {
		reason = not[0]
		for _, n := range not[1:] {
			reason += "; " + n
		}
	}
	return &NoCapacityError{Reason: reason, Cause: cause}
}

// bringUp waits until a row's VM can be used, and does what is missing.
func (f *Fleet) bringUp(ctx context.Context, in intent, spec AcquireSpec) (VM, error) {
	row, first := in.VMRow, in.first
	for {
		switch {
		case row.Phase.Over():
			return VM{}, fmt.Errorf("%w: %s: %s %s", errLifeOver, row.Name, row.Why, row.Detail)
		case row.Phase.Usable():
			return f.inUse(ctx, row)
		case row.Phase == state.VMIntended:
			next, err := f.create(ctx, intent{row, first}, spec)
			if err != nil {
				return VM{}, err
			}
			row, first = next, false
			if !row.Phase.Rising() {
				continue
			}
		}
		if err := f.pause(ctx, f.cfg.Tick); err != nil {
			return VM{}, fmt.Errorf("wait for VM %s (%s): %w", row.Name, row.Phase, err)
		}
		if err := f.poll(ctx); err != nil && ctx.Err() == nil {
			f.cfg.Log.Warn().Err(err).Msg("failed to check VMs; retrying")
		}
		next, err := f.rows.Get(ctx, row.Name)
		if err != nil {
			return VM{}, err
		}
		row = next
	}
}

// inUse returns the VM of a row that can be used, if it is still there.
func (f *Fleet) inUse(ctx context.Context, row state.VMRow) (VM, error) {
	vm, err := f.get(ctx, row.Name, freshFor)
	for errors.Is(err, ErrMissing) {
		if err := f.wait(ctx, f.lossAfter()); err != nil {
			return VM{}, err
		}
		vm, err = f.get(ctx, row.Name, freshFor)
	}
	switch {
	case errors.Is(err, ErrNotFound):
		_, _, err = f.apply(ctx, row.Name, state.VMEvent{Kind: state.VMFail, Why: string(ReasonVanished)})
		return VM{}, errors.Join(errLifeOver, err)
	case err != nil:
		return VM{}, err
	case vm.State == StateEnded:
		_, _, err = f.apply(ctx, row.Name, state.VMEvent{Kind: state.VMFail, Why: string(vm.Ended), Detail: vm.Detail})
		return VM{}, errors.Join(errLifeOver, err)
	case vm.State == StateOff:
		return f.wakeInPlace(ctx, row)
	}
	return vm, nil
}

// create asks the provider for the VM of an intent, candidate by candidate, and stores what came of it.
// The row is still intended if the outcome is not known: the next look finds out.
func (f *Fleet) create(ctx context.Context, in intent, spec AcquireSpec) (state.VMRow, error) {
	row := in.VMRow
	want := Spec{Name: row.Name, Labels: row.Labels, Needs: spec.Needs, Image: row.Image, First: in.first}
	var err error
	if f.cfg.UserData != nil {
		if want.UserData, err = f.cfg.UserData(row); err != nil {
			return row, fmt.Errorf("make user data of VM %s: %w", row.Name, err)
		}
	}
	vm, err := f.order(ctx, row, want, spec)
	switch {
	case err == nil:
		return f.made(ctx, row, vm)
	case errors.Is(err, ErrUnknownOutcome):
		f.cfg.Log.Warn().Err(err).Str("vm", row.Name).Msg("unknown whether the VM was made; checking again")
		return row, f.pause(ctx, max(lookAgain-f.cfg.Tick, 0))
	case errors.Is(err, ErrEnded), errors.Is(err, ErrNameTaken), row.Rebuilds != "" && (errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid)):
		return f.giveUp(ctx, row, ReasonCreateFailed, err)
	default:
		return row, err
	}
}

// made stores what the provider has.
func (f *Fleet) made(ctx context.Context, row state.VMRow, vm VM) (state.VMRow, error) {
	e := state.VMEvent{
		Kind: state.VMMade, ID: vm.ID, VMKind: vm.Kind, Location: vm.Location, CreatedAt: vm.CreatedAt,
		Usable: f.cfg.Contact == nil && vm.State == StateRunning,
	}
	if _, ok := f.market(); ok {
		e.MicroHour, e.Currency, e.Paid = vm.MicroHour, vm.Currency, f.cfg.Paid
	}
	f.remember(vm)
	f.mu.Lock()
	f.coming[vm.Name] = vm
	f.mu.Unlock()
	row, _, err := f.apply(ctx, row.Name, e)
	return row, err
}

// giveUp ends a row whose VM will not come up.
func (f *Fleet) giveUp(ctx context.Context, row state.VMRow, why Reason, cause error) (state.VMRow, error) {
	f.cfg.Log.Warn().Err(cause).Str("vm", row.Name).Str("reason", string(why)).Msg("VM given up")
	row, _, err := f.apply(ctx, row.Name, state.VMEvent{Kind: state.VMFail, Why: string(why), Detail: cause.Error()})
	return row, err
}
