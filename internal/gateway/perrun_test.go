package gateway

import (
	"fmt"
	"testing"
)

// TestTurnsOfActiveRunsAreKept: the turns of an active run stay counted however many other runs there are, and those in
// the store count after a restart.
func TestTurnsOfActiveRunsAreKept(t *testing.T) {
	t.Parallel()
	var c turnCounter
	for n := range 3 * maxRuns {
		if n%100 == 0 && n < 500 {
			c.add("active", 0)
		}
		c.count("active", 0) // each of its calls reads the count
		c.add(fmt.Sprintf("other %d", n), 0)
	}
	if got := c.count("active", 0); got != 5 {
		t.Errorf("counted %d turns, want 5", got)
	}
	if n := c.runs.Len(); n != maxRuns || c.get("other 0") != 0 {
		t.Errorf("got %d runs, the first with %d turns", n, c.get("other 0"))
	}
	var restarted turnCounter
	if got := restarted.count("r", 5); got != 5 {
		t.Errorf("counted %d turns after a restart, want the 5 in the store", got)
	}
	restarted.add("r", 5) // in flight, and not booked yet
	if got := restarted.count("r", 5); got != 6 {
		t.Errorf("counted %d turns, want those in the store and the one in flight", got)
	}
}
