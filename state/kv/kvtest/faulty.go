package kvtest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/errand-bot/errand/state/kv"
)

// ErrInjected is the error of injected faults.
var ErrInjected = errors.New("injected fault")

// Fault is the way in which an update fails.
type Fault int

// The kinds of faults. They simulate a process that dies just before or just after a commit.
const (
	FaultNone   Fault = iota
	FaultBefore       // nothing is written, and Update returns an error
	FaultAfter        // everything is written, but Update returns an error
)

// Faulty is a DB whose updates fail according to a plan.
type Faulty struct {
	kv.DB
	plan    func(n int64) Fault
	updates atomic.Int64
}

// NewFaulty returns db with faults. It calls plan with the number of each update, counting from 1, possibly
// concurrently.
func NewFaulty(db kv.DB, plan func(n int64) Fault) *Faulty { return &Faulty{DB: db, plan: plan} }

// Updates returns the number of updates that were begun.
func (f *Faulty) Updates() int64 { return f.updates.Load() }

// Update implements kv.DB.
func (f *Faulty) Update(ctx context.Context, fn func(kv.Tx) error) error {
	fault := f.plan(f.updates.Add(1))
	if fault == FaultBefore {
		return ErrInjected
	}
	err := f.DB.Update(ctx, fn)
	if err == nil && fault == FaultAfter {
		return ErrInjected
	}
	return err
}
