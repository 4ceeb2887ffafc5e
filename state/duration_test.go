package state

import (
	"testing"
	"time"
)

// TestDurationText: units that are zero are left out, fractions of seconds are cut.
func TestDurationText(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                                 "0 s",
		300 * time.Millisecond:            "0 s",
		45 * time.Second:                  "45 s",
		10 * time.Minute:                  "10 min",
		90 * time.Second:                  "1 min 30 s",
		3 * time.Hour:                     "3 h",
		72 * time.Hour:                    "72 h",
		2*time.Hour + 30*time.Minute:      "2 h 30 min",
		time.Hour + 1500*time.Millisecond: "1 h 1 s",
	} {
		if got := DurationText(d); got != want {
			t.Errorf("DurationText(%v): got %q, want %q", d, got, want)
		}
	}
}
