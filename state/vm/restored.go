package vm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
)

// Distrust records that this store knows nothing about some of the VMs created before a time: Since returns it from now on. The names of
// these VMs are not used again: FirstGen returns a generation that is more than step above every one that this store knows, and above
// used. Rows whose VM may have been put to use without this store are given up, without deleting the VM: those that were not usable yet,
// and standby VMs.
func (s *Rows) Distrust(ctx context.Context, before time.Time, used, step int) error {
	list, err := s.List(ctx)
	if err != nil {
		return fmt.Errorf("record until when VMs are unknown: %w", err)
	}
	for _, row := range list {
		used = max(used, row.Gen)
		if row.Phase.Rising() || row.Standby && row.Phase == Parked {
			e := Event{Kind: Lose, EndReason: state.VMEndVanished, Detail: "it was not in use at the time of the backup from which errand was restored"}
			if _, _, err := s.Apply(ctx, row.Name, e); err != nil {
				return fmt.Errorf("give up VM %s: %w", row.Name, err)
			}
		}
	}
	err = kv.Update(ctx, s.db, "distrust", func(tx kv.Tx) error {
		o, err := s.getRoster(tx)
		if err != nil {
			return err
		}
		o.Born, o.Used = before, max(used, o.Used)+step
		return s.putRoster(tx, o)
	})
	if err != nil {
		return fmt.Errorf("record until when VMs are unknown: %w", err)
	}
	return nil
}

// FirstGen returns the lowest generation of which no VM exists that this store does not know.
func (s *Rows) FirstGen(ctx context.Context) (gen int, err error) {
	err = s.viewRoster(ctx, func(_ kv.Reader, o *roster) error {
		gen = o.Used + 1
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("read the generations of unknown VMs: %w", err)
	}
	return gen, nil
}

// lostRows returns the rows of the transition table for VMs that are given up without being deleted.
func lostRows() []TableRow {
	return []TableRow{{
		From: slices.DeleteFunc(Phases(), Phase.Over), On: Lose, To: Gone,
		Doc: "the store was restored from a backup: its bill is closed, and the VM stays, since it may have work of which the store knows nothing",
		do:  inSequence((*Row).setReason, (*Row).setDeleted),
	}}
}
