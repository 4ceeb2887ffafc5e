package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-bot/errand/internal/clock"
)

func TestSleepWaitsForTheDuration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := clock.Sleep(t.Context(), time.Hour); err != nil || time.Since(start) != time.Hour {
			t.Errorf("slept %s: %v", time.Since(start), err)
		}
	})
}

func TestSleepEndsWithTheContext(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]time.Duration{"a long time": time.Hour, "no time": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				start := time.Now()
				if err := clock.Sleep(ctx, d); !errors.Is(err, context.Canceled) || time.Since(start) != 0 {
					t.Errorf("slept %s: %v", time.Since(start), err)
				}
			})
		})
	}
}
