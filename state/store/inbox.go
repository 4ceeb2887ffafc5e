package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/blob"
)

// MaxDeliveryFailures is the number of failures after which a delivery is set aside as poison.
const MaxDeliveryFailures = 5

// MaxPayloadBytes limits a delivery's payload, as GitHub does. Even an incompressible payload has few enough parts to
// be spent in one update.
const MaxPayloadBytes = 25 << 20

// inlineBytes is the maximum size of a compressed payload that is stored in the inbox's entry. This saves a write, and
// consecutive keys make commits smaller. Larger payloads would make ranges over the inbox slow.
const inlineBytes = 32 << 10

// roomForHead is the space that a delivery needs in an update besides its payload.
const roomForHead = 8 << 10

// Delivery is one received webhook.
type Delivery struct {
	GUID     string    // assigned by GitHub; the key
	Event    string    // the kind of webhook, such as issue_comment
	Payload  []byte    // the body; nil in lists of poisoned deliveries
	Received time.Time // the time that orders the inbox; zero means now

	// Failures counts the failures to apply it; LastError and Tried describe the last one.
	Failures  int
	LastError string
	Tried     time.Time
}

// deliveryState is the state of a delivery.
type deliveryState string

const (
	deliveryPending deliveryState = "pending" // left by spending it, or by failing too often
	deliveryPoison  deliveryState = "poison"  // put aside for the operator; left by spending it
	deliverySpent   deliveryState = "spent"   // a tombstone; pruned after some days
)

// deliveryRow is the value stored under preDelivery.
type deliveryRow struct {
	State     deliveryState `json:"state"`
	Event     string        `json:"event,omitempty"`
	Received  time.Time     `json:"received"`
	Failures  int           `json:"failures,omitempty"`
	LastError string        `json:"last_error,omitempty"`
	Tried     time.Time     `json:"tried,omitzero"`
}

// PutDelivery stores a delivery durably and reports whether it is new. A known delivery is unchanged, whatever its
// state. If it can never be stored the error is ErrBadDelivery.
func (s *Store) PutDelivery(ctx context.Context, d Delivery) (isNew bool, err error) {
	if !validGUID(d.GUID) {
		return false, fmt.Errorf("store delivery %.100q: %w", d.GUID, ErrBadDelivery)
	}
	if len(d.Payload) > MaxPayloadBytes {
		return false, fmt.Errorf("store delivery %s of %d bytes: %w", d.GUID, len(d.Payload), ErrBadDelivery)
	}
	if d.Received.IsZero() {
		d.Received = s.now()
	}
	data := s.codec.CompressFast(d.Payload)
	parts := blob.Split(data)
	// Parts that do not fit into the update with the delivery's row are written before it, each in its own update.
	// Without the row they are not visible, and deleteOrphanedParts removes them at the next start.
	partsWritten := len(data)+roomForHead > kv.MaxUpdateBytes
	if partsWritten {
		if known, err := s.HasDelivery(ctx, d.GUID); known || err != nil {
			return false, err
		}
		if err := s.putPartsAhead(ctx, prePayload+d.GUID, parts); err != nil {
			return false, fmt.Errorf("store delivery %s: %w", d.GUID, err)
		}
	}
	err = kv.Update(ctx, s.db, "put delivery", func(tx kv.Tx) error {
		isNew = false
		row, err := getDelivery(tx, d.GUID)
		if err != nil || row != nil {
			return err
		}
		isNew = true
		return putDelivery(tx, d, data, parts, partsWritten)
	})
	if err != nil {
		return false, fmt.Errorf("store delivery %s: %w", d.GUID, err)
	}
	return isNew, nil
}

func (s *Store) putPartsAhead(ctx context.Context, key string, parts [][]byte) error {
	for i, part := range parts {
		if err := kv.Update(ctx, s.db, "put part", func(tx kv.Tx) error { return tx.Put(blob.PartKey(key, i), part) }); err != nil {
			return err
		}
	}
	return nil
}

