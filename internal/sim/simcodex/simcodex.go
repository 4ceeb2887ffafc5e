// Package simcodex simulates OpenAI's Codex CLI: its flags, settings (-c), output lines, exit codes, sessions, retries,
// and hooks before commands.
//
// It calls a model over the streamed Responses API, runs the commands that the model calls, and continues until the
// model calls none. It has no other tools: neither patches nor MCP servers. The model's script determines its actions.
//
// Main is the whole program; tests call it with their arguments. The environment variable SIMAGENT_RETRY_SCALE scales
// its retry pauses.
//
// Start here: [Main], then agent.loop.
package simcodex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Version is the agent's version; the suffix distinguishes it from the real one.
const Version = "0.169.0-sim"

// Main runs the agent with the given arguments (without the program's name) and environment in the process's working
// directory, and returns its exit code. SIGINT ends it.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	opt, err := parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "error: %v\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT)
	defer stop()
	a := &agent{opt: opt, env: env, stdout: stdout, stderr: stderr, now: time.Now}
	if err := a.prepare(stdin); err != nil {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	return a.run(ctx)
}

// options are the command line.
type options struct {
	fork, trustHooks bool
	resume           string
	model, schema    string
	set              map[string]string // set by -c, as TOML
}

// parse parses the command line of `codex exec`.
func parse(args []string) (options, error) {
	o := options{set: map[string]string{}}
	var rest []string
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		value := ""
		if slices.Contains([]string{"--model", "--output-schema", "-c"}, arg) {
			if len(args) == 0 {
				return o, fmt.Errorf("a value is required for '%s' but none was supplied", arg)
			}
			value, args = args[0], args[1:]
		}
		switch arg {
		case "--json", "--ignore-user-config", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox":
		case "--dangerously-bypass-hook-trust":
			o.trustHooks = true
		case "--model":
			o.model = value
		case "--output-schema":
			o.schema = value
		case "-c":
			key, text, _ := strings.Cut(value, "=")
			o.set[key] = text
		default:
			if strings.HasPrefix(arg, "-") && arg != "-" {
				return o, fmt.Errorf("unexpected argument '%s' found", arg)
			}
			rest = append(rest, arg)
		}
	}
	return o, o.words(rest)
}

// words parses the arguments that are not flags: exec [resume ID | fork ID] -.
func (o *options) words(rest []string) error {
	if len(rest) > 0 && rest[0] == "exec" {
		rest = rest[1:]
	}
	if len(rest) > 1 && (rest[0] == "resume" || rest[0] == "fork") {
		o.fork, o.resume = rest[0] == "fork", rest[1]
		rest = rest[2:]
	}
	if len(rest) != 1 || rest[0] != "-" {
		return fmt.Errorf("this simulator reads its prompt only from stdin, not from %q", rest)
	}
	return nil
}

// text returns a string setting; numbers and lists count as empty.
func (o options) text(key string) string {
	var s string
	_ = json.Unmarshal([]byte(o.set[key]), &s) // the TOML strings used here are valid JSON
	return s
}

// number returns a numeric setting, or fallback.
func (o options) number(key string, fallback int) int {
	if n, err := strconv.Atoi(o.set[key]); err == nil {
		return n
	}
	return fallback
}

// agent is the state of one process.
type agent struct {
	opt            options
	env            []string
	stdout, stderr io.Writer
	now            func() time.Time

	cwd     string
	thread  *thread
	model   *model
	rules   rules
	items   int // number of numbered events
	printed error
}

func (a *agent) getenv(key string) string {
	for _, kv := range slices.Backward(a.env) {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return ""
}

// prepare reads everything that a run needs.
func (a *agent) prepare(stdin io.Reader) (err error) {
	home := a.getenv("CODEX_HOME")
	if info, err := os.Stat(home); err != nil || !info.IsDir() {
		return fmt.Errorf("CODEX_HOME points to %q, which does not exist", home)
	}
	if a.cwd, err = os.Getwd(); err != nil {
		return err
	}
	prompt, err := io.ReadAll(stdin)
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(prompt)) == "" {
		return errors.New("no prompt provided via stdin")
	}
	if a.rules, err = loadRules(home, a.opt); err != nil {
		return err
	}
	if a.model, err = newModel(a); err != nil {
		return err
	}
	if a.thread, err = openThread(home, a.cwd, a.opt, a.now()); err != nil {
		return err
	}
	return a.thread.add(item{Type: "message", Role: "user", Content: content("input_text", string(prompt))})
}

// emit prints an event. A write error is recorded and the run continues, as in the real CLI.
func (a *agent) emit(event map[string]any) {
	line, err := json.Marshal(event)
	if err == nil {
		_, err = a.stdout.Write(append(line, '\n'))
	}
	a.printed = errors.Join(a.printed, err)
}

// itemID returns the next item's ID.
func (a *agent) itemID() string {
	a.items++
	return fmt.Sprintf("item_%d", a.items-1)
}

// shown prints an item that has no intermediate events.
func (a *agent) shown(kind, field, text string) {
	a.emit(map[string]any{"type": "item.completed", "item": map[string]any{"id": a.itemID(), "type": kind, field: text}})
}
