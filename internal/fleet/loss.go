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

// ask returns the provider's data on the VM of a row. It asks by ID if the row has one, so that a VM created late under
// the row's name is not mistaken for it.
func (v *inventory) ask(ctx context.Context, row vm.Row) (VM, error) {
	market, ok := v.market()
	if !ok || row.ID == "" || row.Heir != "" { // the resource of a row with an heir has another name
		return v.provider.Get(ctx, row.Name)
	}
	server, err := market.GetByID(ctx, row.ID)
	server.Name = row.Name
	return server, err
}

// confirm is ask for a VM that may contain work. It returns a [Market]'s ErrNotFound or StateEnded only if a check at
// least lossAfter ago had the same result and no check since found the VM. Until then the error is ErrMissing.
func (v *inventory) confirm(ctx context.Context, row vm.Row) (VM, error) {
	server, err := v.ask(ctx, row)
	if _, ok := v.market(); !ok || row.ID == "" {
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
		v.found(row.Name)
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

// found resets the record that a VM was not found.
func (v *inventory) found(name string) {
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

// isAnother reports whether a VM is not the one that the row of its name refers to.
func isAnother(row vm.Row, server string) bool {
	return row.ID != "" && server != "" && row.ID != server
}

// lose fails a row whose VM is confirmed to be missing or ended, and reports whether it did.
func (v *inventory) lose(ctx context.Context, row vm.Row) (bool, error) {
	server, err := v.confirm(ctx, row)
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
	v.forget(row.Name)
	_, failed, err := v.apply(ctx, row.Name, vm.Event{Kind: vm.Fail, Why: string(server.Ended), Detail: server.Detail})
	return failed, err
}
