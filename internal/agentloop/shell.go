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

// Limits of one command.
const (
	defaultTimeout = 5 * time.Minute
	maxTimeout     = 30 * time.Minute
	// shellOutput is the number of bytes of a command's output that the model sees.
	shellOutput = 32 << 10
	// afterExit is how long output of background processes is read after a command's exit.
	afterExit = time.Second
)

// shell runs commands, each in its own process group.
type shell struct {
	dir string
	env []string
}

type shellCall struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
	// Restart is a parameter of another shell tool that models know. Here every command starts a new shell, so it has
	// no effect.
	Restart bool `json:"restart"`
}

// run runs a command until its end, its timeout or the end of ctx. In the latter two cases it kills the process group.
func (s *shell) run(ctx context.Context, call shellCall) toolResult {
	if call.Restart && call.Command == "" {
		return toolResult{text: "Every command runs in its own shell; there is nothing to restart."}
	}
	if strings.TrimSpace(call.Command) == "" {
		return refusedResult("The command is empty.")
	}
	limit := defaultTimeout
	if call.Timeout > 0 {
		limit = min(time.Duration(min(call.Timeout, 1<<20))*time.Second, maxTimeout)
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := &headTailBuffer{limit: shellOutput}
	cmd := exec.CommandContext(timed, shellPath(), "-c", call.Command)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = afterExit
	err := cmd.Run()
	text := strings.TrimRight(out.String(), "\n")
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return toolResult{text: strings.TrimLeft(text+"\n"+interrupted, "\n"), failed: true}
	case timed.Err() != nil:
		return refusedResult("The command was killed after %s.\n%s", limit, text)
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return refusedResult("Exit code %d\n%s", exit.ExitCode(), text)
	case errors.As(err, &exit):
		return refusedResult("The command ended by a signal: %s\n%s", exit.ProcessState, text)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // a background process keeps the output open
		return refusedResult("The command could not be run: %v", err)
	}
	return toolResult{text: text}
}

// shellPath returns the path of bash, or of sh if there is no bash.
func shellPath() string {
	if path, err := exec.LookPath("bash"); err == nil {
		return path
	}
	return "/bin/sh"
}

// headTailBuffer keeps the beginning and the end of the data written to it, in bounded memory.
type headTailBuffer struct {
	limit      int
	head, tail []byte
	dropped    int64 // bytes that were dropped between them
}

func (t *headTailBuffer) Write(p []byte) (int, error) {
	n := len(p)
	if room := t.limit/2 - len(t.head); room > 0 {
		k := min(room, len(p))
		t.head, p = append(t.head, p[:k]...), p[k:]
	}
	t.tail = append(t.tail, p...)
	if over := len(t.tail) - t.limit/2; over > t.limit { // occasionally, not at each write
		t.drop(over)
	}
	return n, nil
}

func (t *headTailBuffer) drop(n int) {
	t.dropped += int64(n)
	t.tail = append(t.tail[:0:0], t.tail[n:]...)
}

// String returns the kept data as valid UTF-8, with the number of dropped bytes.
func (t *headTailBuffer) String() string {
	if over := len(t.tail) - t.limit/2; over > 0 {
		t.drop(over)
	}
	gap := ""
	if t.dropped > 0 {
		gap = fmt.Sprintf("\n[… %d bytes left out …]\n", t.dropped)
	}
	return strings.ToValidUTF8(string(t.head)+gap+string(t.tail), "\uFFFD")
}
