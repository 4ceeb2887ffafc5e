package box

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// ErrSupervised is returned by [Supervise] if the sandbox already has a supervisor.
var ErrSupervised = errors.New("box already has a supervisor")

// ErrEnded is returned by [Supervise] if the sandbox has ended: it never restarts.
var ErrEnded = errors.New("box has ended")

const defaultIdleExit = 15 * time.Minute

// Supervise is the subcommand box-supervise: it keeps one sandbox and returns when it has ended. It holds the lock in
// the sandbox's directory for that time. Start it in a new session, with standard error going to the sandbox's log.
// When ctx ends or SIGTERM arrives, the sandbox ends.
func Supervise(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("box-supervise", flag.ContinueOnError)
	dir := flags.String("dir", "", "the box's `directory`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	// The inside is tied to the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	rec, err := ReadRecord(*dir)
	if err != nil {
		return fmt.Errorf("read box: %w", err)
	}
	lock := flock.New(LockPath(*dir))
	// Processes that check the lock hold it for a moment.
	patience, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if held, err := lock.TryLockContext(patience, 10*time.Millisecond); !held {
		return fmt.Errorf("%w: %s: %w", ErrSupervised, rec.Name, err)
	}
	defer lock.Close()
	if _, ended, _ := ReadEnd(*dir); ended || Started(*dir) {
		return fmt.Errorf("%w: %s", ErrEnded, rec.Name)
	}
	s := &supervisor{dir: *dir, rec: rec, contact: make(chan byte), end: make(chan *endRequest)}
	return s.run(ctx)
}

// supervisor is one running sandbox.
type supervisor struct {
	dir string
	rec Record

	contact chan byte        // heartbeats of the inside and calls on the control socket
	end     chan *endRequest // a caller requests the end

	control *control
}

// run keeps the sandbox and records how it ended. Everything it started is gone when it returns.
func (s *supervisor) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sshListener, err := listenUnix(s.rec.SSHSocket)
	if err != nil {
		return s.recordFailedStart(err)
	}
	defer os.Remove(s.rec.SSHSocket)
	controlListener, err := listenUnix(s.rec.ControlSocket)
	if err != nil {
		_ = sshListener.Close()
		return s.recordFailedStart(err)
	}
	defer os.Remove(s.rec.ControlSocket)
	becomeSubreaper()
	in, err := s.startInside(sshListener)
	_ = sshListener.Close() // the inside has it
	if err != nil {
		_ = controlListener.Close()
		return s.recordFailedStart(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, startedFile), nil, 0o600); err != nil {
		in.kill()
		return s.recordFailedStart(err)
	}
	s.control = &control{ln: controlListener, contact: s.contact, end: s.end, done: ctx.Done()}
	go s.control.serve()
	go in.readBeats(ctx, s.contact)
	if !in.group.hasController("memory") {
		go watchMemory(ctx, in.cmd.Process.Pid, s.rec.Bounds.orDefault().Memory)
	}
	end, asked := s.waitForEnd(ctx, in)
	in.kill()
	// The reason is on disk before the requester of the end is notified.
	err = s.writeEnd(end)
	_ = controlListener.Close()
	asked.notifyCaller()
	return err
}

func (s *supervisor) writeEnd(end End) error {
	end.At = time.Now().UTC()
	if err := writeJSON(filepath.Join(s.dir, endFile), end); err != nil {
		return fmt.Errorf("write end of box %s: %w", s.rec.Name, err)
	}
	return nil
}

// recordFailedStart records the end of a sandbox that never started.
func (s *supervisor) recordFailedStart(err error) error {
	return errors.Join(err, s.writeEnd(End{Reason: ReasonCrashed, Detail: err.Error()}))
}

