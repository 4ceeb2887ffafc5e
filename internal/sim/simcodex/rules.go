package simcodex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// rules restrict the commands of a run.
type rules struct {
	forbidden [][]string // command prefixes
	hook      string     // command called before each command, "" for none
}

var (
	forbidding  = regexp.MustCompile(`(?m)^prefix_rule\(pattern=(\[.*?\]), decision="forbidden"\)$`)
	hookCommand = regexp.MustCompile(`matcher="[^"]*\bBash\b[^"]*".*command=("(?:[^"\\]|\\.)*")`)
	// chained matches separators between commands.
	chained = regexp.MustCompile(`&&|\|\||[;|&\n()]`)
)

// loadRules reads the rule files and the hook setting.
func loadRules(home string, opt options) (r rules, err error) {
	data, err := os.ReadFile(filepath.Join(home, "rules", "errand.rules"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	for _, m := range forbidding.FindAllSubmatch(data, -1) {
		var words []string
		if err := json.Unmarshal(m[1], &words); err != nil {
			return r, fmt.Errorf("read rules: %w", err)
		}
		r.forbidden = append(r.forbidden, words)
	}
	if m := hookCommand.FindStringSubmatch(opt.set["hooks.PreToolUse"]); m != nil && opt.trustHooks {
		if err := json.Unmarshal([]byte(m[1]), &r.hook); err != nil {
			return r, fmt.Errorf("read hooks: %w", err)
		}
	}
	return r, nil
}

// refuses returns why a command is not run, or an empty string.
func (a *agent) refuses(ctx context.Context, command string) string {
	if a.rules.hook != "" {
		if reason := a.askHook(ctx, command); reason != "" {
			return fmt.Sprintf("Command blocked by PreToolUse hook: %s. Command: %s", reason, command)
		}
	}
	for part := range slices.Values(chained.Split(command, -1)) {
		words := strings.Fields(part)
		for _, f := range a.rules.forbidden {
			if len(words) >= len(f) && slices.Equal(words[:len(f)], f) {
				return fmt.Sprintf("exec_command failed: CreateProcess { message: \"Rejected(\\\"`/bin/bash -lc %s` rejected: policy forbids commands starting with `%s`\\\")\" }",
					shellQuote(command), strings.Join(f, " "))
			}
		}
	}
	return ""
}

// hookTimeout limits one hook call.
const hookTimeout = time.Minute

// askHook returns why a hook refuses a command. A failing hook refuses nothing.
func (a *agent) askHook(ctx context.Context, command string) string {
	question, err := json.Marshal(map[string]any{
		"session_id": a.thread.id, "cwd": a.cwd, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": map[string]string{"command": command},
	})
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", a.rules.hook)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.WaitDelay = a.cwd, a.env, bytes.NewReader(question), &out, outputDelay
	var answer struct {
		Output struct {
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	if cmd.Run() != nil || json.Unmarshal(out.Bytes(), &answer) != nil || answer.Output.Decision != "deny" {
		return ""
	}
	return answer.Output.Reason
}
