package simcodex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Limits of one run.
const (
	maxLoop     = 1000
	maxOutput   = 100_000
	runTimeout  = 10 * time.Minute // of a command
	outputDelay = 200 * time.Millisecond
)

// run executes the prompt and prints the outcome. After SIGINT it prints nothing.
func (a *agent) run(ctx context.Context) int {
	a.emit(map[string]any{"type": "thread.started", "thread_id": a.thread.id})
	if a.opt.trustHooks {
		a.shown("error", "message", "`--dangerously-bypass-hook-trust` is enabled. Enabled hooks may run without review for this invocation.")
	}
	a.emit(map[string]any{"type": "turn.started"})
	err := a.loop(ctx)
	switch {
	case ctx.Err() != nil:
		return 1
	case err != nil:
		a.emit(map[string]any{"type": "error", "message": err.Error()})
		a.emit(map[string]any{"type": "turn.failed", "error": map[string]any{"message": err.Error()}})
		return 1
	}
	u := a.thread.used
	a.emit(map[string]any{"type": "turn.completed", "usage": map[string]any{
		"input_tokens": u.Input, "cached_input_tokens": u.Details.Cached, "cache_write_input_tokens": 0, "output_tokens": u.Output, "reasoning_output_tokens": 0,
	}})
	return 0
}

// loop alternates between the model and its commands until the model calls none.
func (a *agent) loop(ctx context.Context) error {
	for range maxLoop {
		answer, err := a.model.ask(ctx, a.thread.items)
		if err != nil {
			return err
		}
		if err := a.thread.use(answer.Usage); err != nil {
			return err
		}
		called := false
		for _, it := range answer.Output {
			if err := a.thread.add(it); err != nil {
				return err
			}
			switch {
			case it.Type == "message":
				a.shown("agent_message", "text", it.text())
			case it.Type == "reasoning":
				a.shown("reasoning", "text", it.text())
			case strings.HasSuffix(it.Type, "_call"):
				called = true
				out := item{Type: it.Type + "_output", CallID: it.CallID, Output: quoted(a.call(ctx, it))}
				if err := a.thread.add(out); err != nil {
					return err
				}
			}
		}
		if !called || ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.New("too many turns")
}

// call executes a tool call and returns its output.
func (a *agent) call(ctx context.Context, it item) string {
	var in struct {
		Command string `json:"cmd"`
	}
	if it.Name != "exec_command" || json.Unmarshal([]byte(it.Arguments), &in) != nil || in.Command == "" {
		return "unsupported call: " + it.Name
	}
	if why := a.refuses(ctx, in.Command); why != "" {
		fmt.Fprintf(a.stderr, "%s ERROR codex_core::tools::router: error=%s\n", a.now().UTC().Format(time.RFC3339Nano), why)
		return why
	}
	shown := map[string]any{
		"id": a.itemID(), "type": "command_execution", "command": "/bin/bash -lc " + shellQuote(in.Command), "aggregated_output": "", "exit_code": nil, "status": "in_progress",
	}
	a.emit(map[string]any{"type": "item.started", "item": shown})
	output, code := a.exec(ctx, in.Command)
	if ctx.Err() != nil {
		return "aborted by user"
	}
	shown["aggregated_output"], shown["exit_code"], shown["status"] = output, code, "completed"
	if code != 0 {
		shown["status"] = "failed"
	}
	a.emit(map[string]any{"type": "item.completed", "item": shown})
	return fmt.Sprintf("Wall time: 0.1 seconds\nProcess exited with code %d\nOutput:\n%s", code, output)
}

// exec runs a command without the model's token. Processes that it leaves in a separate session keep running.
func (a *agent) exec(ctx context.Context, command string) (output string, code int) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		shell = "/bin/sh"
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, shell, "-c", command)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = a.cwd, &out, &out, outputDelay
	for _, kv := range a.env {
		if !strings.HasPrefix(kv, a.model.keyName+"=") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return err.Error(), 127
	}
	text := out.String()
	if cut := len(text) - maxOutput; cut > 0 {
		text = fmt.Sprintf("%s\n… %d bytes left out …\n%s", text[:maxOutput/2], cut, text[len(text)-maxOutput/2:])
	}
	if code = cmd.ProcessState.ExitCode(); code < 0 {
		code = 137
	}
	return strings.ToValidUTF8(text, "\uFFFD"), code
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// loadSchema returns the required output schema, nil for none.
func loadSchema(path string) (json.RawMessage, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err == nil && !json.Valid(data) {
		err = errors.New("output schema file is not valid JSON")
	}
	return data, err
}
