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

// asked is what a program says to its hook.
type asked struct {
	Tool  string `json:"tool_name"`
	Dir   string `json:"cwd"`
	Input struct {
		Command  string `json:"command"`
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
	} `json:"tool_input"`
}

// gemini reports whether it is Gemini CLI that asks.
func (a asked) gemini() bool { return a.Tool == geminiShell }

// Hook answers what a program asks before it calls a tool, in Claude Code's form, or in Gemini CLI's to that one: leave for
// a command or for the change of a file, or a refusal with its reason. Other tools it leaves to the program's own rules; an
// error does the same. With refuseOnly it gives no leave either, for programs that understand
// refusals alone.
func (r Rules) Hook(in io.Reader, out io.Writer, refuseOnly bool) error {
	var a asked
	if err := json.NewDecoder(io.LimitReader(in, maxHook)).Decode(&a); err != nil {
		return fmt.Errorf("read the call to be judged: %w", err)
	}
	why, known := r.judge(a)
	var answer any
	switch {
	case why != nil && a.gemini():
		answer = map[string]string{"decision": "deny", "reason": why.Error()}
	case why != nil:
		answer = map[string]any{"hookSpecificOutput": decision{"PreToolUse", "deny", why.Error()}}
	case !known || a.gemini() || refuseOnly:
		return nil // they go on with what is not refused
	default:
		answer = map[string]any{"hookSpecificOutput": decision{"PreToolUse", "allow", "It is among what may be called."}}
	}
	if err := json.NewEncoder(out).Encode(answer); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// decision is an answer in Claude Code's form.
type decision struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision"`
	Reason   string `json:"permissionDecisionReason"`
}
