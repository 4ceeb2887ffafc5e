package proc

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// Process is a started command with all its descendants.
type Process struct {
	isolation Isolation
	cmd       *exec.Cmd
	control   *os.File // pidns: orders to ns-init, which ends at the end of file
	report    *nsReport

	exit Exit
	done chan struct{}
}

// Start starts the command. All its processes are ended when the command itself ends, when Kill is called or, in a PID
// namespace, when the calling program dies.
func Start(c Command, isolation Isolation) (*Process, error) {
	if len(c.Argv) == 0 {
		return nil, fmt.Errorf("%w: no command given", ErrNotStarted)
	}
	p := &Process{isolation: isolation, done: make(chan struct{})}
	var err error
	switch isolation {
	case PIDNamespace:
		err = p.startNamespaced(c)
	default:
		if isolation == Subreaper {
			err = becomeSubreaper()
		}
		if err == nil {
			err = p.startPlain(c)
		}
	}
	if err != nil {
		return nil, err
	}
	go p.wait()
	return p, nil
}

func (p *Process) startPlain(c Command) error {
	p.cmd = &exec.Cmd{
		Path: c.Argv[0], Args: c.Argv, Env: c.Env, Dir: c.Dir,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	setFiles(p.cmd, c)
	path, err := lookPath(c)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	p.cmd.Path = path
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	offerToOOM(p.cmd.Process.Pid)
	return nil
}

// setFiles assigns only non-nil files: a nil *os.File in an interface is not nil.
func setFiles(cmd *exec.Cmd, c Command) {
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
}

// Isolation returns the mechanism that keeps the processes together.
func (p *Process) Isolation() Isolation { return p.isolation }

// Interrupt sends SIGINT to the command itself, not to its children. It does nothing if the command has ended.
func (p *Process) Interrupt() {
	if p.isolation == PIDNamespace {
		_, _ = p.control.Write([]byte{orderInterrupt})
		return
	}
	_ = p.cmd.Process.Signal(os.Interrupt)
}

// Kill ends all processes at once. It may be called at any time and repeatedly; Wait returns when all of them have
// ended.
func (p *Process) Kill() {
	select {
	case <-p.done: // another process may have its id by now
		return
	default:
	}
	if p.isolation == Group {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		return
	}
	_ = p.cmd.Process.Kill()
}

// Done is closed when all processes have ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns how the command ended, after all its processes have ended.
func (p *Process) Wait() Exit {
	<-p.done
	return p.exit
}

// CPU returns the CPU time that the command and its descendants have used so far. known is false if the system does not
// report it. The sum may decrease when processes end.
func (p *Process) CPU() (used time.Duration, known bool) {
	return treeCPU(p.cmd.Process.Pid, p.isolation)
}

func (p *Process) wait() {
	defer close(p.done)
	err := p.cmd.Wait()
	if p.isolation == PIDNamespace {
		// ns-init is the namespace's init: when Wait returns, the kernel has killed and reaped every process of the
		// namespace.
		p.exit = p.report.exit(err)
		_ = p.control.Close()
		return
	}
	p.exit = exitOf(p.cmd)
	p.exit.Leftovers = endDescendants(p.cmd.Process.Pid, p.isolation)
}

// exitOf returns a command's end after Wait.
func exitOf(cmd *exec.Cmd) Exit {
	state := cmd.ProcessState
	if state == nil {
		return Exit{Code: -1}
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return Exit{Code: 128 + int(status.Signal()), Signal: status.Signal().String()}
	}
	return Exit{Code: state.ExitCode()}
}

// Detach keeps the calling program alive when its terminal or SSH session closes. The signals are caught instead of
// ignored, because commands would inherit an ignored signal.
func Detach() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
}
