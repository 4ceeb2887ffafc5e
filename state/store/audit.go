package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv"
)

// Action is an entry of the audit log: something that an operator did, or tried to do.
type Action struct {
	ID string    `json:"id"` // of the request
	At time.Time `json:"at"`
	// By is how the operator was admitted, and From the address of the request.
	By   string `json:"by"`
	From string `json:"from,omitempty"`
	// Task is the task that it concerns, zero if none; Subject names it as OWNER/REPO#N, or names what else the action concerns.
	Task    state.TaskKey `json:"task,omitzero"`
	Subject string        `json:"subject,omitempty"`
	Command string        `json:"command"`           // as the operator wrote it: "retry fresh"
	Refused bool          `json:"refused,omitempty"` // nothing changed
	Result  string        `json:"result"`            // one line for people
}

// Audit keeps the actions of operators.
type Audit struct{ rows }

// maxAuditScan is the maximum number of actions that List and Prune read.
const maxAuditScan = 50_000

// auditKey returns the key of an action: the newest one is the first.
func auditKey(a Action) string {
	return fmt.Sprintf("%s%s/%s", preAudit, newestFirst(a.At), a.ID)
}

// newestFirst returns digits that sort by time, from the newest to the oldest.
func newestFirst(at time.Time) string {
	return fmt.Sprintf("%020d", math.MaxInt64-max(at.UnixNano(), 0))
}

// Add stores an action that changes no task.
func (s *Audit) Add(ctx context.Context, a Action) error {
	err := kv.Update(ctx, s.db, "audit "+a.Command, func(tx kv.Tx) error { return putAction(tx, a) })
	if err != nil {
		return fmt.Errorf("store an operator's action: %w", err)
	}
	return nil
}

func putAction(tx kv.Tx, a Action) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return tx.Put(auditKey(a), data)
}

// List returns the newest n actions for which keep returns true, the newest first.
func (s *Audit) List(ctx context.Context, n int, keep func(Action) bool) ([]Action, error) {
	var list []Action
	err := s.db.Scan(ctx, preAudit, "", maxAuditScan, func(p kv.Pair) error {
		var a Action
		if err := json.Unmarshal(p.Value, &a); err != nil {
			return fmt.Errorf("%s: %w", p.Key, err)
		}
		if !keep(a) {
			return nil
		}
		if list = append(list, a); len(list) >= n {
			return kv.ErrStop
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the operators' actions: %w", err)
	}
	return list, nil
}

// Prune deletes the actions before a time, at most 50,000 at once.
func (s *Audit) Prune(ctx context.Context, before time.Time) error {
	var old []string
	err := s.db.Scan(ctx, preAudit, preAudit+newestFirst(before.Add(-1)), maxAuditScan, func(p kv.Pair) error {
		old = append(old, p.Key)
		return nil
	})
	for chunk := range slices.Chunk(old, kv.MaxWrites/2) {
		if err != nil {
			break
		}
		err = kv.Update(ctx, s.db, "prune the audit log", func(tx kv.Tx) error {
			for _, key := range chunk {
				if err := tx.Delete(key); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("prune the audit log: %w", err)
	}
	return nil
}

// Act applies the command of an operator to its task, and stores it as an action in the same transaction. judge completes the action
// with the result; it must be pure. A command whose event was applied before changes nothing and adds no action.
func (s *Store) Act(ctx context.Context, e event.Event, a Action, judge func(Applied, *Action)) (Action, error) {
	e.Now = s.now()
	var done Action
	var applied Applied
	err := kv.Update(ctx, s.db, "act "+a.Command, func(tx kv.Tx) error {
		done = a
		done.At, done.Task = e.Now, e.Task
		var err error
		if applied, err = s.apply(tx, e, Ack{}); err != nil {
			return err
		}
		if applied.Note == noteSeen {
			done.Result = noteSeen
			return nil
		}
		judge(applied, &done)
		return putAction(tx, done)
	})
	if err != nil {
		return Action{}, fmt.Errorf("apply the command %s to %s: %w", a.Command, e.Task, err)
	}
	s.reportPhase(ctx, e, applied)
	return done, nil
}
