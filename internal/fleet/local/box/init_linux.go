package box

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// killTimeout bounds the search for the processes of a plain box.
const killTimeout = 5 * time.Second

// initAttr puts the namespaces around the box's first process, which is their root: it prepares them and
// starts the box's server as somebody else. Root needs no user namespace for that.
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

// serverAttr puts the box's server and all that it starts into a user namespace inside the first process's:
// nothing there has a capability over the box's mounts and network, nobody can look into the first process,
// and nobody is root, since some agents refuse to work as root. As is the user and group that the server is
// outside of its user namespace; 0 is the first process's own.
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

// closeMemory keeps processes of the same user from this one's memory, environment and files, for as long as it
// runs this program.
func closeMemory() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

func becomeSubreaper() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// runInit is the first process of a userns or plain box, and of a bwrap box that root makes. It reaps
// whatever is left to it and ends the box when the server that it started ends.
func runInit(o initOptions) error {
	runtime.LockOSThread() // capabilities and no_new_privs belong to a thread
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

// prepareNamespaces gives the box a loopback, files and a /proc of its own. No program can give more rights
// than its caller has, afterwards.
func prepareNamespaces(dir, text string) error {
	unix.Umask(0o022) // the box's processes, who are somebody else, have to get through the view
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

// reapUntil reaps every child until the one with this pid has ended, and returns
// its exit status.
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

// killDescendants kills and reaps until nobody descends from us any more, or the
// time is over. Orphans come to us, because we are a subreaper; a process that
// forks faster than we look may escape, which is why a plain box isolates nothing.
func killDescendants(timeout time.Duration) {
	deadline := time.Now().Add(timeout)
	for time.Now().Before(deadline) {
		pids := descendants(os.Getpid())
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		for {
			got, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if err != nil || got <= 0 {
				break
			}
		}
		if !time.Now().Before(deadline) {
			return
		}
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 2e6}, nil)
	}
}

// descendants finds, through /proc, all processes that come from pid.
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
