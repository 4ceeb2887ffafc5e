package agenttest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
)

// Process is a run in progress.
type Process struct {
	t      *testing.T
	cmd    *exec.Cmd
	spec   agent.Spec
	prior  runlog.Usage
	parser agent.Parser
	stderr bytes.Buffer
	done   chan struct{}

	mu      sync.Mutex
	stopped bool
	result  Outcome
}

// Outcome is the result of a finished run.
type Outcome struct {
	Events []runlog.Event
	Lines  [][]byte
	Ended  agent.Ended
	Result agent.Result
}

// Start starts a run of the spec. Its remaining processes are killed when the test ends.
func Start(t *testing.T, h Harness, spec agent.Spec) *Process {
	t.Helper()
	return start(t, h, spec, runlog.Usage{})
}

// start starts a run whose session has the given prior usage.
func start(t *testing.T, h Harness, spec agent.Spec, prior runlog.Usage) *Process {
	t.Helper()
	c, err := h.Adapter.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Path, f.Content, f.Mode); err != nil {
			t.Fatal(err)
		}
	}
	p := &Process{t: t, spec: spec, prior: prior, parser: h.Adapter.NewParser(), done: make(chan struct{})}
	p.cmd = exec.Command(c.Argv[0], c.Argv[1:]...)
	p.cmd.Dir = spec.WorkDir
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, h.Env...)
	for k, v := range c.Env {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	p.cmd.Stdin, p.cmd.Stderr = bytes.NewReader(c.Stdin), &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A file instead of a pipe, because the real command drops the output that a full pipe has not taken at its exit.
	stdout, err := os.CreateTemp(t.TempDir(), "stdout")
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout = stdout
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	})
	go p.follow(stdout)
	return p
}

// follow waits for the end, reads the output, and judges the run.
func (p *Process) follow(stdout *os.File) {
	defer close(p.done)
	defer stdout.Close()
	err := p.cmd.Wait()
	p.read(stdout)
	p.mu.Lock()
	stopped := p.stopped
	p.mu.Unlock()
	want := wanted(p.spec)
	ended := agent.Ended{
		Exit:          runlog.Exit{Cause: runlog.CauseExited, EndedAt: time.Now()},
		StopRequested: stopped, Stderr: p.stderr.String(),
		WantSession: want.session, WantSchema: want.schema, Prior: &p.prior,
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		ended.Exit.Code = exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			ended.Exit.Signal = ws.Signal().String()
		}
	}
	if told, ok := p.parser.(agent.StderrParser); ok {
		for line := range strings.Lines(ended.Stderr) {
			told.StderrLine(strings.TrimRight(line, "\n"))
		}
	}
	p.result.Ended, p.result.Result = ended, p.parser.Exit(ended)
}

// read passes every line of the output to the parser.
func (p *Process) read(stdout *os.File) {
	if _, err := stdout.Seek(0, io.SeekStart); err != nil {
		p.t.Errorf("read the output: %v", err)
		return
	}
	r := bufio.NewReader(stdout)
	for {
		line, err := r.ReadBytes('\n')
		if line = bytes.TrimRight(line, "\n"); len(line) > 0 {
			p.result.Lines = append(p.result.Lines, line)
			p.result.Events = append(p.result.Events, p.parser.Line(line)...)
		}
		if err != nil {
			return
		}
	}
}

// Interrupt stops the run with the signal that errand uses.
func (p *Process) Interrupt() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.Signal(syscall.SIGINT)
}

// Signal sends a signal only to the agent's process, without recording a requested stop.
func (p *Process) Signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Errorf("signal the agent: %v", err)
	}
}

// Wait returns the outcome of the run.
func (p *Process) Wait() Outcome {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	select {
	case <-p.done:
		return p.result
	case <-ctx.Done():
		p.t.Fatal("the run did not end")
		return Outcome{}
	}
}

// Do runs the spec to its end.
func Do(t *testing.T, h Harness, spec agent.Spec) Outcome {
	t.Helper()
	return Start(t, h, spec).Wait()
}
