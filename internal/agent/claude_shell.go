package agent

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/shellrules"
)

// judgeVariable names the runner for the program, which asks it about every command, and every file that it would change.
// Where it cannot be asked, the
// program's own rules decide, which allow less: they refuse what is redirected to a file, and loops.
const judgeVariable = "ERRAND_RUNNER"

// tmpDir is where programs and people put what nobody keeps.
const tmpDir = "/tmp"

// writable are the folders below which tools may change files: the checkout, and the system's for what is not kept,
// unless the run's own files are there.
func writable(s Spec) []string {
	list := []string{path.Clean(s.WorkDir)}
	inTmp := func(dir string) bool { return strings.HasPrefix(path.Clean(dir)+"/", tmpDir+"/") }
	if !inTmp(s.Home) && !inTmp(s.RunDir) {
		list = append(list, tmpDir)
	}
	return list
}

// shellFile is the file with the rules that the runner judges commands and files by.
func shellFile(s Spec) (File, error) {
	r := shellrules.New(s.Shell, s.Deny)
	r.Write = writable(s)
	rules, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return File{}, fmt.Errorf("write the rules for the shell: %w", err)
	}
	return File{Path: path.Join(s.RunDir, "shell.json"), Mode: 0o600, Content: rules}, nil
}

// judgeCommand asks the runner, for a shell to run.
func judgeCommand(s Spec) string {
	return fmt.Sprintf(`"$%s" judge --rules '%s'`, judgeVariable, strings.ReplaceAll(path.Join(s.RunDir, "shell.json"), "'", `'\''`))
}

// claudeSettings is the settings file: no hooks of anybody but the one that asks the runner about commands and files, and
// the calls to refuse.
func claudeSettings(s Spec) ([]byte, error) {
	for _, rule := range s.Deny {
		if strings.TrimSpace(rule) == "" || strings.ContainsAny(rule, "\n\x00") {
			return nil, fmt.Errorf("%q is no deny rule", rule)
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

// claudeEditors are the tools that change files.
func claudeEditors() []string { return []string{"Edit", "MultiEdit", "NotebookEdit", "Write"} }

// judgeSeconds is how long the runner may take to judge a command: it is a matter of milliseconds, on an idle VM.
const judgeSeconds = 60

// claudePermissions says what may be called without asking, which is all that may be called: nobody is there to
// be asked. Without a list of commands that is everything but what is denied, and what the runner refuses.
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
	if edits { // a rule about Edit is one about all of them
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

// shellTool is the shell's name in rules, and in most programs.
const shellTool = "Bash"

// serverNames are the servers of an MCP configuration, in order; none if it cannot be read.
func serverNames(mcp json.RawMessage) []string {
	var in struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if len(mcp) == 0 || json.Unmarshal(mcp, &in) != nil {
		return nil
	}
	return sortedKeys(in.Servers)
}

// checkShell refuses beginnings of commands that would be more, or something else, in a program's rules.
func checkShell(list []string) error {
	for _, c := range list {
		if !shellrules.IsPlain(c) {
			return fmt.Errorf("%q is no beginning of a command", c)
		}
	}
	return nil
}
