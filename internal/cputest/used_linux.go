package cputest

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// used returns the processor time that the current thread has used.
func used(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
