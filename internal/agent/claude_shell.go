package agent

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/shellrules"
)

// judgeVariable contains the path of the runner, whose judge command the program's hook calls for every shell command
// and file change. Without the hook, the program's own rules decide, which allow less: they refuse redirections to
// files, and loops.
const judgeVariable = "ERRAND_RUNNER"

// tmpDir is the system's folder for temporary files.
const tmpDir = "/tmp"

// writable returns the folders in which tools may change files: the checkout, and tmpDir unless the run's own files are
// there.
func writable(s Spec) []string {
	list := []string{path.Clean(s.WorkDir)}
	inTmp := func(dir string) bool { return strings.HasPrefix(path.Clean(dir)+"/", tmpDir+"/") }
	if !inTmp(s.Home) && !inTmp(s.RunDir) {
		list = append(list, tmpDir)
	}
	return list
}

// shellFile returns the file with the rules by which the runner judges commands and file changes.
func shellFile(s Spec) (File, error) {
	r := shellrules.New(s.Shell, s.Deny)
	r.Write = writable(s)
	rules, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return File{}, fmt.Errorf("write the rules for the shell: %w", err)
	}
	return File{Path: path.Join(s.RunDir, "shell.json"), Mode: 0o600, Content: rules}, nil
}

// judgeCommand returns the shell command that calls the runner's judge.
func judgeCommand(s Spec) string {
	return fmt.Sprintf(`"$%s" judge --rules '%s'`, judgeVariable, strings.ReplaceAll(path.Join(s.RunDir, "shell.json"), "'", `'\''`))
}

// claudeSettings returns the settings file. It contains the denied calls and, as the only hook, the call of the
// runner's judge.
func claudeSettings(s Spec) ([]byte, error) {
	for _, rule := range s.Deny {
		if strings.TrimSpace(rule) == "" || strings.ContainsAny(rule, "\n\x00") {
			return nil, fmt.Errorf("%q is not a deny rule", rule)
		}
	}
	type section = map[string]any
	asks := strings.Join(claudeEditors(), "|")
	if s.Shell != nil {
		asks = shellTool + "|" + asks
	}
	settings := section{"hooks": section{"PreToolUse": []section{
		{"matcher": asks, "hooks": []section{{"type": "command", "command": judgeCommand(s), "timeout": judgeSeconds}}},
	}}}
	if len(s.Deny) > 0 {
		settings["permissions"] = section{"deny": s.Deny}
	}
	return json.MarshalIndent(settings, "", "  ")
}

// claudeEditors returns the tools that change files.
func claudeEditors() []string { return []string{"Edit", "MultiEdit", "NotebookEdit", "Write"} }

// judgeSeconds is the timeout of the judge. On an idle VM it takes milliseconds.
const judgeSeconds = 60

// claudePermissions returns the options that list the calls allowed without confirmation. All other calls fail, because
// nobody is there to confirm them. Without a list of commands, everything is allowed except denied calls and those that
// the runner refuses.
func claudePermissions(s Spec, tools []string) []string {
	if s.Shell == nil {
		return []string{"--dangerously-skip-permissions"}
	}
	args := []string{"--permission-mode", "dontAsk", "--allowedTools"}
	edits := false
	for _, tool := range tools {
		switch {
		case slices.Contains(claudeEditors(), tool):
			edits = true
		case tool != shellTool:
			args = append(args, tool)
		}
	}
	if edits { // a rule about Edit applies to all of them
		for _, dir := range writable(s) {
			args = append(args, "Edit(/"+dir+"/**)")
		}
	}
	if slices.Contains(tools, shellTool) {
		for _, c := range s.Shell {
			args = append(args, shellTool+"("+c+":*)")
		}
	}
	if len(s.Schema) > 0 {
		args = append(args, "StructuredOutput")
	}
	for _, name := range serverNames(s.MCP) {
		args = append(args, "mcp__"+name)
	}
	return args
}

// shellTool is the name of the shell tool in rules and in most programs.
const shellTool = "Bash"

// serverNames returns the sorted names of the servers in an MCP configuration, nil if it is unreadable.
func serverNames(mcp json.RawMessage) []string {
	var in struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if len(mcp) == 0 || json.Unmarshal(mcp, &in) != nil {
		return nil
	}
	return sortedKeys(in.Servers)
}

// checkShell refuses entries that a program's rules would interpret as something else than the beginning of a command.
func checkShell(list []string) error {
	for _, c := range list {
		if !shellrules.IsPlain(c) {
			return fmt.Errorf("%q is not the beginning of a command", c)
		}
	}
	return nil
}
