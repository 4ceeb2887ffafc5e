package proc

import (
	"os"
	"strconv"
)

// oomScore makes the kernel kill a command instead of its supervisor when memory runs out: a supervisor can report a
// killed run, but a run without a supervisor is lost.
const oomScore = "500"

// offerToOOM raises the score of a process and of its future children. Best effort.
func offerToOOM(pid int) {
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte(oomScore), 0)
}
