package crash

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state/store"
)

// fault is a defect that a control plants: something that errand does so that crashes and repetitions
// do no harm is left out. Nothing but a test can do that.
type fault string

const (
	noFault      fault = ""
	noAttempted  fault = "nothing is marked as attempted"
	noMarkers    fault = "comments have no hidden marker"
	noRescue     fault = "what a dead errand had claimed is not given back"
	noKnown      fault = "nobody asks the VM whether a run was started"
	noFencing    fault = "a lost lease is accepted"
	noTombstones fault = "the GUIDs of deliveries are forgotten"
	noCoalescing fault = "every change edits the status comment"
)

// safeguards are those of the store that a fault leaves out. The others are planted in hooks_test.go.
func (f fault) safeguards() []store.Safeguard {
	switch f {
	case noFencing:
		return []store.Safeguard{store.SafeguardFencing}
	case noTombstones:
		return []store.Safeguard{store.SafeguardTombstones}
	case noCoalescing:
		return []store.Safeguard{store.SafeguardCoalescing}
	}
	return nil
}

// TestHeavyControls plants faults and wants the test that is there to notice each of them to fail: one that
// passes without the safeguard proves nothing about it.
//
//	left out               what notices
//	attempted-then-look    TestHeavyCrash, "after github: POST /issues/N/comments #2"
//	markers                TestHeavyCrash, the same
//	rescue at the start    TestHeavyCrash, "before commit: apply launched #1"
//	asking for known runs  TestHeavyCrash, "before commit: apply launched #4"
//	fencing                TestFenced
//	tombstones             TestRedelivered
//	coalescing             TestCoalesced
//	syncing the store      TestHeavyDurable, which has its control with it
func TestHeavyControls(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	want := quiet(t)
	// crash is TestHeavyCrash at one failpoint.
	crash := func(op string, n int, when moment) func(*testing.T, fault) error {
		return func(t *testing.T, f fault) error {
			s := newScript(point{op, n, when})
			s.fault, s.patience = f, 20*time.Second
			got, err := live(t.Context(), t, s)
			if missed := s.missed(); len(missed) > 0 {
				t.Fatalf("%s was not reached: %v", missed, err)
			}
			if err == nil {
				got.Wrong = nil // a comment without a marker is wrong in itself; it has to be there twice
				err = want.same(got)
			}
			return err
		}
	}
	var planted, noticed atomic.Int64
	t.Cleanup(func() { t.Logf("PROOF: crash: controls: planted %d noticed %d", planted.Load(), noticed.Load()) })
	for f, notices := range map[fault]func(*testing.T, fault) error{
		noAttempted:  crash(newComment, 2, after),
		noMarkers:    crash(newComment, 2, after),
		noRescue:     crash("commit: apply launched", 1, before),
		noKnown:      crash("commit: apply launched", 4, before),
		noFencing:    fenced,
		noTombstones: redelivered,
		noCoalescing: coalesced,
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			planted.Add(1)
			err := notices(t, f)
			if err == nil {
				t.Fatalf("nobody notices that %s", f)
			}
			noticed.Add(1)
			t.Logf("noticed: %s", fmt.Sprintf("%.600v", err))
		})
	}
}
