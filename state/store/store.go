package store

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/blob"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/vm"
)

// The errors with which Apply and the methods for jobs and deliveries refuse a change. Nothing was stored.
var (
	// ErrLeaseLost means that the job is no longer claimed with this epoch: its lease has expired and another worker
	// may have claimed it, or it is done. The worker discards its result.
	ErrLeaseLost = errors.New("the job's lease is lost")
	// ErrSpent means that the delivery was already applied, the call already booked, or that it was never stored.
	ErrSpent = errors.New("already spent")
	// ErrNewerSchema means that a newer version of errand has written to the store.
	ErrNewerSchema = errors.New("the store was written by a newer errand")
	// ErrBadDelivery means that a delivery cannot be stored: its GUID or its size is out of bounds.
	ErrBadDelivery = errors.New("unacceptable delivery")
)

// Options are what a Store needs besides its database. Policy's zero value means DefaultPolicy.
type Options struct {
	Now    func() time.Time // nil means time.Now
	Policy machine.Policy
	// PhaseChanged, if not nil, is called after a task's new phase or the end of its run has been stored. It may be
	// called concurrently, and the caller of Apply waits for it.
	PhaseChanged func(ctx context.Context, key state.TaskKey)
	// DisabledSafeguards disables safeguards, so that tests can show that they are needed. Only tests set it.
	DisabledSafeguards []Safeguard
}

// Store keeps tasks, their jobs and received deliveries. All methods may be called concurrently. Closing the database
// is up to the caller.
//
// An update reads single keys only, so that it works on every kv backend: the data of a task is stored under keys
// derived from the task's key (see keys.go), and its queued and claimed jobs are one value.
type Store struct {
	// VMs keeps the rows of the tasks' VMs, in the same database.
	VMs *vm.Rows
	// Reservations, Spending, ProviderStates, Pauses and Audit keep data that is not part of a task, in the same database.
	Reservations   *Reservations
	Spending       *Spending
	ProviderStates *ProviderStates
	Pauses         *Pauses
	Audit          *Audit

	rows
	now          func() time.Time
	policy       machine.Policy
	next         func(*state.Task, event.Event, machine.Policy) machine.Change
	phaseChanged func(context.Context, state.TaskKey)
	disabled     []Safeguard
	seed         maphash.Seed // of stamps
	glances      *Digest[state.TaskOverview]
	restored     Restored // zero if the store is no copy
}

// rows reads and writes rows of the database.
type rows struct {
	db    kv.DB
	codec *blob.Codec
}

// Open migrates db to the current schema and returns a store over it. If a newer version of errand has written to it
// the error is ErrNewerSchema.
func Open(ctx context.Context, db kv.DB, opts Options) (*Store, error) {
	codec, err := blob.New(state.Cloner())
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Policy == (machine.Policy{}) {
		opts.Policy = machine.DefaultPolicy()
	}
	// Stored times have neither a time zone nor a monotonic part, so the times for Next have none either.
	now := func() time.Time { return opts.Now().UTC().Round(0) }
	rows := rows{db, codec}
	s := &Store{
		VMs: vm.New(db, codec, now), Reservations: &Reservations{rows}, Spending: &Spending{rows}, ProviderStates: &ProviderStates{rows}, Audit: &Audit{rows},
		Pauses: &Pauses{rows: rows, now: now},
		rows:   rows, now: now, policy: opts.Policy, next: machine.Next, seed: maphash.MakeSeed(),
		phaseChanged: opts.PhaseChanged, disabled: opts.DisabledSafeguards,
	}
	s.glances = NewDigest(s, (*state.Task).Overview)
	if err := s.migrate(ctx, migrations()); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := s.readRestored(ctx); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := s.deleteOrphanedParts(ctx); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// Wake returns a channel that receives after every commit that changed jobs or the inbox, until ctx ends. Notifications
// are coalesced. Call it once, then look for work, and if there is none, receive or wait for NextDue.
func (s *Store) Wake(ctx context.Context) <-chan struct{} { return s.db.Notify(ctx, preWake) }

// SetFact stores a small value of errand's own, such as the bot's ID or the time of a sweep.
func (s *Store) SetFact(ctx context.Context, name string, value []byte) error {
	err := kv.Update(ctx, s.db, "set fact "+name, func(tx kv.Tx) error { return tx.Put(preFact+name, value) })
	if err != nil {
		return fmt.Errorf("store fact %s: %w", name, err)
	}
	return nil
}

// Fact returns the value that SetFact stored, or nil if there is none.
func (s *Store) Fact(ctx context.Context, name string) ([]byte, error) {
	var value []byte
	err := s.db.View(ctx, func(r kv.Reader) (err error) {
		value, err = r.Get(preFact + name)
		return err
	})
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read fact %s: %w", name, err)
	}
	return value, nil
}
