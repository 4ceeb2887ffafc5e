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

// Reservation is a model call that may cost something and whose cost is not recorded yet. It is stored before the call
// is forwarded to its provider, and deleted in the transaction that records the call's cost (see Ack.Call). So each
// call is recorded exactly once: a call that was cut off by a crash is still reserved at the next start, and a recorded
// one is not.
type Reservation struct {
	ID       string        `json:"-"` // unique among all calls
	Task     state.TaskKey `json:"task"`
	Run      string        `json:"run"`
	At       time.Time     `json:"at"`
	Provider string        `json:"provider"`
	Model    string        `json:"model,omitempty"`
	// Input is the estimated number of input tokens; Output is the maximum number of output tokens.
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

// Reservations keeps the reservations of model calls.
type Reservations struct{ rows }

// Reserve stores a reservation. When it returns nil the reservation is durable; after an error it may be stored or not.
func (s *Reservations) Reserve(ctx context.Context, r Reservation) error {
	err := kv.Update(ctx, s.db, "reserve call", func(tx kv.Tx) error { return s.codec.PutJSON(tx, preCall+r.ID, r) })
	if err != nil {
		return fmt.Errorf("reserve a call of run %s: %w", r.Run, err)
	}
	return nil
}

// Release deletes the reservation of a call without cost. It may be called twice.
func (s *Reservations) Release(ctx context.Context, id string) error {
	if err := kv.Update(ctx, s.db, "release call", func(tx kv.Tx) error { return tx.Delete(preCall + id) }); err != nil {
		return fmt.Errorf("release the reservation of a call: %w", err)
	}
	return nil
}

// All returns the reservations of all tasks.
func (s *Reservations) All(ctx context.Context) (all []Reservation, err error) {
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

// settle deletes the reservation of a call whose cost is recorded in the same transaction.
func (s *Reservations) settle(tx kv.Tx, id string) error {
	if _, err := tx.Get(preCall + id); errors.Is(err, kv.ErrNotFound) {
		return fmt.Errorf("reservation %s: %w", id, ErrSpent)
	} else if err != nil {
		return err
	}
	return tx.Delete(preCall + id)
}
