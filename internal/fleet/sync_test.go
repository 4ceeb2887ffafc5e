package fleet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/state/vm"
)

// syncer is a contact whose syncs fail a number of times.
type syncer struct {
	bootContact
	fails int
	on    func() bool // whether the VM is on
	tries int
	done  bool
	early bool // a sync was tried while the VM was off
}

func (s *syncer) Greet(ctx context.Context, _ vm.Row, _ remote.Endpoint, pin func(context.Context, []string) error) ([]string, error) {
	return []string{"new"}, pin(ctx, []string{"new"})
}

func (s *syncer) Sync(context.Context, remote.Endpoint) error {
	s.tries++
	s.early = s.early || !s.on()
	if s.tries <= s.fails {
		return errors.New("connection lost")
	}
	s.done = true
	return nil
}

// lyingState reports VMs as off.
type lyingState struct {
	*shop
	lies bool
}

func (s *lyingState) GetByID(ctx context.Context, id string) (fleet.VM, error) {
	vm, err := s.shop.GetByID(ctx, id)
	if s.lies {
		vm.State = fleet.StateOff
	}
	return vm, err
}

// TestSyncIsRetriedBeforePowerOff: a VM whose sync fails stays on and sync is retried, for a limited time,
// whatever state the provider reports.
func TestSyncIsRetriedBeforePowerOff(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fails int
		lies  bool
		done  bool
		tries int
	}{
		"at once":                            {done: true, tries: 1},
		"after one failure":                  {fails: 1, done: true, tries: 2},
		"after three failures":               {fails: 3, done: true, tries: 4},
		"never":                              {fails: 100, tries: 4},
		"the provider says that it is off":   {lies: true, done: true, tries: 1},
		"and the connection is lost as well": {lies: true, fails: 1, done: true, tries: 2},
		"it is off":                          {lies: true, fails: 100, tries: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			s := &lyingState{shop: newShop(c)}
			contact := &syncer{fails: test.fails}
			store := newStore(t, c.now)
			f := fleet.New(s, fleet.Config{
				Deployment: "demo", Rows: store.VMs, Store: store, Now: c.now, Sleep: c.sleep, Contact: contact,
				Candidates: []fleet.Candidate{{Type: "small", Location: "here"}},
			})
			defer f.Close()
			vm := get(t, f, fleet.AcquireSpec{Task: shopTask})
			contact.on = func() bool { return !s.off[vm.Name] }
			c.pass(20 * time.Minute)
			s.lies = test.lies
			began := c.now()
			if _, err := f.Snapshot(t.Context(), vm.Name); err != nil {
				t.Fatal(err)
			}
			if contact.tries != test.tries || contact.done != test.done || contact.early {
				t.Errorf("got %d tries, done: %v, while it was off: %v", contact.tries, contact.done, contact.early)
			}
			if took := c.now().Sub(began); took > 5*time.Minute {
				t.Errorf("got a duration of %s", took)
			}
		})
	}
}
