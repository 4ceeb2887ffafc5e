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

// initAttr puts the namespaces around the box's first process. Its user id in the
// box is never 0: some agents refuse to work as root.
func initAttr(kind string) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setsid: true}
	if kind != KindUserns {
		return attr, nil
	}
	uid, gid := os.Getuid(), os.Getgid()
	inUID, inGID := uid, gid
	if inUID == 0 {
		inUID = 1000
	}
	if inGID == 0 {
		inGID = 1000
	}
	attr.Pdeathsig = syscall.SIGKILL
	attr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID |
		syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: inUID, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: inGID, HostID: gid, Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN}
	return attr, nil
}

func becomeSubreaper() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// runInit is the first process of a userns or plain box. It reaps whatever is
// left to it and ends the box when the server that it started ends.
func runInit(kind, probe string) error {
	runtime.LockOSThread() // capabilities belong to a thread
	if kind == KindUserns {
		if err := prepareNamespaces(); err != nil {
			return err
		}
	} else {
		becomeSubreaper()
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	argv := []string{self, "box-ssh"}
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	if probe != "" {
		argv = append(argv, "-probe", probe)
	} else {
		files = append(files, inheritedFile(listenerFD, "listener"), inheritedFile(lifeFD, "life"))
	}
	child, err := os.StartProcess(self, argv, &os.ProcAttr{Files: files, Env: os.Environ()})
	if err != nil {
		return fmt.Errorf("start the box's server: %w", err)
	}
	for _, f := range files {
		_ = f.Close()
	}
	status := reapUntil(child.Pid)
	if kind == KindPlain {
		killDescendants(killTimeout)
	}
	if status != 0 {
		os.Exit(status)
	}
	return nil
}

// prepareNamespaces gives the box a loopback and a /proc of its own, then drops
// what that needed, so that nothing in the box has it.
func prepareNamespaces() error {
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	_ = unix.Sethostname([]byte("box"))
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
