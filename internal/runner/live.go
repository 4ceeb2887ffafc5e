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

// LiveCommand is the hidden subcommand by which the runner acts as the agent's user; see [Live].
const LiveCommand = "live"

// The verbs of an order.
const (
	verbWrite   = "write"   // writes the files
	verbPrepare = "prepare" // see user.prepare
	verbSetUp   = "set-up"  // records its success
	verbRun     = "run"     // runs the command
	verbEnd     = "end"     // ends leftover processes
)

// liveOrder is the order to Live, on one line of its standard input.
type liveOrder struct {
	Verb  string `json:"verb"`
	Root  Root   `json:"root"` // the agent user's root
	Files []File `json:"files,omitempty"`
	Spec  Spec   `json:"spec"` // for prepare and set-up: Dir, Setup, Isolation
	// For run: the command and the run's id.
	Argv  []string `json:"argv,omitempty"`
	Env   []string `json:"env,omitempty"`
	Stdin string   `json:"stdin,omitempty"`
	RunID string   `json:"run,omitempty"`
	// For end: the start time of the first run, in the unit of proc.StartTime; or all processes at once.
	Since      int64 `json:"since,omitempty"`
	Everything bool  `json:"everything,omitempty"`
}

// liveAnswer is an answer of Live. Live sends one, or three for run: before it starts the command, after the start, and
// after the end.
type liveAnswer struct {
	OK    bool           `json:"ok,omitempty"`
	Error string         `json:"error,omitempty"`
	Ready workspaceState `json:"ready"`
	Ended bool           `json:"ended,omitempty"`
	proc.Exit
}

// liveInterrupt is the byte that makes Live interrupt the command.
const liveInterrupt = 'i'

// orderFollows is the first byte on the socket. The files for the output of a run's command are attached to it.
const orderFollows = '\n'

// Live is the "live" subcommand, which the supervisor of a run starts as the agent's user. Its standard input is a
// socket, on which it receives one order and answers. While a command runs, the byte 'i' interrupts it; the end of the
// socket, such as after the death of the supervisor, kills it with all its descendants.
//
// The agent's user owns this process and can kill and impersonate it, so its answers are not trusted more than that
// user.
func Live(socket *os.File) error {
	proc.Detach()
	files, err := receiveFiles(int(socket.Fd()))
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
	if err := executeOrder(order, &out); err != nil {
		out = liveAnswer{Error: err.Error()}
	}
	return answer.Encode(out)
}

// receiveFiles receives the first byte of a socket and the files attached to it.
func receiveFiles(socket int) ([]*os.File, error) {
	first, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(8*4))
	n, m, _, _, err := unix.Recvmsg(socket, first, rights, 0)
	for errors.Is(err, unix.EINTR) {
		n, m, _, _, err = unix.Recvmsg(socket, first, rights, 0)
	}
	if err != nil {
		return nil, err
	}
	if n != 1 || first[0] != orderFollows {
		return nil, errors.New("unexpected first byte")
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

// executeOrder executes an immediate order.
func executeOrder(order liveOrder, out *liveAnswer) error {
	switch order.Verb {
	case verbWrite:
		return writeFiles(order.Files)
	case verbPrepare:
		out.Ready = probeWorkspace(order.Root, order.Spec)
	case verbSetUp:
		return markSetUp(order.Root, order.Spec.Dir, order.Spec.Setup)
	case verbEnd:
		if order.Everything {
			proc.KillAll()
		}
		out.Leftovers = proc.KillLeftovers(os.Getuid(), order.Since)
	default:
		return fmt.Errorf("unknown order %q", order.Verb)
	}
	return nil
}

// runLive runs a command to its end.
func runLive(order liveOrder, files []*os.File, orders io.Reader, answer *json.Encoder) error {
	// Answer before the command can do anything: it belongs to the same user and may kill Live at once. An error means
	// that the supervisor is gone, which the end of the socket reports, too.
	_ = answer.Encode(liveAnswer{OK: true})
	command := proc.Command{Argv: order.Argv, Env: withPersonal(order.Env), Dir: order.Spec.Dir, Stdout: files[0], Stderr: files[1]}
	p, err := startWith(order.Root.RunDir(order.RunID), command, order.Stdin, order.Spec.Isolation)
	_, _ = files[0].Close(), files[1].Close() // the command has its own copies
	if err != nil {
		return answer.Encode(liveAnswer{Error: err.Error()})
	}
	_ = answer.Encode(liveAnswer{OK: true})
	// Nobody else reads, and the goroutine ends with the process.
	go forwardSignals(orders, p)
	return answer.Encode(liveAnswer{OK: true, Ended: true, Exit: p.Wait()})
}

// forwardSignals passes interrupts on, and kills the command at the end of the socket.
func forwardSignals(orders io.Reader, p process) {
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
