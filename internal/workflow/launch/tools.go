package launch

import (
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/shellrules"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state/settings"
)

// callable are the beginnings of commands that an agent's shell may run; nil is any.
func callable(s settings.Settings) []string {
	if s.Shell.All {
		return nil
	}
	return slices.Concat(ownShell(s), shellrules.BaseCommands())
}

// ownShell are those of them that other repositories do not have.
func ownShell(s settings.Settings) []string {
	if s.Shell.All {
		return nil
	}
	if !s.Shell.Set && s.Shell.Commands == nil { // not detected
		return shellrules.DetectCommands(nil, step.Commands(s))
	}
	return s.Shell.Commands
}

// deniedCommands are the commands that no agent may call, by how they begin.
func deniedCommands(s settings.Settings) []string { return slices.Concat(alwaysDenied(), s.Deny) }

// alwaysDenied are commands by how they begin that no task needs: they change where git pushes to, its
// configuration, or who one is.
func alwaysDenied() []string {
	return []string{"git push", "git remote add", "git remote set-url", "git config --global", "git config --system", "sudo"}
}

// denied are the calls that agents' own rules shall refuse. They save an agent the work that the push gate would
// refuse later, and are no boundary: that is the gate.
func (s *Steps) denied(repoSettings settings.Settings) []string {
	var rules []string
	for _, c := range deniedCommands(repoSettings) {
		rules = append(rules, "Bash("+c+":*)")
	}
	if len(step.ExceptedPaths(s.Gate, repoSettings)) > 0 {
		return rules // these rules have no exceptions
	}
	for _, glob := range step.ProtectedPaths(s.Gate, repoSettings) {
		// A bare name applies to every folder there, and not all programs support braces and classes.
		if strings.Contains(glob, "/") && !strings.ContainsAny(glob, "{}[]()!?\\:\"") {
			rules = append(rules, "Edit("+glob+")")
		}
	}
	return rules
}
