package claude

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/cli"
)

// settingsFile returns the settings file. It contains the denied calls and, as the only hook, the call of the
// runner's judge.
func settingsFile(s agent.Spec) ([]byte, error) {
	for _, rule := range s.Deny {
		if strings.TrimSpace(rule) == "" || strings.ContainsAny(rule, "\n\x00") {
			return nil, fmt.Errorf("%q is not a deny rule", rule)
		}
	}
	type section = map[string]any
	judgedTools := strings.Join(editors(), "|")
	if s.Shell != nil {
		judgedTools = cli.ShellTool + "|" + judgedTools
	}
	settings := section{"hooks": section{"PreToolUse": []section{
		{"matcher": judgedTools, "hooks": []section{{"type": "command", "command": cli.JudgeCommand(s), "timeout": cli.JudgeSeconds}}},
	}}}
	if len(s.Deny) > 0 {
		settings["permissions"] = section{"deny": s.Deny}
	}
	return json.MarshalIndent(settings, "", "  ")
}

// editors returns the tools that change files.
func editors() []string { return []string{"Edit", "MultiEdit", "NotebookEdit", "Write"} }

// permissionOptions returns the options that list the calls allowed without confirmation. All other calls fail, because
// a run has no user to confirm them. Without a list of commands, everything is allowed except denied calls and those that
// the runner refuses.
func permissionOptions(s agent.Spec) []string {
	if s.Shell == nil {
		return []string{"--dangerously-skip-permissions"}
	}
	args := []string{"--permission-mode", "dontAsk", "--allowedTools"}
	for _, tool := range codingTools() {
		if tool != cli.ShellTool && !slices.Contains(editors(), tool) {
			args = append(args, tool)
		}
	}
	for _, dir := range cli.WritableDirs(s) { // a rule about Edit applies to all editors
		args = append(args, "Edit(/"+dir+"/**)")
	}
	for _, c := range s.Shell {
		args = append(args, cli.ShellTool+"("+c+":*)")
	}
	if len(s.Schema) > 0 {
		args = append(args, "StructuredOutput")
	}
	for _, name := range serverNames(s.MCP) {
		args = append(args, "mcp__"+name)
	}
	return args
}

// serverNames returns the sorted names of the servers in an MCP configuration, nil if it is unreadable.
func serverNames(mcp json.RawMessage) []string {
	var in struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if len(mcp) == 0 || json.Unmarshal(mcp, &in) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(in.Servers))
}
