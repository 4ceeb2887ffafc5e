package work

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/runner/proc"
)

// Limits on the stored end of a check's output.
const (
	checkTailLines = 100
	checkTailBytes = 16 << 10
)

// drainTimeout bounds the wait for the rest of the output after all processes have ended.
const drainTimeout = 5 * time.Second

// run runs one command, with all its descendants, to its end or its time limit.
func (p *checkPlace) run(
	ctx context.Context, c CheckCommand, spec CheckSpec, isolation proc.Isolation, log io.Writer,
) (CheckResult, error) {
	result := CheckResult{Type: TypeCheckResult, Name: c.Name}
	command, skipped := p.changed.fillPlaceholders(c.Command)
	if skipped != "" {
		result.Skipped = skipped
		return result, nil
	}
	argv, err := p.argv(command)
	if err != nil {
		return result, err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return result, err
	}
	defer reader.Close()
	enlargePipe(writer)
	start := time.Now()
	process, err := proc.Start(proc.Command{
		Argv: argv,
		Env:  p.environment(spec), Dir: filepath.Join(p.dir, "tree"),
		Stdout: writer, Stderr: writer,
	}, isolation)
	_ = writer.Close()
	if err != nil {
		return result, err
	}
	tail := &tail{}
	var group sync.WaitGroup
	group.Go(func() { _, _ = io.Copy(io.MultiWriter(tail, log), reader) })
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultCheckTimeout
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-process.Done():
	case <-timer.C:
		result.TimedOut = true
	case <-ctx.Done():
	}
	process.Kill()
	end := process.Wait()
	_ = reader.SetReadDeadline(time.Now().Add(drainTimeout))
	group.Wait()
	result.Code, result.Duration, result.Tail = end.Code, time.Since(start), tail.text()
	if ctx.Err() != nil && !result.TimedOut {
		return result, errors.New("interrupted")
	}
	return result, nil
}

// argv returns the arguments for sh to run a command, from a file if it is too long for an argument.
func (p *checkPlace) argv(command string) ([]string, error) {
	if len(command) <= maxVariable {
		return []string{"/bin/sh", "-c", command}, nil
	}
	name := filepath.Join(p.dir, "command")
	return []string{"/bin/sh", name}, os.WriteFile(name, []byte(command), 0o600)
}

// lend writes the operator's test files into the worktree.
func (p *checkPlace) lend(files []TestFile) error {
	root, err := os.OpenRoot(filepath.Join(p.dir, "tree"))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, f := range files {
		if err := putFile(root, f); err != nil {
			return err
		}
	}
	return excludeFromGit(root, files)
}

// tail keeps the end of the data written to it.
type tail struct {
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if excess := len(t.kept) - checkTailBytes; excess > checkTailBytes {
		t.kept = append(t.kept[:0], t.kept[excess:]...)
	}
	return len(p), nil
}

// text returns the last lines as valid UTF-8, without an incomplete first line unless it is the only one.
func (t *tail) text() string {
	kept := t.kept
	cut := len(kept) > checkTailBytes
	if cut {
		kept = kept[len(kept)-checkTailBytes:]
	}
	lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(kept), "\uFFFD"), "\n"), "\n")
	if cut && len(lines) > 1 {
		lines = lines[1:]
	}
	lines = lines[max(0, len(lines)-checkTailLines):]
	text := strings.Join(lines, "\n")
	if len(text) > checkTailBytes { // replacement characters are longer
		text = strings.ToValidUTF8(text[len(text)-checkTailBytes:], "")
	}
	return text
}
