// Package clock waits, for errand and its simulators. Times of day come from the Now functions of their configurations, so
// that tests control them.
//
// Start with [Sleep].
package clock

import (
	"context"
	"time"
)

// Sleep waits for d. It returns early with the context's error if ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// SleepOrWake waits for d or for a value on wake, or until wake is closed; a nil wake never ends the wait. It returns whether
// wake ended it, and returns early with the context's error if ctx ends.
func SleepOrWake(ctx context.Context, d time.Duration, wake <-chan struct{}) (woken bool, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
		woken = true
	case <-ctx.Done():
	}
	return woken, ctx.Err()
}
