package gateway

import (
	"fmt"
	"testing"
	"time"
)

// TestTurnsOfRunsThatGoOnAreKept: whatever else ran meanwhile, what a run that goes on has had is not forgotten; and
// what the store knows of counts where the memory begins anew, as after a restart.
func TestTurnsOfRunsThatGoOnAreKept(t *testing.T) {
	t.Parallel()
	var c turnCounter
	for n := range 3 * maxRuns {
		if n%100 == 0 && n < 500 {
			c.add("goes on", 0)
		}
		c.usedUp("goes on", 0, 5) // each of its requests asks
		c.add(fmt.Sprintf("other %d", n), 0)
	}
	if c.get("goes on") != 5 || !c.usedUp("goes on", 0, 5) || c.usedUp("goes on", 0, 6) {
		t.Errorf("%d turns are known, want 5", c.get("goes on"))
	}
	if n := c.runs.Len(); n != maxRuns || c.get("other 0") != 0 {
		t.Errorf("%d runs are remembered, the first of them with %d", n, c.get("other 0"))
	}
	var anew turnCounter
	if !anew.usedUp("r", 5, 5) || anew.usedUp("r", 4, 5) {
		t.Error("what is booked does not count after a restart")
	}
	anew.add("r", 4) // under way, and not booked yet
	if !anew.usedUp("r", 4, 5) {
		t.Error("an answer that is under way does not count beside what is booked")
	}
	if anew.usedUp("r", 100, 0) {
		t.Error("no bound is one")
	}
}

// TestRefusalsAreToldNowAndThen: of a run's refusals one in a minute is logged, and says how many were not.
func TestRefusalsAreToldNowAndThen(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var r denialLog
	for i, step := range []struct {
		run    string
		at     time.Duration
		tell   bool
		untold int
	}{
		{"a", 0, true, 0}, {"a", time.Second, false, 0}, {"b", time.Second, true, 0}, {"a", 59 * time.Second, false, 0},
		{"a", time.Minute, true, 2}, {"a", 61 * time.Second, false, 0}, {"b", time.Hour, true, 0}, {"a", time.Hour, true, 1},
	} {
		if untold, tell := r.allow(step.run, noon.Add(step.at)); untold != step.untold || tell != step.tell {
			t.Errorf("step %d: told %v with %d before it, want %v with %d", i, tell, untold, step.tell, step.untold)
		}
	}
}
