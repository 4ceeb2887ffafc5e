package crash

import (
	"os"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
)

// fault is a defect that a control plants, in what errand stores or sends.
type fault string

const (
	noFault     fault = ""
	noAttempted fault = "nothing is marked as attempted"
	noMarkers   fault = "comments have no hidden marker"
	noRescue    fault = "what a dead errand had claimed is not given back"
	noKnown     fault = "nobody asks the VM whether a run was started"

	noFencing    fault = "a lost lease is accepted"
	noTombstones fault = "the GUIDs of deliveries are forgotten"
	noCoalescing fault = "every change edits the status comment"
)

// safeguards are those of the store that a fault leaves out.
func (f fault) safeguards() []state.Safeguard {
	switch f {
	case noFencing:
		return []state.Safeguard{state.SafeguardFencing}
	case noTombstones:
		return []state.Safeguard{state.SafeguardTombstones}
	case noCoalescing:
		return []state.Safeguard{state.SafeguardCoalescing}
	}
	return nil
}

// TestControls plants faults against each of which errand has a safeguard, and wants the proof to
// notice: a proof that passes without the safeguard proves nothing about it.
func TestControls(t *testing.T) {
	t.Parallel()
	if os.Getenv("ERRAND_TEST_FULL") == "" {
		t.Skip("lives that go wrong take long: set ERRAND_TEST_FULL=1")
	}
	controls := map[string]struct {
		fault fault
		die   point
	}{
		"attempted, then look": {noAttempted, point{"github: POST /issues/N/comments", 2, after}},
		"markers":              {noMarkers, point{"github: POST /issues/N/comments", 2, after}},
		"rescue":               {noRescue, point{"commit: apply launched", 1, before}},
		"known runs":           {noKnown, point{"commit: apply launched", 4, before}},
	}
	want := quiet(t)
	for name, c := range controls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(c.die)
			s.fault, s.patience = c.fault, 15*time.Second
			got, err := live(t.Context(), t, s)
			if len(s.missed()) > 0 {
				t.Fatalf("%s was not reached: %v", c.die, err)
			}
			got.Wrong = nil // a comment without a marker is wrong in itself; it has to be there twice
			diff := gocmp.Diff(want, got)
			if err == nil && diff == "" {
				t.Errorf("the proof does not notice that %s", c.fault)
			}
			t.Logf("noticed: %.300v\n%s", err, diff)
		})
	}
}
