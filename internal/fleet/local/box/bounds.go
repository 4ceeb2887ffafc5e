package box

import (
	"fmt"
	"os"
)

// Bounds are what the processes of one box may use of the host together.
type Bounds struct {
	// Processes counts threads as well. Plain boxes have no such bound without a control group.
	Processes int `json:"processes,omitempty"`
	// Memory is in bytes. What a box has written to files is not counted: the kernel can take that back.
	Memory int64 `json:"memory,omitempty"`
}

const (
	defaultProcesses = 4096
	// spareProcesses are those of the box's server, which has to start commands in a box that is full.
	spareProcesses = 256
)

// orDefault fills in what is not set: 4096 processes, and three quarters of the host's memory.
func (b Bounds) orDefault() Bounds {
	if b.Processes <= 0 {
		b.Processes = defaultProcesses
	}
	if b.Memory <= 0 {
		b.Memory = hostMemory() / 4 * 3
	}
	return b
}

// Notes tells an operator how a box of a kind is bounded on this host.
func (b Bounds) Notes(kind string) []string {
	b = b.orDefault()
	group := newCgroup(fmt.Sprintf("errand-box-probe-%d", os.Getpid()), b)
	defer group.remove()
	processes, memory := "no bound on processes", "the box's largest process is ended when a check each second finds more"
	switch {
	case group.has("pids"):
		processes = fmt.Sprintf("at most %d processes", b.Processes)
	case ownFiles(kind):
		processes = fmt.Sprintf("at most %d processes (by rlimit)", b.Processes)
	}
	if group.has("memory") {
		memory = "by its control group"
	}
	return []string{fmt.Sprintf("each box may have %s and %d MiB of memory (%s)", processes, b.Memory>>20, memory)}
}
