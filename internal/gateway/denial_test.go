package gateway

import (
	"testing"
	"time"
)

// TestDenialsAreLoggedOnceAMinute: of a run's denials one in a minute may be logged, and counts those that were suppressed.
func TestDenialsAreLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var r denialLog
	for i, step := range []struct {
		run        string
		at         time.Duration
		ok         bool
		suppressed int
	}{
		{"a", 0, true, 0}, {"a", time.Second, false, 0}, {"b", time.Second, true, 0}, {"a", 59 * time.Second, false, 0},
		{"a", time.Minute, true, 2}, {"a", 61 * time.Second, false, 0}, {"b", time.Hour, true, 0}, {"a", time.Hour, true, 1},
	} {
		if suppressed, ok := r.allow(step.run, noon.Add(step.at)); suppressed != step.suppressed || ok != step.ok {
			t.Errorf("step %d: allowed %v with %d suppressed, want %v with %d", i, ok, suppressed, step.ok, step.suppressed)
		}
	}
}