// waitForEnd returns when the sandbox must end or has ended.
func (s *supervisor) waitForEnd(ctx context.Context, in *inside) (end End, asked *endRequest) {
	idleExit := s.rec.IdleExit
	if idleExit <= 0 {
		idleExit = defaultIdleExit
	}
	idle := time.NewTimer(idleExit)
	defer idle.Stop()
	for {
		select {
		case b := <-s.contact:
			idle.Reset(idleExit)
			if b == beatReady {
				s.control.ready.Store(true)
			}
		case req := <-s.end:
			return End{Reason: req.reason, Detail: req.detail}, req
		case <-idle.C:
			return End{Reason: ReasonIdle, Detail: fmt.Sprintf("no contact for %s", idleExit)}, nil
		case <-in.exited:
			return End{Reason: ReasonCrashed, Detail: "the box's first process ended: " + in.status()}, nil
		case <-ctx.Done():
			return End{Reason: ReasonStopped, Detail: "the supervisor was told to stop"}, nil
		}
	}
}

// inside is the running sandbox.
type inside struct {
	cmd    *exec.Cmd
	life   net.Conn
	group  *cgroup
	exited chan struct{}
}

func (s *supervisor) startInside(ln *net.UnixListener) (*inside, error) {
	hostKey, err := os.ReadFile(s.rec.hostKeyOnHost(s.dir))
	if err != nil {
		return nil, fmt.Errorf("read host key: %w", err)
	}
	cmd, err := insideCommand(s.rec, s.dir)
	if err != nil {
		return nil, err
	}
	config := insideConfig{
		HostKey:     string(hostKey),
		HostKeyFile: s.rec.hostKeyInside(),
		ClientKey:   s.rec.ClientKey,
		Home:        s.rec.HomeInside(s.dir),
		Env:         s.rec.environ(s.dir),
		Closed:      ownFiles(s.rec.Kind),
		BeatEvery:   min(5*time.Second, s.rec.IdleExit/4),
	}
	bounds := s.rec.Bounds.orDefault()
	if config.Closed {
		config.Processes = bounds.Processes
	}
	lnFile, err := ln.File()
	if err != nil {
		return nil, err
	}
	defer lnFile.Close()
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("make life socket: %w", err)
	}
	defer theirs.Close()
	cmd.ExtraFiles = []*os.File{lnFile, theirs} // listenerFD, lifeFD
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("start the process inside the sandbox: %w", err)
	}
	in := &inside{cmd: cmd, life: ours, group: newCgroup(cgroupName(s.rec, s.dir), bounds), exited: make(chan struct{})}
	// Nothing in the sandbox runs yet: it waits for its configuration.
	if err := in.group.moveProcess(cmd.Process.Pid); err != nil {
		fmt.Fprintln(os.Stderr, "the box is bounded without its control group:", err)
		in.group = &cgroup{}
	}
	go func() { // ends with the inside
		_ = json.NewEncoder(stdin).Encode(config)
		_ = stdin.Close()
		_ = cmd.Wait()
		close(in.exited)
	}()
	return in, nil
}

// readBeats passes on the inside's heartbeats until it or ctx ends.
func (in *inside) readBeats(ctx context.Context, contact chan<- byte) {
	stop := context.AfterFunc(ctx, func() { _ = in.life.Close() })
	defer stop()
	buf := make([]byte, 1)
	for {
		if _, err := in.life.Read(buf); err != nil {
			return
		}
		select {
		case contact <- buf[0]:
		case <-ctx.Done():
			return
		}
	}
}

// kill ends every process of the sandbox and returns when they are dead. In a sandbox with a PID namespace the kernel
// kills them when the first one dies, which is reparented to this process; in a plain sandbox kill searches for them.
func (in *inside) kill() {
	_ = in.cmd.Process.Kill()
	<-in.exited
	killDescendants(killTimeout)
	in.group.remove()
	_ = in.life.Close()
}

func (in *inside) status() string {
	if in.cmd.ProcessState == nil {
		return "unknown"
	}
	return in.cmd.ProcessState.String()
}

// listenUnix replaces a stale socket; the held lock proves that it is stale.
func listenUnix(path string) (*net.UnixListener, error) {
	_ = os.Remove(path)
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	ln.SetUnlinkOnClose(false) // the inside continues to listen; run removes it
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ln.Close()
		return nil, err
	}
	return ln, nil
}

func socketPair() (net.Conn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	ours, theirs := os.NewFile(uintptr(fds[0]), "life"), os.NewFile(uintptr(fds[1]), "life")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}

func inheritedFile(fd uintptr, name string) *os.File {
	syscall.CloseOnExec(int(fd))
	return os.NewFile(fd, name)
}
