package proc

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// firstLent is the least of the numbers that a system lends to its users for namespaces of their own (/etc/subuid).
const firstLent = 100_000

// TreeCPU returns the processor time that a process and its descendants have used so far, whoever's they are. Known
// is false where the system does not tell. The sum may shrink when processes end.
func TreeCPU(pid int) (used time.Duration, known bool) { return treeCPU(pid, Group) }

// Born is when the calling process began, in the kernel's ticks since the system's start, and which start that was.
func Born() (boot string, ticks int64) {
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

// Left returns the processes of a user, those of namespaces that users have made included, that began at these ticks
// or later. The caller and what hangs below a login over SSH are not among them: that is somebody else's work.
func Left(uid int, since int64) []int { return left(table(), ownerOf, uid, since) }

func left(all []entry, whose func(pid int) (owner, bool), uid int, since int64) []int {
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
		if o, ok := whose(e.pid); !ok || o.uid != uid && o.uid < firstLent || loggedIn(byPID, whose, e) {
			continue
		}
		pids = append(pids, e.pid)
	}
	return pids
}

// EndLeft ends what Left returns, as far as the caller may, and returns how many there are then.
func EndLeft(uid int, since int64) int {
	return killUntilGone(func() []int { return Left(uid, since) })
}

// loggedIn says whether a process hangs below root's SSH server, to which nobody can attach what began elsewhere.
func loggedIn(byPID map[int]entry, whose func(pid int) (owner, bool), e entry) bool {
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

// owner is whose a process is, and what it calls itself.
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

// parseOwner reads one /proc/PID/status, in which the kernel has escaped the lines of a name.
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

// EndEverything kills every process that the calling user may kill, but the caller, at one stroke: nothing that it
// ends can get in its way. It does nothing for root.
func EndEverything() {
	if os.Getuid() != 0 {
		_ = unix.Kill(-1, unix.SIGKILL)
	}
}
