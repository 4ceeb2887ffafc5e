// Package cputest measures the processor time of a function, for tests that bound the cost of parsing hostile text. Unlike the
// time on the wall, other work on the machine hardly changes it.
//
// Start at [Time].
package cputest

import (
	"runtime"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/heavytest"
)

// Time returns the processor time that f uses on its own goroutine, excluding goroutines that it starts. With the race detector,
// which takes many times as long, it skips the test.
func Time(t *testing.T, f func()) time.Duration {
	t.Helper()
	if heavytest.Raced {
		t.Skip("the race detector changes the processor time")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := used(t)
	f()
	return used(t) - before
}
