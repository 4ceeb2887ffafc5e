package vm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/blob"
)

// ErrNoRow is the error for a name without a row.
var ErrNoRow = errors.New("no such VM in the store")

// ErrOver is the error for the name of a VM that has ended, which cannot be created again.
var ErrOver = errors.New("the VM with this name has ended")

// Rows keeps the rows of VMs, their cost, and the times that they took to start. The store that owns the database also
// changes rows, in the updates that change their tasks: see [Rows.Follow].
type Rows struct {
	db    kv.DB
	codec *blob.Codec
	now   func() time.Time
}

// New returns the rows in db. now must return times in UTC without a monotonic part.
func New(db kv.DB, codec *blob.Codec, now func() time.Time) *Rows {
	return &Rows{db: db, codec: codec, now: now}
}

// Intent is a request for a row. Its fields are those of Row.
type Intent struct {
	Name      string
	Task      state.TaskKey
	Repo      int64
	Owner     string
	Gen       int
	Provider  string
	Labels    map[string]string
	Image     string
	FromSleep string
	FromImage bool
	Rebuilds  string
	NotAfter  time.Time
	// MicroHour, Currency and Paid are the reservation: the highest price of the candidates.
	MicroHour int64
	Currency  string
	Paid      time.Duration
}

// Intend stores the intent to create a VM, in one transaction with the check of the caps (which fails with a
// *LimitError). An existing row is returned unchanged and does not count again; if it has ended the error is ErrOver.
// If the intent rebuilds a standby VM, the row of that VM is handed over in the same transaction, and the rebuilt VM
// takes no additional place.
func (s *Rows) Intend(ctx context.Context, in Intent, caps Caps) (Row, error) {
	now := s.now()
	var row Row
	err := kv.Update(ctx, s.db, "intend VM", func(tx kv.Tx) (err error) {
		row, err = s.intend(tx, in, caps, now)
		return err
	})
	if err != nil {
		return Row{}, fmt.Errorf("intend VM %s: %w", in.Name, err)
	}
	return row, nil
}

func (s *Rows) intend(tx kv.Tx, in Intent, caps Caps, now time.Time) (Row, error) {
	old, err := s.get(tx, in.Name)
	switch {
	case err == nil && old.Phase.Over():
		return Row{}, fmt.Errorf("%w: %s", ErrOver, old.Phase)
	case err == nil:
		return *old, nil
	case !errors.Is(err, ErrNoRow):
		return Row{}, err
	}
	roster, err := s.getRoster(tx)
	if err != nil {
		return Row{}, err
	}
	row := Row{
		Name: in.Name, Version: 1, Task: in.Task, Repo: in.Repo, Owner: in.Owner, Gen: in.Gen, Provider: in.Provider, Labels: in.Labels,
		Phase: Intended, Since: now, Intended: now, NotAfter: in.NotAfter,
		Image: in.Image, FromSleep: in.FromSleep, FromImage: in.FromImage, Rebuilds: in.Rebuilds,
		MicroHour: in.MicroHour, Currency: in.Currency, Paid: in.Paid,
	}
	if in.Rebuilds != "" {
		if err := s.inherit(tx, roster, &row, now); err != nil {
			return Row{}, err
		}
	}
	if err := s.checkCaps(tx, roster, &row, caps, now); err != nil {
		return Row{}, err
	}
	roster.put(&row)
	if row.Paid > 0 && row.Rebuilds == "" {
		roster.addIntent(now)
	}
	return row, errors.Join(s.put(tx, &row), s.putRoster(tx, roster))
}

// inherit takes over the VM object of a standby VM, including the paid time.
func (s *Rows) inherit(tx kv.Tx, roster *roster, row *Row, now time.Time) error {
	old, err := s.get(tx, row.Rebuilds)
	if err != nil {
		return err
	}
	next, ok := Next(*old, Event{Kind: Inherits, Now: now, Successor: row.Name, EndReason: old.EndReason})
	if !ok || old.Repo != row.Repo {
		return fmt.Errorf("%w: %s is not available (%s)", ErrOver, old.Name, old.Phase)
	}
	row.CreatedAt, row.Skip, row.Location, row.Kind = old.CreatedAt, old.Skip+old.Spans(now), old.Location, old.Kind
	row.MicroHour, row.Currency, row.Paid = old.MicroHour, old.Currency, old.Paid
	if err := s.put(tx, &next); err != nil {
		return err
	}
	return s.updateBills(tx, roster, old, &next, now)
}

