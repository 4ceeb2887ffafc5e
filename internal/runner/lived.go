package runner

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/runner/proc"
)

// otherUser is another user than the runner's.
type otherUser struct {
	become []string
	home   string // of the user
	id     string // of the run
	keeper Root   // the runner's own
}

func (u *otherUser) root() Root { return Root(u.home + "/.errand") }

func (u *otherUser) write(files []File) error {
	_, err := u.ask(liveOrder{Verb: verbWrite, Files: files})
	return err
}

func (u *otherUser) prepare(spec Spec) (ready, error) {
	a, err := u.ask(liveOrder{Verb: verbPrepare, Spec: Spec{Dir: spec.Dir, Setup: spec.Setup, Isolation: spec.Isolation}})
	return a.Ready, err
}

func (u *otherUser) setUp(dir string, commands []SetupCommand) error {
	_, err := u.ask(liveOrder{Verb: verbSetUp, Spec: Spec{Dir: dir, Setup: commands}})
	return err
}

// ask has Live do something at once.
func (u *otherUser) ask(order liveOrder) (liveAnswer, error) {
	order.Root = u.root()
	l, err := dial(u.become, order)
	if err != nil {
		return liveAnswer{}, err
	}
	a, err := l.next()
	l.close()
	if err = l.explain(err); err != nil {
		return liveAnswer{}, fmt.Errorf("%s as the agent's user: %w", order.Verb, err)
	}
	return a, nil
}

// lived is a command that Live has started as another user.
type lived struct {
	link *link
	end  func() int
	once sync.Once
	exit proc.Exit
	done chan struct{}
}

func (u *otherUser) start(c proc.Command, stdin string, isolation proc.Isolation) (process, error) {
	for _, f := range []*os.File{c.Stdout, c.Stderr} {
		// A file or pipe is its maker's. Whoever holds it may open it once more, by a name such as /dev/stderr.
		if err := f.Chmod(0o666); err != nil { //nolint:gosec // it has no name
			return nil, fmt.Errorf("open the output to the agent's user: %w", err)
		}
	}
	l, err := dial(u.become, liveOrder{
		Verb: verbRun, Root: u.root(), RunID: u.id, Argv: c.Argv, Env: c.Env, Stdin: stdin, Spec: Spec{Dir: c.Dir, Isolation: isolation},
	}, c.Stdout, c.Stderr)
	if err != nil {
		return nil, err
	}
	if err := l.started(); err != nil {
		l.close()
		u.end()
		return nil, l.explain(err)
	}
	_ = l.conn.SetDeadline(time.Time{})
	p := &lived{link: l, end: u.end, done: make(chan struct{})}
	go p.wait()
	return p, nil
}

func (p *lived) wait() {
	defer close(p.done)
	a, err := p.link.next()
	p.exit = a.Exit
	if err != nil || !a.Ended { // somebody has killed it: its own user, or the kernel for want of memory
		p.exit = proc.Exit{Code: 128 + int(unix.SIGKILL), Signal: unix.SIGKILL.String()}
	}
	p.link.close()
	p.exit.Left = p.end()
}

func (p *lived) Interrupt() { _, _ = p.link.conn.Write([]byte{liveInterrupt}) }

// Kill ends everything, without Live if that does not obey.
func (p *lived) Kill() {
	p.once.Do(func() {
		_ = p.link.conn.CloseWrite()
		_ = p.link.conn.SetReadDeadline(time.Now().Add(killWait))
	})
}

func (p *lived) Done() <-chan struct{} { return p.done }

func (p *lived) Wait() proc.Exit {
	<-p.done
	return p.exit
}

func (p *lived) CPU() (time.Duration, bool) { return proc.TreeCPU(p.link.cmd.Process.Pid) }
