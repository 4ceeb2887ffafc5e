package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// lossAfter is the minimum time between two checks that do not find a VM, or the image of a suspended one, before it
// counts as lost. It is shorter if the fleet ticks faster, as in tests.
const lossAfter = time.Minute

// askProvider returns the provider's data on the VM of a row. It asks by ID if the row has one, so that a VM created
// late under the row's name is not mistaken for it.
func (v *inventory) askProvider(ctx context.Context, row vm.Row) (VM, error) {
	market, ok := v.asMarket()
	if !ok || row.ID == "" || row.Successor != "" { // the resource of a row with a successor has another name
		return v.provider.Get(ctx, row.Name)
	}
	server, err := market.GetByID(ctx, row.ID)
	server.Name = row.Name
	return server, err
}

// confirmState is ask for a VM that may contain work. It returns a [Market]'s ErrNotFound or StateEnded only if a check
// at least lossAfter ago had the same result and no check since found the VM. Until then the error is ErrMissing.
func (v *inventory) confirmState(ctx context.Context, row vm.Row) (VM, error) {
	server, err := v.askProvider(ctx, row)
	if _, ok := v.asMarket(); !ok || row.ID == "" {
		return server, err
	}
	var says string
	switch {
	case errors.Is(err, ErrNotFound):
		says = "the provider does not find it"
	case err != nil:
		return server, err
	case server.State == StateEnded:
		says = fmt.Sprintf("the provider says that it has ended (%s: %s)", server.Ended, server.Detail)
	default:
		v.resetMissed(row.Name)
		return server, nil
	}
	now := v.cfg.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	first, again := v.missed[row.Name]
	if again && now.Sub(first) >= v.lossAfter() {
		return server, err
	}
	if !again {
		v.missed[row.Name] = now
		v.cfg.Log.Warn().Str("vm", row.Name).Str("id", row.ID).Msg(says + "; checking again")
	}
	return VM{}, fmt.Errorf("%w: VM %s: %s", ErrMissing, row.Name, says)
}

// resetMissed resets the record that a VM was not found.
func (v *inventory) resetMissed(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.missed, name)
}

// findListed finds a row's VM in a list by ID, or by name if the row has no ID yet.
func findListed(vms []VM, row vm.Row) (VM, bool) {
	for _, server := range vms {
		if row.ID != "" && server.ID == row.ID || row.ID == "" && server.Name == row.Name {
			return server, true
		}
	}
	return VM{}, false
}

// isDifferentVM reports whether a VM is not the one that the row of its name refers to.
func isDifferentVM(row vm.Row, server string) bool {
	return row.ID != "" && server != "" && row.ID != server
}

// failIfLost fails a row whose VM is confirmed to be missing or ended, and reports whether it did.
func (v *inventory) failIfLost(ctx context.Context, row vm.Row) (bool, error) {
	server, err := v.confirmState(ctx, row)
	switch {
	case errors.Is(err, ErrNotFound):
		server = VM{State: StateEnded, Ended: ReasonVanished}
	case errors.Is(err, ErrMissing):
		return false, nil
	case err != nil:
		return false, err
	}
	if server.State != StateEnded {
		return false, nil
	}
	v.dropCached(row.Name)
	_, failed, err := v.apply(ctx, row.Name, vm.Event{Kind: vm.Fail, EndReason: server.Ended, Detail: server.Detail})
	return failed, err
}
