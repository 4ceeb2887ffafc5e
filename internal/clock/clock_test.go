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

func TestSleepOrWake(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wakeAfter, endAfter time.Duration // 0: never
		slept               time.Duration
		woken               bool
		err                 error
	}{
		"nothing happens":  {slept: time.Hour},
		"it is woken":      {wakeAfter: time.Minute, slept: time.Minute, woken: true},
		"the context ends": {endAfter: time.Second, slept: time.Second, err: context.Canceled},
		"woken first":      {wakeAfter: time.Second, endAfter: time.Minute, slept: time.Second, woken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var wake chan struct{}
				if test.wakeAfter > 0 {
					wake = make(chan struct{})
					time.AfterFunc(test.wakeAfter, func() { close(wake) })
				}
				if test.endAfter > 0 {
					time.AfterFunc(test.endAfter, cancel)
				}
				start := time.Now()
				woken, err := clock.SleepOrWake(ctx, time.Hour, wake)
				if woken != test.woken || !errors.Is(err, test.err) || time.Since(start) != test.slept {
					t.Errorf("slept %s, woken %t: %v", time.Since(start), woken, err)
				}
			})
		})
	}
}
