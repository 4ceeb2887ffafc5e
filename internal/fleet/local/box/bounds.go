package box

import (
	"fmt"
	"os"
)

// Bounds limit the host resources that the processes of one sandbox use together.
type Bounds struct {
	// Processes includes threads. Plain sandboxes have no such limit without a control group.
	Processes int `json:"processes,omitempty"`
	// Memory is in bytes. Cached file content does not count, because the kernel can reclaim it.
	Memory int64 `json:"memory,omitempty"`
}

const (
	defaultProcesses = 4096
	// spareProcesses are reserved for the sandbox's server, which must start commands even at the limit.
	spareProcesses = 256
)

// orDefault sets defaults: 4096 processes, and three quarters of the host's memory.
func (b Bounds) orDefault() Bounds {
	if b.Processes <= 0 {
		b.Processes = defaultProcesses
	}
	if b.Memory <= 0 {
		b.Memory = hostMemory() / 4 * 3
	}
	return b
}

// Notes returns notes for an operator on the limits of a kind of sandbox on this host.
func (b Bounds) Notes(kind string) []string {
	b = b.orDefault()
	group := newCgroup(fmt.Sprintf("errand-box-probe-%d", os.Getpid()), b)
	defer group.remove()
	processes, memory := "no limit on processes", "the largest process is killed when a check each second finds more"
	switch {
	case group.hasController("pids"):
		processes = fmt.Sprintf("at most %d processes", b.Processes)
	case ownFiles(kind):
		processes = fmt.Sprintf("at most %d processes (by rlimit)", b.Processes)
	}
	if group.hasController("memory") {
		memory = "by its control group"
	}
	return []string{fmt.Sprintf("each sandbox may have %s and %d MiB of memory (%s)", processes, b.Memory>>20, memory)}
}
