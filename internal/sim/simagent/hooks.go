package simagent

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// hook is a command called before a tool call.
type hook struct {
	matcher, command string
	timeout          time.Duration
}

// loadHooks returns the hooks for tools in the settings.
func loadHooks(data []byte) []hook {
	var in struct {
		Off   bool `json:"disableAllHooks"`
		Hooks struct {
			PreToolUse []struct {
				Matcher string `json:"matcher"`
				Hooks   []struct {
					Command string `json:"command"`
					Timeout int    `json:"timeout"`
				} `json:"hooks"`
			} `json:"PreToolUse"`
		} `json:"hooks"`
	}
	if json.Unmarshal(data, &in) != nil || in.Off {
		return nil
	}
	var list []hook
	for _, m := range in.Hooks.PreToolUse {
		for _, h := range m.Hooks {
			one := hook{m.Matcher, h.Command, time.Minute}
			if h.Timeout > 0 {
				one.timeout = time.Duration(h.Timeout) * time.Second
			}
			list = append(list, one)
		}
	}
	return list
}

// askHooks returns the decision of the first hook that decides: allow or deny, with its reason. A failing hook decides
// nothing, as in the real CLI, except with exit code 2.
func (a *agent) askHooks(ctx context.Context, b block) (verdict, why string) {
	for _, h := range a.set.Hooks {
		if h.matcher != "" && h.matcher != "*" && !slices.Contains(strings.Split(h.matcher, "|"), b.Name) {
			continue
		}
		if verdict, why = a.askHook(ctx, h, b); verdict != "" {
			return verdict, why
		}
	}
	return "", ""
}

func (a *agent) askHook(ctx context.Context, h hook, b block) (verdict, why string) {
	question, err := json.Marshal(map[string]any{
		"session_id": a.session.id, "cwd": a.cwd, "permission_mode": a.opt.mode, "hook_event_name": "PreToolUse",
		"tool_name": b.Name, "tool_input": b.Input, "tool_use_id": b.ID,
	})
	if err != nil {
		return "", ""
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", h.command)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = a.cwd, a.env, bytes.NewReader(question), &out, &said
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 2 {
			return "deny", said.String()
		}
		return "", ""
	}
	var answer struct {
		Output struct {
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	if json.Unmarshal(out.Bytes(), &answer) != nil {
		return "", ""
	}
	return answer.Output.Decision, answer.Output.Reason
}