// Apply applies an event to a row, and returns the row and whether it changed. An event that does not fit has no
// effect. The error for an unknown name is ErrNoRow.
func (s *Rows) Apply(ctx context.Context, name string, e Event) (Row, bool, error) {
	e.Now, e.CreatedAt = s.now(), e.CreatedAt.UTC().Round(0)
	var row Row
	var changed bool
	err := kv.Update(ctx, s.db, "VM "+string(e.Kind), func(tx kv.Tx) (err error) {
		row, changed, err = s.apply(tx, name, e)
		return err
	})
	if err != nil {
		return Row{}, false, fmt.Errorf("apply %s to VM %s: %w", e.Kind, name, err)
	}
	return row, changed, nil
}

func (s *Rows) apply(tx kv.Tx, name string, e Event) (Row, bool, error) {
	old, err := s.get(tx, name)
	if err != nil {
		return Row{}, false, err
	}
	row, changed := Next(*old, e)
	if !changed {
		return row, false, nil
	}
	if err := s.put(tx, &row); err != nil {
		return Row{}, false, err
	}
	if !affectsRoster(old, &row) {
		return row, true, s.recordTime(tx, old, &row)
	}
	roster, err := s.getRoster(tx)
	if err != nil {
		return Row{}, false, err
	}
	if err := s.updateBills(tx, roster, old, &row, e.Now); err != nil {
		return Row{}, false, err
	}
	return row, true, errors.Join(s.putRoster(tx, roster), s.recordTime(tx, old, &row))
}

// Follow updates the row of a task's VM when a run begins or ends on it, in the transaction that changes the task. VMs
// without a row are ignored.
func (s *Rows) Follow(tx kv.Tx, before, after *state.Task, now time.Time) error {
	was, wasBusy := vmOf(before)
	is, isBusy := vmOf(after)
	if was == is && wasBusy == isBusy {
		return nil
	}
	if was != "" && was != is {
		if err := s.applyIfKnown(tx, was, Event{Kind: Rest, Now: now}); err != nil {
			return err
		}
	}
	kind := Rest
	if isBusy {
		kind = Work
	}
	return s.applyIfKnown(tx, is, Event{Kind: kind, Now: now})
}

func (s *Rows) applyIfKnown(tx kv.Tx, name string, e Event) error {
	if name == "" {
		return nil
	}
	_, _, err := s.apply(tx, name, e)
	if errors.Is(err, ErrNoRow) {
		return nil
	}
	return err
}

// vmOf returns the name of the task's VM, and whether a run is on it.
func vmOf(t *state.Task) (name string, busy bool) {
	if t == nil || t.VM == nil {
		return "", false
	}
	return t.VM.Name, t.Run != nil && t.Run.VM == t.VM.Name
}

// Get returns one row, or ErrNoRow if there is none.
func (s *Rows) Get(ctx context.Context, name string) (Row, error) {
	var row *Row
	err := s.db.View(ctx, func(r kv.Reader) (err error) {
		row, err = s.get(r, name)
		return err
	})
	if err != nil {
		return Row{}, fmt.Errorf("read VM %s: %w", name, err)
	}
	return *row, nil
}

// List returns all rows in the order of their names, including those of deleted VMs until they are pruned.
func (s *Rows) List(ctx context.Context) ([]Row, error) {
	var rows []Row
	err := s.db.Scan(ctx, preVM, "", 0, func(p kv.Pair) error {
		var row *Row
		err := s.db.View(ctx, func(r kv.Reader) (err error) {
			row, err = s.get(r, p.Key[len(preVM):])
			return err
		})
		if err == nil {
			rows = append(rows, *row)
		}
		if errors.Is(err, ErrNoRow) { // pruned meanwhile
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	return rows, nil
}

// Prune deletes the rows of VMs that were gone before a time, and returns their number. The time must be longer ago
// than a creation can be delayed: a day. Their bills are kept.
func (s *Rows) Prune(ctx context.Context, before time.Time) (int, error) {
	rows, err := s.List(ctx)
	if err != nil {
		return 0, err
	}
	old := slices.DeleteFunc(rows, func(r Row) bool { return r.Phase != Gone || !r.Since.Before(before) })
	for chunk := range slices.Chunk(old, kv.MaxWrites/2) {
		err := kv.Update(ctx, s.db, "prune VMs", func(tx kv.Tx) error {
			for _, row := range chunk {
				if err := blob.Delete(tx, rowKey(row.Name)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("prune VMs: %w", err)
		}
	}
	return len(old), nil
}

func (s *Rows) get(r kv.Reader, name string) (*Row, error) {
	var row Row
	err := s.codec.GetJSON(r, rowKey(name), &row)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrNoRow, name)
	}
	if err != nil {
		return nil, err
	}
	return &row, nil
}

func (s *Rows) put(tx kv.Tx, row *Row) error { return s.codec.PutJSON(tx, rowKey(row.Name), row) }
