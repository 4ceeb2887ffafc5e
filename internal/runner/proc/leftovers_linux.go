package proc

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// firstSubUID is the smallest user id that a system assigns to users for their own namespaces (/etc/subuid).
const firstSubUID = 100_000

// TreeCPU returns the CPU time that a process and its descendants have used so far, of any user. known is false if the
// system does not report it. The sum may decrease when processes end.
func TreeCPU(pid int) (used time.Duration, known bool) { return treeCPU(pid, Group) }

// StartTime returns the id of the current boot, and the start of the calling process in kernel ticks since that boot.
func StartTime() (boot string, ticks int64) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0
	}
	data, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return "", 0
	}
	e, ok := parseStat(data)
	if !ok {
		return "", 0
	}
	return strings.TrimSpace(string(id)), e.began
}

// Leftovers returns the processes of a user, including those in the user's namespaces, that started at the given ticks
// or later. It excludes the caller and all processes below an SSH login, which belong to other work.
func Leftovers(uid int, since int64) []int { return leftovers(readProcessTable(), ownerOf, uid, since) }

func leftovers(all []entry, whose func(pid int) (owner, bool), uid int, since int64) []int {
	byPID := make(map[int]entry, len(all))
	for _, e := range all {
		byPID[e.pid] = e
	}
	self := os.Getpid()
	var pids []int
	for _, e := range all {
		if e.zombie || e.pid == self || e.began < since {
			continue
		}
		if o, ok := whose(e.pid); !ok || o.uid != uid && o.uid < firstSubUID || belongsToLogin(byPID, whose, e) {
			continue
		}
		pids = append(pids, e.pid)
	}
	return pids
}

// KillLeftovers kills the processes that Leftovers returns, as far as permitted, and returns how many remain.
func KillLeftovers(uid int, since int64) int {
	return killUntilGone(func() []int { return Leftovers(uid, since) })
}

// belongsToLogin reports whether a process is below root's SSH server, of which a process that started elsewhere cannot
// become a descendant.
func belongsToLogin(byPID map[int]entry, whose func(pid int) (owner, bool), e entry) bool {
	for range len(byPID) {
		parent, ok := byPID[e.parent]
		if !ok {
			return false
		}
		if o, ok := whose(parent.pid); ok && o.uid == 0 && strings.HasPrefix(o.name, "sshd") {
			return true
		}
		e = parent
	}
	return false
}

// owner is the user and the name of a process.
type owner struct {
	uid  int
	name string
}

func ownerOf(pid int) (owner, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return owner{}, false
	}
	return parseOwner(string(data))
}

// parseOwner parses one /proc/PID/status, in which the kernel escapes newlines in names.
func parseOwner(text string) (o owner, ok bool) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		switch {
		case key == "Name":
			o.name = strings.TrimSpace(value)
		case key == "Uid" && len(fields) > 0:
			uid, err := strconv.Atoi(fields[0])
			o.uid = uid
			return o, err == nil
		}
	}
	return owner{}, false
}

// KillAll kills every process that the calling user may kill, except the caller, in one system call, so that none of
// them can interfere. It does nothing for root.
func KillAll() {
	if os.Getuid() != 0 {
		_ = unix.Kill(-1, unix.SIGKILL)
	}
}
