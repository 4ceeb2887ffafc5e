package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// becomeSubreaper makes orphaned descendants children of this process, so that a walk of the process table finds them.
func becomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	return nil
}

// entry is one process in the process table.
type entry struct {
	pid, parent int
	zombie      bool
	ticks       int64 // user and system time, including children that were waited for
	began       int64 // start time, in ticks since boot
}

// procIsOwn reports whether /proc shows the process ids that this process uses. It does not in a PID namespace without
// its own /proc, where the same number may refer to another process.
func procIsOwn() bool {
	status, err := os.ReadFile("/proc/self/status")
	return err == nil && isOwnPIDNamespace(string(status))
}

// isOwnPIDNamespace reports whether a /proc/self/status was read in the process's own PID namespace. NSpid lists the process's
// id in the namespace of that /proc and in each one nested below it.
func isOwnPIDNamespace(status string) bool {
	for line := range strings.Lines(status) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			return len(strings.Fields(ids)) == 1
		}
	}
	return true // this kernel has no PID namespaces
}

// readProcessTable reads the process table without processes that end meanwhile. It is empty if /proc shows the process ids of
// another namespace.
func readProcessTable() []entry {
	if !procIsOwn() {
		return nil
	}
	names, err := readNames("/proc")
	if err != nil {
		return nil
	}
	var all []entry
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		data, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		if e, ok := parseStat(data); ok {
			all = append(all, e)
		}
	}
	return all
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// parseStat parses one /proc/PID/stat. The second field is the program's name in parentheses and may contain anything,
// so fields are counted from the last parenthesis.
func parseStat(data []byte) (entry, bool) {
	end := bytes.LastIndexByte(data, ')')
	space := bytes.IndexByte(data, ' ')
	if end < 0 || space < 0 || space > end {
		return entry{}, false
	}
	pid, err := strconv.Atoi(string(data[:space]))
	fields := strings.Fields(string(data[end+1:]))
	if err != nil || len(fields) < 20 {
		return entry{}, false
	}
	e := entry{pid: pid, zombie: fields[0] == "Z" || fields[0] == "X"}
	if e.parent, err = strconv.Atoi(fields[1]); err != nil {
		return entry{}, false
	}
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return entry{}, false
		}
		e.ticks += n
	}
	e.began, err = strconv.ParseInt(fields[19], 10, 64)
	return e, err == nil
}

// descendants returns every process below root, without root.
func descendants(all []entry, root int) []entry {
	children := make(map[int][]entry, len(all))
	for _, e := range all {
		children[e.parent] = append(children[e.parent], e)
	}
	var found []entry
	seen := map[int]bool{root: true}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, e := range children[queue[0]] {
			if !seen[e.pid] {
				seen[e.pid] = true
				found = append(found, e)
				queue = append(queue, e.pid)
			}
		}
	}
	return found
}

// clockTick is the kernel's USER_HZ, which is 100 on every architecture that Go supports.
const clockTick = time.Second / 100

func treeCPU(pid int, isolation Isolation) (time.Duration, bool) {
	root := pid
	if isolation == Subreaper {
		root = os.Getpid() // orphans are children of this process
	}
	var ticks int64
	all := readProcessTable()
	for _, e := range descendants(all, root) {
		ticks += e.ticks
		if isolation == Subreaper && e.zombie && e.parent == root && e.pid != pid {
			reap(e.pid)
		}
	}
	if root == pid {
		for _, e := range all {
			if e.pid == pid {
				ticks += e.ticks
			}
		}
	}
	return time.Duration(ticks) * clockTick, len(all) > 0
}

// reap reaps one ended orphan. It is never called for the command itself, for which os/exec waits.
func reap(pid int) {
	var status unix.WaitStatus
	_, _ = unix.Wait4(pid, &status, unix.WNOHANG, nil)
}

// endDescendants kills the remaining descendants of an ended command and returns how many could not be ended in time.
func endDescendants(pid int, isolation Isolation) int {
	if isolation == Group {
		_ = unix.Kill(-pid, unix.SIGKILL)
		return 0
	}
	self := os.Getpid()
	return killUntilGone(func() []int {
		if !hasChildren() {
			return nil // the parent of an orphan is this process, so it has no other descendants either
		}
		var pids []int
		for _, e := range descendants(readProcessTable(), self) {
			if e.zombie && e.parent == self {
				reap(e.pid)
			} else if !e.zombie {
				pids = append(pids, e.pid)
			}
		}
		return pids
	})
}

// hasChildren reports whether this process may have children, ended ones included. It reaps none.
func hasChildren() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		if !errors.Is(err, unix.EINTR) {
			return !errors.Is(err, unix.ECHILD)
		}
	}
}

// killUntilGone stops and kills the listed processes until list returns none, and returns how many remain. It stops all
// of them first, so that a process that forks endlessly cannot outrun the walk.
func killUntilGone(list func() []int) int {
	deadline := time.Now().Add(killTimeout)
	ticker := time.NewTicker(killRound)
	defer ticker.Stop()
	for {
		pids := list()
		if len(pids) == 0 || time.Now().After(deadline) {
			return len(pids)
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		<-ticker.C
	}
}

// KillMarked kills every process whose environment contains the run's mark: the remaining processes of a run whose
// supervisor was killed. It returns how many could not be ended. It does not find processes that changed their
// environment; a PID namespace leaves none.
func KillMarked(runDir string) int {
	mark := []byte(MarkVariable + "=" + runDir)
	self := os.Getpid()
	return killUntilGone(func() []int {
		var pids []int
		for _, e := range readProcessTable() {
			if e.pid != self && !e.zombie && hasMark(e.pid, mark) {
				pids = append(pids, e.pid)
			}
		}
		return pids
	})
}

func hasMark(pid int, mark []byte) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for _, variable := range bytes.Split(data, []byte{0}) {
		if bytes.Equal(variable, mark) {
			return true
		}
	}
	return false
}
