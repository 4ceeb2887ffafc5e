package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
)

// Reservation is a call of a model that may cost something and is not booked yet. It is stored before the call is passed
// on to its provider, and deleted in the transaction that books the call (see Ack.Call). So each call is booked exactly
// once: one that errand's end cut off is still here at the next start, and one that was booked is not.
type Reservation struct {
	ID       string        `json:"-"` // unique among all calls
	Task     state.TaskKey `json:"task"`
	Run      string        `json:"run"`
	At       time.Time     `json:"at"`
	Provider string        `json:"provider"`
	Model    string        `json:"model,omitempty"`
	// Input is how many tokens the call has, judged by its length; Output is how many its answer has at most.
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

// Reserve stores a reservation. It is durable when Reserve returns nil; after an error it may be there.
func (s *Store) Reserve(ctx context.Context, r Reservation) error {
	err := kv.Update(ctx, s.db, "reserve call", func(tx kv.Tx) error { return s.codec.PutJSON(tx, preCall+r.ID, r) })
	if err != nil {
		return fmt.Errorf("reserve a call of run %s: %w", r.Run, err)
	}
	return nil
}

// Release deletes the reservation of a call that cost nothing. It may be repeated.
func (s *Store) Release(ctx context.Context, id string) error {
	if err := kv.Update(ctx, s.db, "release call", func(tx kv.Tx) error { return tx.Delete(preCall + id) }); err != nil {
		return fmt.Errorf("release the reservation of a call: %w", err)
	}
	return nil
}

// Reservations returns the calls that are not booked, of all tasks.
func (s *Store) Reservations(ctx context.Context) (all []Reservation, err error) {
	err = s.db.View(ctx, func(r kv.Reader) error {
		all = nil
		pairs, err := r.Range(preCall, "", 0)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			row := Reservation{ID: strings.TrimPrefix(p.Key, preCall)}
			if err := s.codec.GetJSON(r, p.Key, &row); err != nil {
				return err
			}
			all = append(all, row)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the reservations of calls: %w", err)
	}
	return all, nil
}

// bookReservation deletes the reservation of a call that is booked in the same transaction.
func (s *Store) bookReservation(tx kv.Tx, id string) error {
	if _, err := tx.Get(preCall + id); errors.Is(err, kv.ErrNotFound) {
		return fmt.Errorf("reservation %s: %w", id, ErrSpent)
	} else if err != nil {
		return err
	}
	return tx.Delete(preCall + id)
}
