package crash

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state/store"
)

// fault is a planted defect: it disables one of errand's safeguards against crashes and repetitions. Only a test can do
// so.
type fault string

const (
	noFault      fault = ""
	noAttempted  fault = "jobs are not marked as attempted"
	noMarkers    fault = "comments have no hidden marker"
	noRescue     fault = "claims of a dead errand are not returned to the queue"
	noKnown      fault = "the VM is not asked whether a run was started"
	noFencing    fault = "a lost lease is accepted"
	noTombstones fault = "the GUIDs of deliveries are forgotten"
	noCoalescing fault = "every change edits the status comment"
)

// safeguards returns the options of the store for a fault. The other faults are planted in hooks_test.go.
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

// TestHeavyControls plants each fault and expects the responsible test to fail: a test that passes without the
// safeguard proves nothing about it.
//
//	disabled               failing test
//	attempted-then-look    TestHeavyCrash, "after github: POST /issues/N/comments #2"
//	markers                TestHeavyCrash, the same
//	rescue at the start    TestHeavyCrash, "before commit: apply launched #1"
//	asking for known runs  TestHeavyCrash, "before commit: apply launched #4"
//	fencing                TestWorkerWithoutLeaseChangesNothing
//	tombstones             TestRedeliveredWebhookChangesNothing
//	coalescing             TestStatusEditsAreCoalesced
//	syncing the store      TestHeavyDurable, which contains its own control
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
				got.Wrong = nil // a comment without a marker is always wrong; the test must find it twice
				err = want.same(got)
			}
			if err == nil { // a second start does no harm if it comes early enough
				err = s.started.twice()
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
				t.Fatalf("no test failed although %s", f)
			}
			noticed.Add(1)
			t.Logf("noticed: %s", fmt.Sprintf("%.600v", err))
		})
	}
}