// putDelivery writes a new delivery. A small payload is stored in the inbox's entry. If the entry is empty the payload,
// if there is one, is stored under its own key, because it is large or was written by an older version. Parts that were
// written ahead must still exist: an equal delivery may have been stored and spent in between, or another process may
// have removed them as loose.
func putDelivery(tx kv.Tx, d Delivery, data []byte, parts [][]byte, partsWritten bool) error {
	row := deliveryRow{State: deliveryPending, Event: d.Event, Received: d.Received.UTC().Round(0)}
	inbox, key := timeKey(preInbox, row.Received, d.GUID), prePayload+d.GUID
	if len(data) > 0 && len(data) <= inlineBytes {
		return errors.Join(putRow(tx, d.GUID, row), tx.Put(inbox, data))
	}
	if partsWritten {
		for i := range parts {
			if _, err := tx.Get(blob.PartKey(key, i)); err != nil {
				return err
			}
		}
		if err := tx.Put(key, blob.Head(data, parts)); err != nil {
			return err
		}
	} else if err := blob.Put(tx, key, data); err != nil {
		return err
	}
	return errors.Join(putRow(tx, d.GUID, row), tx.Put(inbox, nil))
}

// getDelivery returns the row of a delivery, or nil if it is unknown.
func getDelivery(r kv.Reader, guid string) (*deliveryRow, error) {
	data, err := r.Get(preDelivery + guid)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	var row deliveryRow
	if err == nil {
		err = json.Unmarshal(data, &row)
	}
	if err != nil {
		return nil, fmt.Errorf("read delivery %s: %w", guid, err)
	}
	return &row, nil
}

func putRow(tx kv.Tx, guid string, row deliveryRow) error {
	data, err := json.Marshal(row)
	if err != nil {
		return err
	}
	return tx.Put(preDelivery+guid, data)
}

// HasDelivery reports whether the store knows a delivery with this GUID, including spent ones until their tombstones
// are pruned.
func (s *Store) HasDelivery(ctx context.Context, guid string) (bool, error) {
	known := false
	err := s.db.View(ctx, func(r kv.Reader) error {
		row, err := getDelivery(r, guid)
		known = row != nil
		return err
	})
	return known, err
}

// PendingDeliveries returns the pending deliveries with their payloads, in the order of their arrival, at most limit of
// them.
func (s *Store) PendingDeliveries(ctx context.Context, limit int) ([]Delivery, error) {
	return s.listDeliveries(ctx, preInbox, limit, true)
}

// PoisonDeliveries returns the deliveries that were set aside, without their payloads, in the order of their arrival,
// at most limit of them.
func (s *Store) PoisonDeliveries(ctx context.Context, limit int) ([]Delivery, error) {
	return s.listDeliveries(ctx, prePoison, limit, false)
}

func (s *Store) listDeliveries(ctx context.Context, prefix string, limit int, payloads bool) ([]Delivery, error) {
	var list []Delivery
	err := s.db.View(ctx, func(r kv.Reader) error {
		list = nil
		pairs, err := r.Range(prefix, "", limit)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			d, err := s.readDelivery(r, guidOfTimeKey(p.Key), p.Value, payloads)
			if err != nil {
				return err
			}
			list = append(list, d)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	return list, nil
}

// readDelivery reads a delivery, optionally with its payload. packed is the value of its entry in the list.
func (s *Store) readDelivery(r kv.Reader, guid string, packed []byte, payload bool) (Delivery, error) {
	row, err := getDelivery(r, guid)
	if err != nil {
		return Delivery{}, err
	}
	if row == nil {
		return Delivery{}, fmt.Errorf("read delivery %s: listed but not stored", guid)
	}
	d := Delivery{
		GUID: guid, Event: row.Event, Received: row.Received,
		Failures: row.Failures, LastError: row.LastError, Tried: row.Tried,
	}
	if !payload {
		return d, nil
	}
	if len(packed) == 0 {
		packed, err = blob.Get(r, prePayload+guid)
	}
	if err == nil {
		d.Payload, err = s.codec.Decompress(packed)
	}
	if err != nil {
		return Delivery{}, fmt.Errorf("read payload of delivery %s: %w", guid, err)
	}
	return d, nil
}
