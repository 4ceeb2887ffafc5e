// Package simagent simulates a coding agent's command line: small, but a real agent. It is compatible with Claude Code,
// so that code that runs it can run the real one: the same flags, output lines, exit codes, sessions, retries and
// behavior on signals.
//
// It calls a model over the streamed Messages API, runs the tools that the model calls (Bash, Read, Write, Edit, and
// those of the configured MCP servers) in its working directory, and continues until the model stops. The model's
// script determines its actions.
//
// Main is the whole program; the demo and tests call it with their arguments. In addition to Claude's environment
// variables it supports SIMAGENT_RETRY_SCALE, a factor for its retry pauses, and SIMAGENT_USAGE_SCALE, a factor by
// which it misreports its token usage.
//
// Start here: [Main], then agent.loop.
package simagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Version is the agent's version; the suffix distinguishes it from the real one.
const Version = "2.1.197-sim"

// Main runs the agent with the given arguments (without the program's name) and environment, in the process's working
// directory, and returns its exit code. It handles SIGINT, SIGTERM and SIGHUP while it runs.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	a, code := prepare(args, stdin, stdout, stderr, env)
	if a == nil {
		return code
	}
	ctx, stop := a.signals.watch(context.Background())
	defer stop()
	defer a.disconnect()
	return a.run(ctx)
}

// agent is the state of one process.
type agent struct {
	opt     options
	env     environment
	cwd     string
	prompt  string
	set     settings
	session *session
	client  *client
	out     *emitter
	signals *signals
	stderr  io.Writer
	bill    bill
	denials []denial
	// sessions are the sessions with started MCP servers.
	sessions map[string]*mcp.ClientSession
}

// prepare reads everything that a run needs. If it returns a nil agent, the process ends with the code.
func prepare(args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) (*agent, int) {
	fail := func(err error) (*agent, int) {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return nil, 1
	}
	opt, err := parseArgs(args)
	if err != nil {
		return fail(err)
	}
	if opt.version {
		fmt.Fprintln(stdout, Version+" (simagent)")
		return nil, 0
	}
	a := &agent{opt: opt, env: environment(env), stderr: stderr, signals: &signals{}}
	if err := a.refuseRoot(); err != nil {
		fmt.Fprintln(stderr, err)
		return nil, 1
	}
	if a.cwd, err = workDir(); err != nil {
		return fail(err)
	}
	if a.set, err = loadSettings(opt.settings); err != nil {
		return fail(err)
	}
	a.env = a.env.with(a.set.Env)
	if err := checkMCP(opt.mcp); err != nil {
		return fail(err)
	}
	if a.prompt, err = readPrompt(opt, stdin); err != nil {
		return fail(err)
	}
	a.out = &emitter{w: stdout, format: opt.format}
	if a.session, err = openSession(a.env.configDir(), a.cwd, opt); err != nil {
		if errors.Is(err, errNoSession) {
			return nil, a.unknownSession(err)
		}
		return fail(err)
	}
	a.out.session = a.session.id
	a.client, err = newClient(a.env, a.session.id)
	if err != nil {
		return fail(err)
	}
	return a, 0
}

// refuseRoot returns Claude's error for running as root without permission prompts.
func (a *agent) refuseRoot() error {
	if a.opt.bypass() && os.Geteuid() == 0 && a.env.get("IS_SANDBOX") != "1" {
		return errors.New("--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons")
	}
	return nil
}

// workDir returns the working directory without symbolic links, under which sessions are stored.
func workDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	return filepath.EvalSymlinks(dir)
}

// readPrompt joins the argument and standard input.
func readPrompt(opt options, stdin io.Reader) (string, error) {
	prompt := opt.prompt
	if stdin != nil {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return "", fmt.Errorf("read the prompt: %w", err)
		}
		prompt = strings.Trim(prompt+"\n"+string(data), "\n")
	}
	if strings.TrimSpace(prompt) == "" {
		return "", errors.New("Input must be provided either through stdin or as a prompt argument when using --print") //nolint:staticcheck // as claude says it
	}
	return prompt, nil
}

// unknownSession ends a run whose session does not exist.
func (a *agent) unknownSession(err error) int {
	fmt.Fprintln(a.stderr, err)
	a.out.session = newID()
	a.out.result(ending{subtype: "error_during_execution", isError: true, errors: []string{err.Error()}}, bill{}, nil)
	return 1
}

// environment is a process environment in the format of os.Environ.
type environment []string

func (e environment) get(key string) string {
	for _, kv := range slices.Backward(e) {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return ""
}

// with returns a copy with the values set.
func (e environment) with(values map[string]string) environment {
	e = slices.Clone(e)
	for k, v := range values {
		e = append(e, k+"="+v)
	}
	return e
}

// configDir returns the folder of sessions.
func (e environment) configDir() string {
	if dir := e.get("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	return filepath.Join(e.get("HOME"), ".claude")
}

// The two ways in which a signal ends a run.
var (
	errInterrupted = errors.New("interrupted")
	errTerminated  = errors.New("terminated")
)

// signals converts signals to the end of a context: SIGINT ends the run; SIGTERM and SIGHUP end it during a model call,
// but only the tool during a tool call, as Claude does.
type signals struct {
	mu   sync.Mutex
	tool context.CancelFunc
}

// watch returns a context that signals end, with the reason as its cause. stop restores the signal handling.
func (s *signals) watch(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ch := make(chan os.Signal, 8)
	// SIGPIPE is handled, too: a closed stdout must not end the run.
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case sig := <-ch:
				s.handle(sig, cancel)
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		close(done)
		cancel(nil)
	}
}

func (s *signals) handle(sig os.Signal, cancel context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case sig == syscall.SIGPIPE:
	case sig == syscall.SIGINT:
		cancel(errInterrupted)
	case s.tool != nil:
		s.tool()
	default:
		cancel(errTerminated)
	}
}

// duringTool returns a context for one tool call; done must be called after it.
func (s *signals) duringTool(parent context.Context) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(parent)
	s.mu.Lock()
	s.tool = cancel
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		s.tool = nil
		s.mu.Unlock()
		cancel()
	}
}
