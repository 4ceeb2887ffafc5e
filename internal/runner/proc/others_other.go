//go:build !linux

package proc

import "time"

// TreeCPU tells nothing here.
func TreeCPU(int) (used time.Duration, known bool) { return 0, false }

// Born tells nothing here.
func Born() (boot string, ticks int64) { return "", 0 }

// Left finds nothing here.
func Left(int, int64) []int { return nil }

// EndLeft ends nothing here.
func EndLeft(int, int64) int { return 0 }

// EndEverything ends nothing here.
func EndEverything() {}
