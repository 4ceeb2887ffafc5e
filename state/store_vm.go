package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/blob"
)

// ErrNoVMRow says that the store has no VM of this name.
var ErrNoVMRow = errors.New("no such VM in the store")

// ErrVMOver says that the VM of this name has had its life: it may not be made again.
var ErrVMOver = errors.New("the VM of this name is over")

// VMRows keeps the rows of VMs, what they have cost, and how long they took to come up. The store that owns the database
// changes rows as well, in the updates that change their tasks: see [VMRows.Follow].
type VMRows struct {
	db    kv.DB
	codec *blob.Codec
	now   func() time.Time
}

// NewVMRows returns the rows in db. Now returns times in UTC without a monotonic part.
func NewVMRows(db kv.DB, codec *blob.Codec, now func() time.Time) *VMRows {
	return &VMRows{db: db, codec: codec, now: now}
}

// VMIntent asks for a row. The fields are those of VMRow.
type VMIntent struct {
	Name      string
	Task      TaskKey
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
	// MicroHour, Currency and Paid are what is reserved: the dearest of what may be ordered.
	MicroHour int64
	Currency  string
	Paid      time.Duration
}

// Intend stores that there shall be a VM, in one transaction with the check of the caps (a
// *VMLimitError). A row that is there already is returned as it is and takes nothing from the caps; if
// its life is over the error is ErrVMOver. If the intent rebuilds a spare VM, that one's row is handed
// over in the same transaction, and takes no place besides.
func (s *VMRows) Intend(ctx context.Context, in VMIntent, caps VMCaps) (VMRow, error) {
	now := s.now()
	var row VMRow
	err := kv.Update(ctx, s.db, "intend VM", func(tx kv.Tx) (err error) {
		row, err = s.intendVM(tx, in, caps, now)
		return err
	})
	if err != nil {
		return VMRow{}, fmt.Errorf("intend VM %s: %w", in.Name, err)
	}
	return row, nil
}

func (s *VMRows) intendVM(tx kv.Tx, in VMIntent, caps VMCaps, now time.Time) (VMRow, error) {
	old, err := s.getVM(tx, in.Name)
	switch {
	case err == nil && old.Phase.Over():
		return VMRow{}, fmt.Errorf("%w: %s", ErrVMOver, old.Phase)
	case err == nil:
		return *old, nil
	case !errors.Is(err, ErrNoVMRow):
		return VMRow{}, err
	}
	roster, err := s.getRoster(tx)
	if err != nil {
		return VMRow{}, err
	}
	row := VMRow{
		Name: in.Name, Version: 1, Task: in.Task, Repo: in.Repo, Owner: in.Owner, Gen: in.Gen, Provider: in.Provider, Labels: in.Labels,
		Phase: VMIntended, Since: now, Intended: now, Image: in.Image, FromSleep: in.FromSleep, FromImage: in.FromImage, Rebuilds: in.Rebuilds, NotAfter: in.NotAfter,
		MicroHour: in.MicroHour, Currency: in.Currency, Paid: in.Paid,
	}
	if in.Rebuilds != "" {
		if err := s.inherit(tx, roster, &row, now); err != nil {
			return VMRow{}, err
		}
	}
	if err := s.checkCaps(tx, roster, &row, caps, now); err != nil {
		return VMRow{}, err
	}
	roster.put(&row)
	if row.Paid > 0 && row.Rebuilds == "" {
		roster.intended(now)
	}
	return row, errors.Join(s.putVM(tx, &row), s.putRoster(tx, roster))
}

// inherit takes over the VM object of a spare VM, with what is paid for it.
func (s *VMRows) inherit(tx kv.Tx, roster *roster, row *VMRow, now time.Time) error {
	old, err := s.getVM(tx, row.Rebuilds)
	if err != nil {
		return err
	}
	next, ok := NextVM(*old, VMEvent{Kind: VMInherits, Now: now, Heir: row.Name, Why: old.Why})
	if !ok || old.Repo != row.Repo {
		return fmt.Errorf("%w: %s is not to be had (%s)", ErrVMOver, old.Name, old.Phase)
	}
	row.CreatedAt, row.Skip, row.Location, row.Kind = old.CreatedAt, old.Skip+old.Spans(now), old.Location, old.Kind
	row.MicroHour, row.Currency, row.Paid = old.MicroHour, old.Currency, old.Paid
	if err := s.putVM(tx, &next); err != nil {
		return err
	}
	return s.book(tx, roster, old, &next, now)
}

