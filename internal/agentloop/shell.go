package agentloop

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Bounds of one command.
const (
	defaultTimeout = 5 * time.Minute
	maxTimeout     = 30 * time.Minute
	// shellOutput is how many bytes of a command's output the model sees.
	shellOutput = 32 << 10
	// afterExit is how long output is read from what a command left in the background.
	afterExit = time.Second
)

// shell runs commands, each in a process group of its own.
type shell struct {
	dir string
	env []string
}

type shellCall struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
	// Restart is what models know from another shell tool; here every command begins anew.
	Restart bool `json:"restart"`
}

// run runs a command to its end, its timeout or the context's end. At the latter two its whole process
// group is killed.
func (s *shell) run(ctx context.Context, call shellCall) toolResult {
	if call.Restart && call.Command == "" {
		return toolResult{"Every command has a shell of its own; nothing is to be restarted.", false}
	}
	if strings.TrimSpace(call.Command) == "" {
		return refused("The command is empty.")
	}
	limit := defaultTimeout
	if call.Timeout > 0 {
		limit = min(time.Duration(min(call.Timeout, 1<<20))*time.Second, maxTimeout)
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := &tailed{limit: shellOutput}
	cmd := exec.CommandContext(timed, program(), "-c", call.Command)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = afterExit
	err := cmd.Run()
	text := strings.TrimRight(out.String(), "\n")
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return toolResult{strings.TrimLeft(text+"\n"+interrupted, "\n"), true}
	case timed.Err() != nil:
		return refused("The command was killed after %s.\n%s", limit, text)
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return refused("Exit code %d\n%s", exit.ExitCode(), text)
	case errors.As(err, &exit):
		return refused("The command ended by a signal: %s\n%s", exit.ProcessState, text)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // something in the background keeps the output open
		return refused("The command could not be run: %v", err)
	}
	return toolResult{text, false}
}

// program is the shell: bash where there is one.
func program() string {
	if path, err := exec.LookPath("bash"); err == nil {
		return path
	}
	return "/bin/sh"
}

// tailed keeps the beginning and the end of what is written to it, in bounded memory.
type tailed struct {
	limit      int
	head, tail []byte
	left       int64 // bytes that were left out between them
}

func (t *tailed) Write(p []byte) (int, error) {
	n := len(p)
	if room := t.limit/2 - len(t.head); room > 0 {
		k := min(room, len(p))
		t.head, p = append(t.head, p[:k]...), p[k:]
	}
	t.tail = append(t.tail, p...)
	if over := len(t.tail) - t.limit/2; over > t.limit { // now and then, not at each write
		t.drop(over)
	}
	return n, nil
}

func (t *tailed) drop(n int) {
	t.left += int64(n)
	t.tail = append(t.tail[:0:0], t.tail[n:]...)
}

// String returns what was kept, as valid UTF-8, and says how much was not.
func (t *tailed) String() string {
	if over := len(t.tail) - t.limit/2; over > 0 {
		t.drop(over)
	}
	gap := ""
	if t.left > 0 {
		gap = fmt.Sprintf("\n[… %d bytes left out …]\n", t.left)
	}
	return strings.ToValidUTF8(string(t.head)+gap+string(t.tail), "\uFFFD")
}
