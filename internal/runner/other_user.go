package runner

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/runner/proc"
)

// otherUser does the work of a run as a user different from the runner's.
type otherUser struct {
	become []string
	home   string // the user's home
	id     string // the run's id
	keeper Root   // the runner's own root
}

func (u *otherUser) root() Root { return Root(u.home + "/.errand") }

func (u *otherUser) write(files []File) error {
	_, err := u.execute(liveOrder{Verb: verbWrite, Files: files})
	return err
}

func (u *otherUser) prepare(spec Spec) (workspaceState, error) {
	a, err := u.execute(liveOrder{Verb: verbPrepare, Spec: Spec{Dir: spec.Dir, Setup: spec.Setup, Isolation: spec.Isolation}})
	return a.Ready, err
}

func (u *otherUser) setUp(dir string, commands []SetupCommand) error {
	_, err := u.execute(liveOrder{Verb: verbSetUp, Spec: Spec{Dir: dir, Setup: commands}})
	return err
}

// execute lets Live execute an immediate order.
func (u *otherUser) execute(order liveOrder) (liveAnswer, error) {
	order.Root = u.root()
	l, err := startLive(u.become, order)
	if err != nil {
		return liveAnswer{}, err
	}
	a, err := l.nextAnswer()
	l.close()
	if err = l.explain(err); err != nil {
		return liveAnswer{}, fmt.Errorf("%s as the agent's user: %w", order.Verb, err)
	}
	return a, nil
}

// otherUserProcess is a command that Live has started as another user.
type otherUserProcess struct {
	link *link
	end  func() int
	once sync.Once
	exit proc.Exit
	done chan struct{}
}

func (u *otherUser) start(c proc.Command, stdin string, isolation proc.Isolation) (process, error) {
	for _, f := range []*os.File{c.Stdout, c.Stderr} {
		// A file or pipe belongs to its creator. The command may open it again by a name such as /dev/stderr.
		if err := f.Chmod(0o666); err != nil { //nolint:gosec // the file has no name
			return nil, fmt.Errorf("open the output to the agent's user: %w", err)
		}
	}
	l, err := startLive(u.become, liveOrder{
		Verb: verbRun, Root: u.root(), RunID: u.id, Argv: c.Argv, Env: c.Env, Stdin: stdin, Spec: Spec{Dir: c.Dir, Isolation: isolation},
	}, c.Stdout, c.Stderr)
	if err != nil {
		return nil, err
	}
	if err := l.awaitStart(); err != nil {
		l.close()
		u.endLeftovers()
		return nil, l.explain(err)
	}
	_ = l.conn.SetDeadline(time.Time{})
	p := &otherUserProcess{link: l, end: u.endLeftovers, done: make(chan struct{})}
	go p.wait()
	return p, nil
}

func (p *otherUserProcess) wait() {
	defer close(p.done)
	a, err := p.link.nextAnswer()
	p.exit = a.Exit
	if err != nil || !a.Ended { // it was killed by its own user, or by the kernel for lack of memory
		p.exit = proc.Exit{Code: 128 + int(unix.SIGKILL), Signal: unix.SIGKILL.String()}
	}
	p.link.close()
	p.exit.Leftovers = p.end()
}

func (p *otherUserProcess) Interrupt() { _, _ = p.link.conn.Write([]byte{liveInterrupt}) }

// Kill ends everything, without Live if that does not respond.
func (p *otherUserProcess) Kill() {
	p.once.Do(func() {
		_ = p.link.conn.CloseWrite()
		_ = p.link.conn.SetReadDeadline(time.Now().Add(killWait))
	})
}

func (p *otherUserProcess) Done() <-chan struct{} { return p.done }

func (p *otherUserProcess) Wait() proc.Exit {
	<-p.done
	return p.exit
}

func (p *otherUserProcess) CPU() (time.Duration, bool) { return proc.TreeCPU(p.link.cmd.Process.Pid) }
