package shellrules

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// maxHook bounds what a program says to its hook.
const maxHook = 4 << 20

// rule is one call to refuse, as programs write it.
var rule = regexp.MustCompile(`^Bash\((.+)\)$`)

// New makes rules of a list of commands, nil for any, and of rules such as Bash(git push:*); what these say about other
// tools is left out.
func New(allow, deny []string) Rules {
	r := Rules{Allow: allow}
	for _, d := range deny {
		switch m := rule.FindStringSubmatch(d); {
		case m == nil:
		case strings.HasSuffix(m[1], ":*"):
			r.Deny = append(r.Deny, strings.TrimSuffix(m[1], ":*"))
		default:
			r.Exact = append(r.Exact, m[1])
		}
	}
	return r
}

// geminiShell is the shell of Gemini CLI, whose hooks have a form of their own.
const geminiShell = "run_shell_command"

// hookGemini answers Gemini CLI, which goes on with what is not refused.
func (r Rules) hookGemini(command string, out io.Writer) error {
	why := r.Judge(command)
	if why == nil {
		return nil
	}
	if err := json.NewEncoder(out).Encode(map[string]string{"decision": "deny", "reason": why.Error()}); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// Hook answers what a program asks before it calls a tool, in Claude Code's form: leave, or a refusal with its reason. Of
// tools that are no shell it says nothing, which leaves them to the program's own rules; an error does the same. With
// refuseOnly it gives no leave either, for programs that understand refusals alone.
func (r Rules) Hook(in io.Reader, out io.Writer, refuseOnly bool) error {
	var asked struct {
		Tool  string `json:"tool_name"`
		Input struct {
			Command string `json:"command"`
		} `json:"tool_input"`
	}
	if err := json.NewDecoder(io.LimitReader(in, maxHook)).Decode(&asked); err != nil {
		return fmt.Errorf("read the call to be judged: %w", err)
	}
	if asked.Tool == geminiShell {
		return r.hookGemini(asked.Input.Command, out)
	}
	if asked.Tool != "Bash" || strings.TrimSpace(asked.Input.Command) == "" {
		return nil
	}
	type decision struct {
		Event    string `json:"hookEventName"`
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason"`
	}
	d := decision{"PreToolUse", "allow", "It is among the commands that may be called."}
	if why := r.Judge(asked.Input.Command); why != nil {
		d.Decision, d.Reason = "deny", why.Error()
	} else if refuseOnly {
		return nil
	}
	if err := json.NewEncoder(out).Encode(map[string]any{"hookSpecificOutput": d}); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}
