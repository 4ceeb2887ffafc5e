package proc

import (
	"os"
	"strconv"
)

// oomScore makes the kernel choose a command and not its supervisor when memory runs out: a run that
// is killed can be reported, one without a supervisor is only lost.
const oomScore = "500"

// offerToOOM raises the score of a process and of what it starts from then on. Best effort.
func offerToOOM(pid int) {
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte(oomScore), 0)
}
