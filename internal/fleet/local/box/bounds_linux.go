package box

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// oomScore makes the kernel end commands in boxes before anything else of the host when memory runs out.
const oomScore = "300"

// How often a box without a memory controller is checked: while it uses less than half of what it may, and then.
const (
	memoryCheck     = time.Second
	memoryCheckFull = 50 * time.Millisecond
)

func hostMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 2 << 30
	}
	return int64(info.Totalram) * int64(info.Unit) //nolint:unconvert // the types differ between architectures
}

// boundCommand bounds a command that has just started, with all that it will start, and offers it to the kernel when
// memory runs out. In a user namespace of its own the count of processes is that of the namespace.
func boundCommand(pid, processes int) {
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte(oomScore), 0)
	if processes > 0 {
		limit := unix.Rlimit{Cur: uint64(processes), Max: uint64(processes)}
		_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &limit, nil)
	}
}

// watchMemory keeps the descendants of a process from using more memory than they may together, until ctx ends: it
// ends the largest one. It is for hosts where no control group does. What is shared is counted once.
func watchMemory(ctx context.Context, root int, limit int64) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		used, largest := memoryOf(root, residentOf)
		if used > limit {
			used, largest = memoryOf(root, shareOf)
		}
		if used > limit {
			fmt.Fprintf(os.Stderr, "the box uses %d MiB of memory and may use %d: process %d is ended\n", used>>20, limit>>20, largest)
			_ = unix.Kill(largest, unix.SIGKILL)
		}
		if used > limit/2 {
			wait.Reset(memoryCheckFull)
		} else {
			wait.Reset(memoryCheck)
		}
	}
}

// memoryOf adds up the memory of the descendants of a process, in bytes, and says which one has the most.
func memoryOf(root int, of func(pid int) int64) (used int64, largest int) {
	var most int64
	for _, pid := range descendants(root) {
		n := of(pid)
		used += n
		if n > most {
			most, largest = n, pid
		}
	}
	return used, largest
}

// residentOf is the memory of a process that no file stands behind, with all that it shares with others.
func residentOf(pid int) int64 { return kilobytes(pid, "status", "RssAnon:", "RssShmem:") }

// shareOf is the same with its share of what it shares. It is slow.
func shareOf(pid int) int64 {
	if n := kilobytes(pid, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:"); n > 0 {
		return n
	}
	return residentOf(pid)
}

// kilobytes adds up fields of a file in /proc/PID, in bytes.
func kilobytes(pid int, file string, fields ...string) (sum int64) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		for _, field := range fields {
			if value, ok := strings.CutPrefix(line, field); ok {
				n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
				if err == nil {
					sum += n << 10
				}
			}
		}
	}
	return sum
}
