// Package simcodex is a stand-in for a coding agent's command line in the manner of OpenAI's Codex: its flags, its
// settings (-c), its lines on stdout, its exits, sessions, retries, and hooks before commands.
//
// It asks a model over the Responses API, streamed, really runs the commands that the model calls, and goes on until
// the model calls none. It has no other tools: no patches, and no MCP servers. What it does is in the script of the
// model that it talks to.
//
// Main is the whole program; a test hands it its own arguments. Start reading at Main, then agent.loop. Of the
// environment it knows SIMAGENT_RETRY_SCALE, a factor for its waits before a retry.
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

// Version is what the agent calls itself; the second half tells it from the real one.
const Version = "0.169.0-sim"

// Main runs the agent with the arguments (without the program's name) and the environment given, in the process's
// working directory, and returns its exit code. SIGINT ends it while it runs.
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
	set              map[string]string // by -c, as TOML
}

// parse reads the command line of `codex exec`.
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

// words reads what is no flag: exec [resume ID | fork ID] -.
func (o *options) words(rest []string) error {
	if len(rest) > 0 && rest[0] == "exec" {
		rest = rest[1:]
	}
	if len(rest) > 1 && (rest[0] == "resume" || rest[0] == "fork") {
		o.fork, o.resume = rest[0] == "fork", rest[1]
		rest = rest[2:]
	}
	if len(rest) != 1 || rest[0] != "-" {
		return fmt.Errorf("this stand-in reads its prompt from stdin alone, not %q", rest)
	}
	return nil
}

// text is a setting that is a string; numbers and lists are none.
func (o options) text(key string) string {
	var s string
	_ = json.Unmarshal([]byte(o.set[key]), &s) // the strings of TOML that are written here are those of JSON
	return s
}

// number is a setting that is a number, or what it is without one.
func (o options) number(key string, fallback int) int {
	if n, err := strconv.Atoi(o.set[key]); err == nil {
		return n
	}
	return fallback
}

// agent is one process's worth of work.
type agent struct {
	opt            options
	env            []string
	stdout, stderr io.Writer
	now            func() time.Time

	cwd     string
	thread  *thread
	model   *model
	rules   rules
	items   int // events that have a number
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

// emit prints an event. What cannot be printed is remembered; the run goes on, as the real one does.
func (a *agent) emit(event map[string]any) {
	line, err := json.Marshal(event)
	if err == nil {
		_, err = a.stdout.Write(append(line, '\n'))
	}
	a.printed = errors.Join(a.printed, err)
}

// itemID numbers the things that the agent shows.
func (a *agent) itemID() string {
	a.items++
	return fmt.Sprintf("item_%d", a.items-1)
}

// shown prints something that is whole at once.
func (a *agent) shown(kind, field, text string) {
	a.emit(map[string]any{"type": "item.completed", "item": map[string]any{"id": a.itemID(), "type": kind, field: text}})
}
