//go:build !linux

package proc

import "time"

// TreeCPU is not available on this system.
func TreeCPU(int) (used time.Duration, known bool) { return 0, false }

// StartTime is not available on this system.
func StartTime() (boot string, ticks int64) { return "", 0 }

// Leftovers finds nothing on this system.
func Leftovers(int, int64) []int { return nil }

// KillLeftovers does nothing on this system.
func KillLeftovers(int, int64) int { return 0 }

// KillAll does nothing on this system.
func KillAll() {}
