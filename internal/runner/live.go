package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/runner/proc"
)

// LiveCommand is the hidden subcommand by which the runner does something as the agent's user: see Live.
const LiveCommand = "live"

// The verbs of an order.
const (
	verbWrite   = "write"   // the files
	verbPrepare = "prepare" // see user.prepare
	verbSetUp   = "set-up"  // remember it
	verbRun     = "run"     // the command
	verbEnd     = "end"     // what is left
)

// liveOrder is what Live is told, on one line of its standard input.
type liveOrder struct {
	Verb  string `json:"verb"`
	Root  Root   `json:"root"` // the user's
	Files []File `json:"files,omitempty"`
	Spec  Spec   `json:"spec"` // for prepare and set-up: Dir, Setup, Isolation
	// For run: the command, and the run's directory.
	Argv  []string `json:"argv,omitempty"`
	Env   []string `json:"env,omitempty"`
	Stdin string   `json:"stdin,omitempty"`
	RunID string   `json:"run,omitempty"`
	// For end: whose processes, from when on; or everything at one stroke.
	Since      int64 `json:"since,omitempty"`
	Everything bool  `json:"everything,omitempty"`
}

// liveAnswer is what Live says, once, or for run three times: that it starts the command, that the command has started, and
// how it ended.
type liveAnswer struct {
	OK    bool   `json:"ok,omitempty"`
	Error string `json:"error,omitempty"`
	Ready ready  `json:"ready"`
	Ended bool   `json:"ended,omitempty"`
	proc.Exit
}

// liveInterrupt has the command interrupted.
const liveInterrupt = 'i'

// orderFollows is the first byte on the socket, with which come the files that the command of a run writes to.
const orderFollows = '\n'

// Live is the "live" subcommand, run as the agent's user by the supervisor of a run. Its standard input is a socket, on
// which it takes one order and answers. While a command runs, the byte 'i' interrupts it, and the end of the socket, as
// when the supervisor has died, ends it with all that it started.
//
// It belongs to the user whom it works for, who can end it and speak in its place: nothing that it says is more than that
// user's word.
func Live(socket *os.File) error {
	proc.Detach()
	files, err := receive(int(socket.Fd()))
	if err != nil {
		return fmt.Errorf("receive an order: %w", err)
	}
	decoder := json.NewDecoder(socket)
	var order liveOrder
	if err := decoder.Decode(&order); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	answer := json.NewEncoder(socket)
	if order.Verb == verbRun {
		if len(files) != 2 {
			return fmt.Errorf("an order with %d files to write to", len(files))
		}
		return runLive(order, files, io.MultiReader(decoder.Buffered(), socket), answer)
	}
	out := liveAnswer{OK: true}
	if err := obeyLive(order, &out); err != nil {
		out = liveAnswer{Error: err.Error()}
	}
	return answer.Encode(out)
}

// receive takes the first byte of a socket and the files that come with it.
func receive(socket int) ([]*os.File, error) {
	first, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(8*4))
	n, m, _, _, err := unix.Recvmsg(socket, first, rights, 0)
	for errors.Is(err, unix.EINTR) {
		n, m, _, _, err = unix.Recvmsg(socket, first, rights, 0)
	}
	if err != nil {
		return nil, err
	}
	if n != 1 || first[0] != orderFollows {
		return nil, errors.New("it does not begin as it should")
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, message := range messages {
		fds, err := unix.ParseUnixRights(&message)
		if err != nil {
			return nil, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "output"))
		}
	}
	return files, nil
}

// obeyLive does what is done at once.
func obeyLive(order liveOrder, out *liveAnswer) error {
	switch order.Verb {
	case verbWrite:
		return writeFiles(order.Files)
	case verbPrepare:
		out.Ready = getReady(order.Root, order.Spec)
	case verbSetUp:
		return markSetUp(order.Root, order.Spec.Dir, order.Spec.Setup)
	case verbEnd:
		if order.Everything {
			proc.EndEverything()
		}
		out.Left = proc.EndLeft(os.Getuid(), order.Since)
	default:
		return fmt.Errorf("no such order: %q", order.Verb)
	}
	return nil
}

// runLive runs a command to its end.
func runLive(order liveOrder, files []*os.File, orders io.Reader, answer *json.Encoder) error {
	// Said before the command can do anything: it is the same user's and may end Live at once. Whoever cannot be told is
	// gone, and the end of the socket says the same.
	_ = answer.Encode(liveAnswer{OK: true})
	command := proc.Command{Argv: order.Argv, Env: withPersonal(order.Env), Dir: order.Spec.Dir, Stdout: files[0], Stderr: files[1]}
	p, err := startWith(order.Root.RunDir(order.RunID), command, order.Stdin, order.Spec.Isolation)
	_, _ = files[0].Close(), files[1].Close() // their end is the command's
	if err != nil {
		return answer.Encode(liveAnswer{Error: err.Error()})
	}
	_ = answer.Encode(liveAnswer{OK: true})
	// Nobody else reads, and this process ends with Live.
	go obeyOrders(orders, p)
	return answer.Encode(liveAnswer{OK: true, Ended: true, Exit: p.Wait()})
}

// obeyOrders passes orders on until the supervisor is gone or wants the end.
func obeyOrders(orders io.Reader, p process) {
	order := make([]byte, 1)
	for {
		if _, err := orders.Read(order); err != nil {
			p.Kill()
			return
		}
		if order[0] == liveInterrupt {
			p.Interrupt()
		}
	}
}
