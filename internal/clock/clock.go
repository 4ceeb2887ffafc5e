// Package clock waits, for errand and its simulators. Times of day come from the Now functions of their configurations, so
// that tests control them.
//
// Start with [Sleep], its only function.
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
