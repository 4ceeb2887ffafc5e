package kvtest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/errand-bot/errand/state/kv"
)

// ErrInjected is what Faulty fails with.
var ErrInjected = errors.New("injected fault")

// Fault is how an update fails.
type Fault int

// The faults. A process that dies just before or just after a commit looks to its successor like the
// one or the other.
const (
	FaultNone   Fault = iota
	FaultBefore       // nothing is written, and the caller is told that it failed
	FaultAfter        // all is written, but the caller is told that it failed
)

// Faulty is a DB whose updates fail as a plan says.
type Faulty struct {
	kv.DB
	plan    func(n int64) Fault
	updates atomic.Int64
}

// NewFaulty returns db with faults. plan is asked with the number of each update, from 1; it may be
// called concurrently.
func NewFaulty(db kv.DB, plan func(n int64) Fault) *Faulty { return &Faulty{DB: db, plan: plan} }

// Updates returns how many updates were begun.
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
