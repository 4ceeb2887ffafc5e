//go:build !linux

package cputest

import (
	"testing"
	"time"
)

var start = time.Now()

// used returns the time since the start of the process: other systems do not count the time of a thread.
func used(*testing.T) time.Duration { return time.Since(start) }
