package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
)

// The stored parameters of a run survive the worker that stored them, and a worker that lost its lease cannot store
// any.
func TestMarkLaunch(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.mustApply(t, spelled(task1, "", "work/a"), Ack{})
	job := s.mustClaim(t)
	if job.Attempted || job.Launch != nil {
		t.Fatalf("new job: got %+v", job)
	}
	first := state.Launch{Run: "run-1", VM: state.VM{Name: "vm-1"}, BaseSHA: "aaa", Started: s.time()}
	last := state.Launch{Run: "run-1", VM: state.VM{Name: "vm-1"}, BaseSHA: "bbb", Started: s.time(), FeedbackIDs: []string{"comment:1"}}
	for _, l := range []state.Launch{first, last} {
		if err := s.MarkLaunch(t.Context(), job.ID, job.Epoch, l); err != nil {
			t.Fatal(err)
		}
	}
	s.advance(testLease + time.Second)
	if n, err := s.Rescue(t.Context(), s.time()); n != 1 || err != nil {
		t.Fatalf("got %d rescued jobs, error %v", n, err)
	}
	wantIs(t, "mark", s.MarkLaunch(t.Context(), job.ID, job.Epoch, first), ErrLeaseLost)
	again := s.mustClaim(t)
	if !again.Attempted || again.Launch == nil {
		t.Fatalf("claimed again: got %+v", again)
	}
	if diff := cmp.Diff(last, *again.Launch); diff != "" {
		t.Errorf("the launch (-want +got):\n%s", diff)
	}
}
