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

// oomScore makes the kernel kill commands in sandboxes first when memory runs out.
const oomScore = "300"

// Intervals of memory checks of a sandbox without a memory controller: below half of its limit, and above.
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

// boundCommand limits a just started command and its descendants, and raises its OOM score. In a separate user
// namespace the process limit counts the namespace's processes.
func boundCommand(pid, processes int) {
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte(oomScore), 0)
	if processes > 0 {
		limit := unix.Rlimit{Cur: uint64(processes), Max: uint64(processes)}
		_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &limit, nil)
	}
}

// watchMemory enforces a memory limit on all descendants of a process together, until ctx ends, by killing the largest
// one. It is for hosts without a suitable control group. Shared memory counts once.
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
			fmt.Fprintf(os.Stderr, "the sandbox uses %d MiB of memory and may use %d: process %d is killed\n", used>>20, limit>>20, largest)
			_ = unix.Kill(largest, unix.SIGKILL)
		}
		if used > limit/2 {
			wait.Reset(memoryCheckFull)
		} else {
			wait.Reset(memoryCheck)
		}
	}
}

// memoryOf returns the total memory of a process's descendants in bytes, and the largest one.
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

// residentOf returns the anonymous and shared memory of a process in bytes.
func residentOf(pid int) int64 { return sumKilobytes(pid, "status", "RssAnon:", "RssShmem:") }

// shareOf returns the same with only its proportional share of shared memory. It is slow.
func shareOf(pid int) int64 {
	if n := sumKilobytes(pid, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:"); n > 0 {
		return n
	}
	return residentOf(pid)
}

// sumKilobytes returns the sum of fields of a file in /proc/PID, in bytes.
func sumKilobytes(pid int, file string, fields ...string) (sum int64) {
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
