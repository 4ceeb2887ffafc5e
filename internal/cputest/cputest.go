// Package cputest measures the processor time of a function, for tests that bound the cost of parsing hostile text. Unlike the
// time on the wall, other work on the machine hardly changes it.
//
// Start at [Time].
package cputest

import (
	"runtime"
	"testing"
	"time"
)

// Time returns the processor time that f uses on its own goroutine, excluding goroutines that it starts.
func Time(t *testing.T, f func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := used(t)
	f()
	return used(t) - before
}
