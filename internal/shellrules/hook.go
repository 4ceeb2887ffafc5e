package shellrules

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// maxHook is the maximum size in bytes of the input of a hook.
const maxHook = 4 << 20

// bashRule matches one denied command in the notation of agent programs.
var bashRule = regexp.MustCompile(`^Bash\((.+)\)$`)

// New returns rules for a list of allowed commands, nil for any, and a list of denied calls such as Bash(git push:*).
// It ignores denied calls of other tools.
func New(allow, deny []string) Rules {
	r := Rules{Allow: allow}
	for _, d := range deny {
		switch m := bashRule.FindStringSubmatch(d); {
		case m == nil:
		case strings.HasSuffix(m[1], ":*"):
			r.Deny = append(r.Deny, strings.TrimSuffix(m[1], ":*"))
		default:
			r.Exact = append(r.Exact, m[1])
		}
	}
	return r
}

// geminiShell is the shell tool of Gemini CLI, whose hooks have their own output format.
const geminiShell = "run_shell_command"

// hookCall is the input that an agent program passes to its hook.
type hookCall struct {
	Tool  string `json:"tool_name"`
	Dir   string `json:"cwd"`
	Input struct {
		Command  string `json:"command"`
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
	} `json:"tool_input"`
}

// fromGemini reports whether Gemini CLI made the call.
func (a hookCall) fromGemini() bool { return a.Tool == geminiShell }

// Hook reads one tool call and writes the decision in the format of Claude Code, or of Gemini CLI if that made the
// call. It allows a command or a file change, or denies it with a reason. For other tools and on error it writes
// nothing, which leaves the decision to the program's own rules. With refuseOnly it never allows explicitly, for
// programs that accept only denials.
func (r Rules) Hook(in io.Reader, out io.Writer, refuseOnly bool) error {
	var a hookCall
	if err := json.NewDecoder(io.LimitReader(in, maxHook)).Decode(&a); err != nil {
		return fmt.Errorf("read the tool call: %w", err)
	}
	why, known := r.judgeCall(a)
	var answer any
	switch {
	case why != nil && a.fromGemini():
		answer = map[string]string{"decision": "deny", "reason": why.Error()}
	case why != nil:
		answer = map[string]any{"hookSpecificOutput": decision{"PreToolUse", "deny", why.Error()}}
	case !known || a.fromGemini() || refuseOnly:
		return nil // these programs proceed unless the call is denied
	default:
		answer = map[string]any{"hookSpecificOutput": decision{"PreToolUse", "allow", "It is among what may be called."}}
	}
	if err := json.NewEncoder(out).Encode(answer); err != nil {
		return fmt.Errorf("write the decision: %w", err)
	}
	return nil
}

// decision is a decision in Claude Code's format.
type decision struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision"`
	Reason   string `json:"permissionDecisionReason"`
}
