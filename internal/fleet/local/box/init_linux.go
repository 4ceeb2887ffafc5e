package box

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// killTimeout limits the search for the processes of a plain sandbox.
const killTimeout = 5 * time.Second

// initAttr creates the namespaces of the sandbox's first process, which is root in them: it prepares them and starts
// the sandbox's server as another user. Root needs no user namespace for that.
func initAttr(kind string) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setsid: true}
	if kind != KindUserns {
		return attr, nil
	}
	attr.Pdeathsig = syscall.SIGKILL
	attr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	if runsAsRoot() {
		return attr, nil
	}
	attr.Cloneflags |= syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	return attr, nil
}

// serverAttr puts the sandbox's server and its descendants into a user namespace inside the first process's: they have
// no capability over the sandbox's mounts and network, cannot inspect the first process, and are not root, since some
// agents refuse to work as root. as is the user and group of the server outside its user namespace; 0 means the first
// process's own.
func serverAttr(kind string, as int) *syscall.SysProcAttr {
	if !ownFiles(kind) {
		return nil
	}
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: insideID, HostID: as, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: insideID, HostID: as, Size: 1}},
		Credential:  &syscall.Credential{Uid: insideID, Gid: insideID, NoSetGroups: true},
	}
}

// closeMemory prevents processes of the same user from reading this process's memory, environment and files while it
// runs this program.
func closeMemory() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

func becomeSubreaper() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// runInit is the first process of a userns or plain sandbox, and of a bwrap sandbox created by root. It reaps orphaned
// processes and ends the sandbox when its server ends.
func runInit(o initOptions) error {
	runtime.LockOSThread() // capabilities and no_new_privs are per thread
	self, err := os.Executable()
	if err != nil {
		return err
	}
	switch o.kind {
	case KindUserns:
		if err := prepareNamespaces(o.dir, o.view); err != nil {
			return err
		}
		self = insideRunner
	case KindPlain:
		becomeSubreaper()
	}
	if o.as != 0 {
		if err := syscall.Setgroups(nil); err != nil {
			return fmt.Errorf("leave root's groups: %w", err)
		}
	}
	argv := []string{self, "box-ssh"}
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	if o.probe != "" {
		argv = append(argv, "-probe", o.probe)
	} else {
		files = append(files, inheritedFile(listenerFD, "listener"), inheritedFile(lifeFD, "life"))
	}
	child, err := os.StartProcess(self, argv, &os.ProcAttr{Files: files, Env: os.Environ(), Sys: serverAttr(o.kind, o.as)})
	if err != nil {
		return fmt.Errorf("start the box's server: %w", err)
	}
	for _, f := range files {
		_ = f.Close()
	}
	status := reapUntil(child.Pid)
	if o.kind == KindPlain {
		killDescendants(killTimeout)
	}
	if status != 0 {
		os.Exit(status)
	}
	return nil
}

// prepareNamespaces sets up the sandbox's loopback, files and /proc. Afterwards no program can gain privileges over its
// caller.
func prepareNamespaces(dir, text string) error {
	unix.Umask(0o022) // the sandbox's processes, which run as another user, must be able to traverse the view
	view, err := decodeView(text)
	if err != nil {
		return err
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	if err := unix.Sethostname([]byte("box")); err != nil {
		return fmt.Errorf("name the box: %w", err)
	}
	if err := enterView(dir, view); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return err
	}
	req.SetUint16(req.Uint16() | unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// reapUntil reaps children until the one with this pid has ended, and returns its exit status.
func reapUntil(pid int) int {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 1
		case got == pid && status.Signaled():
			return 128 + int(status.Signal())
		case got == pid:
			return status.ExitStatus()
		}
	}
}

// killDescendants kills and reaps until no descendants remain or the timeout is reached. Orphans are reparented to this
// process, because it is a subreaper. A process that forks fast enough may escape, which is why a plain sandbox
// isolates nothing.
func killDescendants(timeout time.Duration) {
	deadline := time.Now().Add(timeout)
	for time.Now().Before(deadline) && reapChildren() {
		pids := descendants(os.Getpid())
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if !reapChildren() || !time.Now().Before(deadline) {
			return
		}
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 2e6}, nil)
	}
}

// reapChildren reaps the ended children of this process and reports whether it may have others. A subreaper without
// children has no descendants: they need no search through all processes of the host.
func reapChildren() bool {
	for {
		switch got, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil); {
		case errors.Is(err, unix.EINTR), err == nil && got > 0:
		default:
			return !errors.Is(err, unix.ECHILD)
		}
	}
}

// descendants returns all descendants of pid, from /proc.
func descendants(pid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, ok := parentOf(child); ok {
			children[parent] = append(children[parent], child)
		}
	}
	var found []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		found = append(found, children[queue[0]]...)
		queue = append(queue, children[queue[0]]...)
	}
	return found
}

func parentOf(pid int) (int, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// The command's name is in brackets and may contain anything.
	_, rest, ok := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(fields[1])
	return parent, err == nil
}
