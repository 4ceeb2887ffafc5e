package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/blob"
)

// SpendDelivery spends a delivery that has no effect on any task. If it was spent before, or never stored, the error is
// ErrSpent.
func (s *Store) SpendDelivery(ctx context.Context, guid string) error {
	now := s.now()
	return kv.Update(ctx, s.db, "spend delivery", func(tx kv.Tx) error { return s.spendDelivery(tx, guid, now) })
}

// spendDelivery deletes the payload from the inbox or from its own key, and leaves the tombstone.
func (s *Store) spendDelivery(tx kv.Tx, guid string, now time.Time) error {
	row, err := getDelivery(tx, guid)
	if err != nil {
		return err
	}
	if row == nil || row.State == deliverySpent {
		return fmt.Errorf("delivery %s: %w", guid, ErrSpent)
	}
	err = errors.Join(
		tx.Delete(timeKey(preInbox, row.Received, guid)),
		tx.Delete(timeKey(prePoison, row.Received, guid)),
		blob.Delete(tx, prePayload+guid),
	)
	if s.isDisabled(SafeguardTombstones) {
		return errors.Join(err, tx.Delete(preDelivery+guid))
	}
	return errors.Join(
		err,
		tx.Put(timeKey(preTomb, now, guid), nil),
		putRow(tx, guid, deliveryRow{State: deliverySpent, Event: row.Event, Received: row.Received, Tried: now}),
	)
}

// FailDelivery records a failure to apply a delivery and returns the number of its failures. At MaxDeliveryFailures the
// delivery is set aside. If it is spent the error is ErrSpent.
func (s *Store) FailDelivery(ctx context.Context, guid string, cause error) (failures int, err error) {
	now := s.now()
	err = s.changeDelivery(ctx, guid, func(tx kv.Tx, row *deliveryRow) error {
		row.Failures++
		row.LastError, row.Tried = cause.Error(), now
		failures = row.Failures
		if row.State != deliveryPending || failures < MaxDeliveryFailures {
			return nil
		}
		row.State = deliveryPoison
		return moveToPoison(tx, guid, row.Received)
	})
	return failures, err
}

// moveToPoison moves a delivery from the inbox to the list of poisoned ones. A payload in its inbox entry moves to its
// own key, so that listing poisoned deliveries, as the pages and metrics do, reads no payloads.
func moveToPoison(tx kv.Tx, guid string, received time.Time) error {
	inbox := timeKey(preInbox, received, guid)
	packed, err := tx.Get(inbox)
	if err != nil {
		return err
	}
	if len(packed) > 0 {
		err = blob.Put(tx, prePayload+guid, packed)
	}
	return errors.Join(err, tx.Delete(inbox), tx.Put(timeKey(prePoison, received, guid), nil))
}

func (s *Store) changeDelivery(ctx context.Context, guid string, fn func(kv.Tx, *deliveryRow) error) error {
	return kv.Update(ctx, s.db, "change delivery", func(tx kv.Tx) error {
		row, err := getDelivery(tx, guid)
		if err != nil {
			return err
		}
		if row == nil || row.State == deliverySpent {
			return fmt.Errorf("delivery %s: %w", guid, ErrSpent)
		}
		return errors.Join(fn(tx, row), putRow(tx, guid, *row))
	})
}

// PruneTombstones deletes the tombstones of deliveries that were spent before a time, and returns their number. A
// redelivery without tombstone counts as new, so the time must be longer ago than GitHub redelivers.
func (s *Store) PruneTombstones(ctx context.Context, before time.Time) (int, error) {
	end := preTomb + timeDigits(before)
	var old []string
	err := s.db.Scan(ctx, preTomb, "", 0, func(p kv.Pair) error {
		if p.Key >= end {
			return kv.ErrStop
		}
		old = append(old, p.Key)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("prune tombstones: %w", err)
	}
	const perUpdate = kv.MaxWrites / 2
	for chunk := range slices.Chunk(old, perUpdate) {
		err := kv.Update(ctx, s.db, "prune tombstones", func(tx kv.Tx) error {
			for _, key := range chunk {
				if err := errors.Join(tx.Delete(key), tx.Delete(preDelivery+guidOfTimeKey(key))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("prune tombstones: %w", err)
		}
	}
	return len(old), nil
}

// deleteOrphanedParts removes the parts of payloads that have no delivery row, because the process died between writing
// the parts and the row.
func (s *Store) deleteOrphanedParts(ctx context.Context) error {
	err := s.db.Scan(ctx, blob.PartPrefix+prePayload, "", 0, func(p kv.Pair) error {
		key := strings.TrimPrefix(p.Key[:strings.LastIndexByte(p.Key, '/')], blob.PartPrefix)
		return kv.Update(ctx, s.db, "drop loose part", func(tx kv.Tx) error {
			if _, err := tx.Get(key); !errors.Is(err, kv.ErrNotFound) {
				return err
			}
			return tx.Delete(p.Key)
		})
	})
	if err != nil {
		return fmt.Errorf("drop loose parts: %w", err)
	}
	return nil
}
