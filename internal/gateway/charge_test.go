package gateway

import (
	"testing"
	"time"
)

// TestHiddenTokens: hidden reasoning costs something when the program hangs up, up to the output limit, and nothing during the
// grace period.
func TestHiddenTokens(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		took        time.Duration
		bound       int64
		least, most int64
	}{
		"a moment":          {0, 8192, 0, 0},
		"a minute":          {time.Minute, 8192, 2500, 8192},
		"a minute, bounded": {time.Minute, 100, 100, 100},
		"an hour":           {time.Hour, 8192, 8192, 8192},
		"an hour ago, free": {time.Hour, 0, 0, 0},
		"in the future":     {-time.Hour, 8192, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := call{forwardedAt: time.Now().Add(-tc.took), maxOutput: tc.bound}
			if got := c.hiddenTokens(); got < tc.least || got > tc.most {
				t.Errorf("got %d tokens, want %d to %d", got, tc.least, tc.most)
			}
		})
	}
}
