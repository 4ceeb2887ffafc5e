package cli

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/shellrules"
)

// JudgeVariable contains the path of the runner, whose judge command the program's hook calls for every shell command
// and file change. Without the hook, the program's own rules decide, which allow less: they refuse redirections to
// files, and loops.
const JudgeVariable = "ERRAND_RUNNER"

// tmpDir is the system's folder for temporary files.
const tmpDir = "/tmp"

// WritableDirs returns the folders in which tools may change files: the checkout, and tmpDir unless the run's own files are
// there.
func WritableDirs(s agent.Spec) []string {
	list := []string{path.Clean(s.WorkDir)}
	inTmp := func(dir string) bool { return strings.HasPrefix(path.Clean(dir)+"/", tmpDir+"/") }
	if !inTmp(s.Home) && !inTmp(s.RunDir) {
		list = append(list, tmpDir)
	}
	return list
}

// ShellRules returns the file with the rules by which the runner judges commands and file changes.
func ShellRules(s agent.Spec) (agent.File, error) {
	r := shellrules.New(s.Shell, s.Deny)
	r.Write = WritableDirs(s)
	rules, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return agent.File{}, fmt.Errorf("write the rules for the shell: %w", err)
	}
	return agent.File{Path: path.Join(s.RunDir, "shell.json"), Mode: 0o600, Content: rules}, nil
}

// JudgeCommand returns the shell command that calls the runner's judge.
func JudgeCommand(s agent.Spec) string {
	return fmt.Sprintf(`"$%s" judge --rules '%s'`, JudgeVariable, strings.ReplaceAll(path.Join(s.RunDir, "shell.json"), "'", `'\''`))
}

// JudgeSeconds is the timeout of the judge. On an idle VM it takes milliseconds.
const JudgeSeconds = 60

// ShellTool is the name of the shell tool in rules and in most programs.
const ShellTool = "Bash"

// checkShell refuses entries that a program's rules would interpret as something else than the beginning of a command.
func checkShell(list []string) error {
	for _, c := range list {
		if !shellrules.IsPlain(c) {
			return fmt.Errorf("%q is not the beginning of a command", c)
		}
	}
	return nil
}
