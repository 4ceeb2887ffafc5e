//go:build !linux

package proc

import (
	"errors"
	"syscall"
	"time"
)

func becomeSubreaper() error { return errors.New("become subreaper: only on Linux") }

func treeCPU(int, Isolation) (time.Duration, bool) { return 0, false }

// endDescendants ends the process group: this system has nothing better without root.
func endDescendants(pid int, _ Isolation) int {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	return 0
}

// KillMarked ends nothing here: other systems do not show environments.
func KillMarked(string) int { return 0 }
