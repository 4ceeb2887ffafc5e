//go:build !linux

package proc

import (
	"errors"
	"syscall"
	"time"
)

func becomeSubreaper() error { return errors.New("become subreaper: only on Linux") }

func treeCPU(int, Isolation) (time.Duration, bool) { return 0, false }

// endDescendants ends the process group, which is the best option on this system without root.
func endDescendants(pid int, _ Isolation) int {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	return 0
}

// KillMarked does nothing: other systems do not show environments.
func KillMarked(string) int { return 0 }