// Apply does to a row what the event means, and returns the row and whether it changed. An event
// that does not fit changes nothing. The error for an unknown name is ErrNoVMRow.
func (s *VMRows) Apply(ctx context.Context, name string, e VMEvent) (VMRow, bool, error) {
	e.Now, e.CreatedAt = s.now(), e.CreatedAt.UTC().Round(0)
	var row VMRow
	var changed bool
	err := kv.Update(ctx, s.db, "VM "+string(e.Kind), func(tx kv.Tx) (err error) {
		row, changed, err = s.applyVM(tx, name, e)
		return err
	})
	if err != nil {
		return VMRow{}, false, fmt.Errorf("apply %s to VM %s: %w", e.Kind, name, err)
	}
	return row, changed, nil
}

func (s *VMRows) applyVM(tx kv.Tx, name string, e VMEvent) (VMRow, bool, error) {
	old, err := s.getVM(tx, name)
	if err != nil {
		return VMRow{}, false, err
	}
	row, changed := NextVM(*old, e)
	if !changed {
		return row, false, nil
	}
	if err := s.putVM(tx, &row); err != nil {
		return VMRow{}, false, err
	}
	if !rosterCares(old, &row) {
		return row, true, s.recordTime(tx, old, &row)
	}
	roster, err := s.getRoster(tx)
	if err != nil {
		return VMRow{}, false, err
	}
	if err := s.book(tx, roster, old, &row, e.Now); err != nil {
		return VMRow{}, false, err
	}
	return row, true, errors.Join(s.putRoster(tx, roster), s.recordTime(tx, old, &row))
}

// Follow has the row of a task's VM say whether a run is on it, in the transaction that changed the
// task. A VM without a row is none of the store's.
func (s *VMRows) Follow(tx kv.Tx, before, after *Task, now time.Time) error {
	was, wasBusy := vmOf(before)
	is, isBusy := vmOf(after)
	if was == is && wasBusy == isBusy {
		return nil
	}
	if was != "" && was != is {
		if err := s.nudgeVM(tx, was, VMEvent{Kind: VMRest, Now: now}); err != nil {
			return err
		}
	}
	kind := VMRest
	if isBusy {
		kind = VMWork
	}
	return s.nudgeVM(tx, is, VMEvent{Kind: kind, Now: now})
}

func (s *VMRows) nudgeVM(tx kv.Tx, name string, e VMEvent) error {
	if name == "" {
		return nil
	}
	_, _, err := s.applyVM(tx, name, e)
	if errors.Is(err, ErrNoVMRow) {
		return nil
	}
	return err
}

// vmOf is the task's VM, and whether a run is on it.
func vmOf(t *Task) (name string, busy bool) {
	if t == nil || t.VM == nil {
		return "", false
	}
	return t.VM.Name, t.Run != nil && t.Run.VM == t.VM.Name
}

// Get returns one row, ErrNoVMRow if there is none.
func (s *VMRows) Get(ctx context.Context, name string) (VMRow, error) {
	var row *VMRow
	err := s.db.View(ctx, func(r kv.Reader) (err error) {
		row, err = s.getVM(r, name)
		return err
	})
	if err != nil {
		return VMRow{}, fmt.Errorf("read VM %s: %w", name, err)
	}
	return *row, nil
}

// List returns all rows in the order of their names, those of VMs that are gone, too, until they
// are pruned.
func (s *VMRows) List(ctx context.Context) ([]VMRow, error) {
	var rows []VMRow
	err := s.db.Scan(ctx, preVM, "", 0, func(p kv.Pair) error {
		var row *VMRow
		err := s.db.View(ctx, func(r kv.Reader) (err error) {
			row, err = s.getVM(r, p.Key[len(preVM):])
			return err
		})
		if err == nil {
			rows = append(rows, *row)
		}
		if errors.Is(err, ErrNoVMRow) { // pruned meanwhile
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	return rows, nil
}

// Prune forgets the rows of VMs that were gone before a time, and returns how many. It must lie
// further back than a create can land late: a day. Their bill stays.
func (s *VMRows) Prune(ctx context.Context, before time.Time) (int, error) {
	rows, err := s.List(ctx)
	if err != nil {
		return 0, err
	}
	old := slices.DeleteFunc(rows, func(r VMRow) bool { return r.Phase != VMGone || !r.Since.Before(before) })
	for chunk := range slices.Chunk(old, kv.MaxWrites/2) {
		err := kv.Update(ctx, s.db, "prune VMs", func(tx kv.Tx) error {
			for _, row := range chunk {
				if err := blob.Delete(tx, vmKey(row.Name)); err != nil {
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

func (s *VMRows) getVM(r kv.Reader, name string) (*VMRow, error) {
	var row VMRow
	err := s.codec.GetJSON(r, vmKey(name), &row)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrNoVMRow, name)
	}
	if err != nil {
		return nil, err
	}
	return &row, nil
}

func (s *VMRows) putVM(tx kv.Tx, row *VMRow) error { return s.codec.PutJSON(tx, vmKey(row.Name), row) }
