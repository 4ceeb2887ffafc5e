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
	// askTimeout bounds what Live does at once, and how long a command may take to start.
	askTimeout = 45 * time.Second
	// endTimeout bounds one try to end what is left.
	endTimeout = 5 * time.Second
	// killWait is how long Live may take to end a command with all that it started before that is done without it.
	killWait = 8 * time.Second
	// leaveWait is how long Live may take to end itself when nobody listens any more.
	leaveWait = 5 * time.Second
	// maxAnswer bounds what Live says.
	maxAnswer = 1 << 20
)

// link is one Live that runs as another user.
type link struct {
	cmd     *exec.Cmd
	conn    *net.UnixConn
	answers *json.Decoder
	gone    chan struct{} // closed when it has ended
	words   words         // what it said besides, to be read when it is gone
}

// words keeps the beginning of what is written to it. Who writes there may be the agent.
type words struct{ bytes.Buffer }

func (w *words) Write(p []byte) (int, error) {
	const most = 8 << 10
	w.Buffer.Write(p[:max(0, min(len(p), most-w.Len()))])
	return len(p), nil
}

// dial starts Live as another user and gives it its order, with files that it may write to. What sudo itself has to say
// is kept apart from them.
func dial(become []string, order liveOrder, files ...*os.File) (*link, error) {
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
	l.cmd.Dir, l.cmd.Stdin, l.cmd.Stderr = "/", theirs, &l.words
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
	// Whoever does not take it does not answer.
	var rights []int
	for _, f := range files {
		rights = append(rights, int(f.Fd()))
	}
	if _, _, err := conn.WriteMsgUnix([]byte{orderFollows}, unix.UnixRights(rights...), nil); err == nil {
		_ = json.NewEncoder(conn).Encode(order)
	}
	return l, nil
}

// socketPair makes two ends of a socket, which no other program inherits by itself.
func socketPair() (*net.UnixConn, *os.File, error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close() // FileConn has a copy
	conn, err := net.FileConn(ours)
	if err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("make a socket: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil //nolint:forcetypeassert // by its making
}

// saidError is an error that Live has told.
type saidError string

func (e saidError) Error() string { return string(e) }

// next is the next thing that it says; a saidError if that is an error.
func (l *link) next() (liveAnswer, error) {
	var a liveAnswer
	if err := l.answers.Decode(&a); err != nil {
		return a, err
	}
	if !a.OK {
		return a, saidError(a.Error)
	}
	return a, nil
}

// started returns when the command of a run has started, or why it has not. A command may end Live before that could say
// so: then the command has started, too, and the next answer is missing.
func (l *link) started() error {
	if _, err := l.next(); err != nil {
		return err
	}
	_, err := l.next()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}

// explain adds to the failure of a link that is closed why sudo would not, which says most.
func (l *link) explain(err error) error {
	if said := saidError(""); err == nil || errors.As(err, &said) {
		return err
	}
	select {
	case <-l.gone:
		return fmt.Errorf("become the agent's user: %w: %s", err, strings.TrimSpace(l.words.String()))
	default:
		return fmt.Errorf("become the agent's user: %w", err)
	}
}

// close has it end by itself and does not wait for long: it is another user's, who may hold it.
func (l *link) close() {
	_ = l.conn.Close()
	timer := time.NewTimer(leaveWait)
	defer timer.Stop()
	select {
	case <-l.gone:
	case <-timer.C:
	}
}
