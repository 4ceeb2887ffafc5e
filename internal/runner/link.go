package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// askTimeout bounds an immediate order, and the start of a command.
	askTimeout = 45 * time.Second
	// endTimeout bounds one attempt to end leftover processes.
	endTimeout = 5 * time.Second
	// killWait is the time for Live to end a command with its descendants before the runner ends them without it.
	killWait = 8 * time.Second
	// leaveWait is the time for Live to exit after its socket is closed.
	leaveWait = 5 * time.Second
	// maxAnswer bounds the output of Live in bytes.
	maxAnswer = 1 << 20
)

// link is the connection to one Live process that runs as another user.
type link struct {
	cmd     *exec.Cmd
	conn    *net.UnixConn
	answers *json.Decoder
	gone    chan struct{} // closed when the process has exited
	stderr  headBuffer    // beginning of its stderr, to be read after gone is closed
}

// headBuffer keeps the beginning of the data written to it. The writer may be the agent.
type headBuffer struct{ bytes.Buffer }

func (w *headBuffer) Write(p []byte) (int, error) {
	const most = 8 << 10
	w.Buffer.Write(p[:max(0, min(len(p), most-w.Len()))])
	return len(p), nil
}

// startLive starts Live as another user and sends it an order, with the files that it may write to. The output of sudo
// itself goes to link.stderr.
func startLive(become []string, order liveOrder, files ...*os.File) (*link, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own file: %w", err)
	}
	conn, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	argv := append(slices.Clone(become), self, LiveCommand)
	l := &link{cmd: exec.Command(argv[0], argv[1:]...), conn: conn, gone: make(chan struct{})}
	l.cmd.Dir, l.cmd.Stdin, l.cmd.Stderr = "/", theirs, &l.stderr
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	l.cmd.WaitDelay = leaveWait
	if err := l.cmd.Start(); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("become the agent's user: %w", err)
	}
	go func() {
		defer close(l.gone)
		_ = l.cmd.Wait()
	}()
	l.answers = json.NewDecoder(io.LimitReader(conn, maxAnswer))
	timeout := askTimeout
	if order.Verb == verbEnd {
		timeout = endTimeout
	}
	_ = conn.SetDeadline(time.Now().Add(timeout))
	// If the process does not accept the order, its answer will be missing.
	var rights []int
	for _, f := range files {
		rights = append(rights, int(f.Fd()))
	}
	if _, _, err := conn.WriteMsgUnix([]byte{orderFollows}, unix.UnixRights(rights...), nil); err == nil {
		_ = json.NewEncoder(conn).Encode(order)
	}
	return l, nil
}

// socketPair returns two connected sockets that no other child process inherits.
func socketPair() (*net.UnixConn, *os.File, error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("create a socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close() // FileConn has a copy
	conn, err := net.FileConn(ours)
	if err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("create a socket: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil //nolint:forcetypeassert // of a socket pair
}

// liveError is an error that Live reported.
type liveError string

func (e liveError) Error() string { return string(e) }

// nextAnswer returns the next answer of Live; the error is a liveError if Live reported one.
func (l *link) nextAnswer() (liveAnswer, error) {
	var a liveAnswer
	if err := l.answers.Decode(&a); err != nil {
		return a, err
	}
	if !a.OK {
		return a, liveError(a.Error)
	}
	return a, nil
}

// awaitStart returns when the run's command has started, or the reason why it has not. A command may kill Live before
// it reports the start: then the command has started, too, and the second answer is missing.
func (l *link) awaitStart() error {
	if _, err := l.nextAnswer(); err != nil {
		return err
	}
	_, err := l.nextAnswer()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}

// explain adds the output of sudo to the failure of a closed link, because it usually contains the reason.
func (l *link) explain(err error) error {
	if said := liveError(""); err == nil || errors.As(err, &said) {
		return err
	}
	select {
	case <-l.gone:
		return fmt.Errorf("become the agent's user: %w: %s", err, strings.TrimSpace(l.stderr.String()))
	default:
		return fmt.Errorf("become the agent's user: %w", err)
	}
}

// close lets Live exit on its own and waits only briefly, because the other user may have stopped it.
func (l *link) close() {
	_ = l.conn.Close()
	timer := time.NewTimer(leaveWait)
	defer timer.Stop()
	select {
	case <-l.gone:
	case <-timer.C:
	}
}
