package box

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/gliderlabs/ssh"
	gossh "golang.org/x/crypto/ssh"
)

// hangupGrace is the time between SIGHUP and SIGKILL for a command whose channel has been closed.
const hangupGrace = 2 * time.Second

type closedKey struct{}

// channelContext is a connection's context that also ends when one channel closes.
type channelContext struct {
	ssh.Context
	closed chan struct{}
}

func (c channelContext) Value(key any) any {
	if key == (closedKey{}) {
		return c.closed
	}
	return c.Context.Value(key)
}

// handleSession is the library's handler, which returns when the channel has been closed; sessions cannot detect that
// otherwise.
func handleSession(srv *ssh.Server, conn *gossh.ServerConn, ch gossh.NewChannel, ctx ssh.Context) {
	closed := make(chan struct{})
	defer close(closed)
	ssh.DefaultSessionHandler(srv, conn, ch, channelContext{Context: ctx, closed: closed})
}

// waitForLimits makes a shell wait until its limits are set. Processes started earlier would not have them, because
// limits are per process.
const waitForLimits = "read -r _ <&3 || exit 126; exec 3<&-; "

// runSession executes a command like sshd: the command line is passed to the shell in a new session; the channel stays
// open until the command has ended and its output is closed. Unlike sshd, it kills the command's process group when the
// channel closes first; processes that have left the group continue.
func runSession(s ssh.Session, cfg insideConfig) {
	closed := s.Context().Value(closedKey{}).(chan struct{})
	cmd := exec.Command("/bin/sh", "-c", waitForLimits+"exec /bin/sh")
	if line := s.RawCommand(); line != "" {
		cmd = exec.Command("/bin/sh", "-c", waitForLimits+`exec /bin/sh -c "$1"`, "sh", line)
	}
	cmd.Dir = cfg.Home
	cmd.Env = append(append([]string(nil), cfg.Env...), s.Environ()...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	gate, open, err := os.Pipe()
	if err != nil {
		_, _ = io.WriteString(s.Stderr(), "box: "+err.Error()+"\n")
		_ = s.Exit(126)
		return
	}
	cmd.ExtraFiles = []*os.File{gate} // its file 3
	copied, closePipes, err := startWithPipes(cmd, s)
	_ = gate.Close()
	defer open.Close()
	if err != nil {
		_, _ = io.WriteString(s.Stderr(), "box: "+err.Error()+"\n")
		_ = s.Exit(126)
		return
	}
	defer closePipes()
	boundCommand(cmd.Process.Pid, cfg.Processes)
	_, _ = io.WriteString(open, "\n") // if this fails the shell exits, and its exit code is reported
	go forwardSignals(s, cmd.Process.Pid, closed)
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	select {
	case err = <-exited:
	case <-closed:
		hangUp(cmd.Process.Pid, exited)
		return
	}
	select {
	case <-copied:
	case <-closed:
		return
	}
	reportExit(s, err)
}

// startWithPipes connects the command to the channel. copied is closed when all its output has been passed on.
func startWithPipes(cmd *exec.Cmd, s ssh.Session) (copied chan struct{}, closePipes func(), err error) {
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		_, _ = outR.Close(), outW.Close()
		return nil, nil, err
	}
	closeWriters := func() { _, _ = outW.Close(), errW.Close() }
	closePipes = func() { _, _ = outR.Close(), errR.Close() }
	cmd.Stdout, cmd.Stderr = outW, errW
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	closeWriters()
	if err != nil {
		closePipes()
		return nil, nil, err
	}
	go func() { // ends with the client's end of file or the channel
		_, _ = io.Copy(stdin, s)
		_ = stdin.Close()
	}()
	var wg sync.WaitGroup
	wg.Go(func() { copyUntilClosed(s, outR) })
	wg.Go(func() { copyUntilClosed(s.Stderr(), errR) })
	copied = make(chan struct{})
	go func() { wg.Wait(); close(copied) }()
	return copied, closePipes, nil
}

// copyUntilClosed copies until either end is closed; closing the reader notifies the writer.
func copyUntilClosed(w io.Writer, r *os.File) {
	_, _ = io.Copy(w, r)
	_ = r.Close()
}

// hangUp ends the process group with the leader pid.
func hangUp(pid int, exited <-chan error) {
	_ = syscall.Kill(-pid, syscall.SIGHUP)
	grace := time.NewTimer(hangupGrace)
	defer grace.Stop()
	select {
	case <-exited:
	case <-grace.C:
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}

// forwardSignals drains signals until the channel is closed, since the library blocks on unread signals.
func forwardSignals(s ssh.Session, pid int, closed <-chan struct{}) {
	signals := make(chan ssh.Signal, 16)
	s.Signals(signals)
	for {
		select {
		case <-closed:
			return
		case name := <-signals:
			if sig, ok := signalByName[string(name)]; ok {
				_ = syscall.Kill(-pid, sig)
			}
		}
	}
}

var signalByName = map[string]syscall.Signal{
	"ABRT": syscall.SIGABRT, "ALRM": syscall.SIGALRM, "FPE": syscall.SIGFPE, "HUP": syscall.SIGHUP,
	"ILL": syscall.SIGILL, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "PIPE": syscall.SIGPIPE,
	"QUIT": syscall.SIGQUIT, "SEGV": syscall.SIGSEGV, "TERM": syscall.SIGTERM,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

// reportExit sends exit-status or exit-signal according to RFC 4254, section 6.10.
func reportExit(s ssh.Session, err error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		_ = s.Exit(0)
		return
	case !errors.As(err, &exit):
		_ = s.Exit(126)
		return
	}
	status := exit.Sys().(syscall.WaitStatus)
	if !status.Signaled() {
		_ = s.Exit(status.ExitStatus())
		return
	}
	for name, sig := range signalByName {
		if sig == status.Signal() {
			payload := struct {
				Signal     string
				CoreDumped bool
				Message    string
				Language   string
			}{Signal: name, CoreDumped: status.CoreDump()}
			_, _ = s.SendRequest("exit-signal", false, gossh.Marshal(&payload))
			_ = s.Close()
			return
		}
	}
	_ = s.Exit(128 + int(status.Signal()))
}
