//go:build linux && (amd64 || arm64)

package disktest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The variables that give the other process its role.
const (
	testEnv = "ERRAND_DISKTEST"     // the test's name
	dirEnv  = "ERRAND_DISKTEST_DIR" // its directory
	roomEnv = "ERRAND_DISKTEST_ROOM"
	ended   = "disktest: the scenario has ended" // printed after success
	denied  = "disktest: not allowed here"
)

// control is the descriptor over which the process sends its listener to the test before the scenario begins.
const control = 3

// Say reports a guarantee that must hold from now on after every power cut.
func Say(what string) {
	_ = unix.Unlinkat(unix.AT_FDCWD, sayings+what, 0) // intercepted, and never executed
}

// Run plays a test with disk errors and power cuts. It returns when every process of the scenario has ended.
func Run(t *testing.T, d Disk) []Call {
	t.Helper()
	calls := syncs()
	if d.Fail != nil || d.Trace {
		calls = all()
	}
	if os.Getenv(testEnv) == t.Name() {
		playHere(t, calls, d.Play)
	}
	dir, err := filepath.EvalSymlinks(scratch(t))
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs, err := pair()
	if err != nil {
		t.Fatal(err)
	}
	out := &strings.Builder{}
	cmd := again(t, dir)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, []*os.File{theirs}
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // already ended, unless the test failed
		_ = cmd.Wait()
	}()
	listener, err := accept(ours)
	if err != nil {
		err = cmd.Wait()
		if strings.Contains(out.String(), denied) {
			t.Skipf("SKIP: the kernel does not permit interception of calls here: %s", out)
		}
		t.Fatalf("the scenario did not begin: %v\n%s", err, out)
	}
	w := &watcher{t: t, disk: d, calls: calls, listener: listener, shadow: newShadow(dir, d.Fail != nil, d.Ignore), seen: -1}
	w.watch()
	_ = unix.Close(listener)
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), ended) {
		t.Fatalf("scenario failed: %v\n%s", err, out)
	}
	if d.Check != nil && d.Fail == nil { // scenarios with failing calls are played repeatedly
		t.Logf("PROOF: disk: %s in %s: %d power cuts", t.Name(), filepath.Base(os.Args[0]), w.checks)
	}
	return w.made
}

// again starts a new process that runs only this test.
func again(t *testing.T, dir string) *exec.Cmd {
	var levels []string
	for level := range strings.SplitSeq(t.Name(), "/") {
		levels = append(levels, "^"+level+"$")
	}
	cmd := exec.Command(os.Args[0], "-test.run="+strings.Join(levels, "/"), "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), testEnv+"="+t.Name(), dirEnv+"="+dir, "GODEBUG=asyncpreemptoff=1", "GOCOVERDIR="+os.TempDir())
	return cmd
}

// playHere plays the scenario in this process and ends the test.
func playHere(t *testing.T, calls map[int]Kind, play func(t *testing.T, dir string)) {
	listener, err := listen(calls)
	if err != nil {
		fmt.Println(denied, err)
		os.Exit(1)
	}
	sent := unix.Sendmsg(control, []byte{0}, unix.UnixRights(listener), nil, 0)
	if err := errors.Join(sent, unix.Shutdown(control, unix.SHUT_RDWR)); err != nil {
		fmt.Println("send the listener:", err)
		os.Exit(1)
	}
	play(t, os.Getenv(dirEnv))
	if !t.Failed() {
		fmt.Println(ended)
	}
	t.SkipNow()
}

// scratch creates a directory, in memory if possible, because durability is simulated and does not need a disk.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "errand-disktest-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func pair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fds[0]), "control")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, nil, err
	}
	return c.(*net.UnixConn), os.NewFile(uintptr(fds[1]), "control"), nil //nolint:forcetypeassert // it is one
}

// accept receives the listener.
func accept(c *net.UnixConn) (int, error) {
	defer c.Close()
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return 0, errors.Join(err, errors.New("got no listener"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, errors.Join(err, errors.New("got no listener"))
	}
	return fds[0], nil
}

// watcher answers the kernel's notifications.
type watcher struct {
	t        *testing.T
	disk     Disk
	calls    map[int]Kind
	listener int
	shadow   *shadow
	said     []string
	made     []Call
	seen     int // the version at the last check
	checks   int
}

func (w *watcher) watch() {
	w.t.Helper()
	for {
		q, more, err := receive(w.listener)
		if err != nil {
			w.t.Fatal(err)
		}
		if !more {
			w.check()
			return
		}
		a := answer{id: q.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if errno := w.call(read(q, w.calls[int(q.number)])); errno != 0 {
			a.errno, a.flags = -int32(errno), 0
		}
		reply(w.listener, a)
	}
}

// call handles one call and returns its error, or 0.
func (w *watcher) call(a asked) (errno syscall.Errno) {
	w.t.Helper()
	if a.saying != "" {
		w.said = append(w.said, a.saying)
		w.shadow.version++
		w.check()
		return unix.ENOENT
	}
	var ok bool
	if a.Path, ok = w.below(a.path); !ok {
		return 0
	}
	if w.shadow.ignored(a.Path) {
		return 0
	}
	a.To, _ = w.below(a.to)
	w.check()
	if w.disk.Trace {
		w.made = append(w.made, a.Call)
	}
	if w.disk.Fail != nil {
		errno = w.disk.Fail(a.Call, w.said)
	}
	var err error
	switch a.Kind {
	case Sync:
		err = w.shadow.sync(a.fd, errno != 0)
	case Write, Truncate:
		if errno == 0 {
			err = w.shadow.wrote(a)
		}
	case Close:
	default:
		w.shadow.version++ // names change
	}
	if err != nil {
		w.t.Errorf("%s %s: %v", a.Kind, a.Path, err)
	}
	return errno
}

// below returns a path in the scenario's directory.
func (w *watcher) below(path string) (string, bool) {
	if path == w.shadow.root {
		return ".", true
	}
	return strings.CutPrefix(strings.TrimSuffix(path, " (deleted)"), w.shadow.root+"/")
}

// check simulates a power cut and checks the result.
func (w *watcher) check() {
	w.t.Helper()
	if w.disk.Check == nil || w.seen == w.shadow.version {
		return
	}
	w.seen = w.shadow.version
	for _, allNames := range []bool{false, true} {
		w.checks++
		dir := scratch(w.t)
		if err := w.shadow.lay(dir, allNames); err != nil {
			w.t.Fatal(err)
		}
		w.disk.Check(w.t, dir, w.said)
		if w.t.Failed() {
			w.t.Fatalf("this was after a power cut after the reports %q; only synced names survived: %t; disk:", w.said, !allNames)
		}
		if err := os.RemoveAll(dir); err != nil {
			w.t.Fatal(err)
		}
	}
}
