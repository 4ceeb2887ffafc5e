package workflow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/shellrules"
	"github.com/errand-bot/errand/state"
)

// operatorsShell puts the operator's list where the repository has none of its own, and says what is wrong if the
// repository wants any command to be allowed and the operator does not.
func (s *Steps) operatorsShell(repo string, settings *state.Settings) string {
	var operators state.Shell
	if s.ShellFor != nil {
		operators = s.ShellFor(repo)
	}
	switch {
	case !settings.Shell.Set:
		settings.Shell = operators
	case settings.Shell.All && !operators.All:
		return fmt.Sprintf("tools.shell: `all` lets agents call any command, for which errand's operator has to set "+
			"`repository.tools.repositories: {%s: all}`; else write the commands that may be called, such as `[git, go, make]`, or leave the key out", repo)
	}
	return ""
}

// base looks at what work begins at: what it says to agents, and what it is built with, which is what agents may
// call unless people wrote something else.
func (s *Steps) base(ctx context.Context, w *unit, st *state.Start) error {
	if st.Branch.BaseSHA == "" || st.Settings.Shell.Set && len(st.Settings.Guidance) == 0 {
		return nil
	}
	base, err := s.GitHub.CommitFiles(ctx, w.repo, st.Branch.BaseSHA, st.Settings.Guidance)
	if err != nil {
		return fmt.Errorf("look at what the base branch says to agents, and is built with: %w", err)
	}
	st.Context.Guidance = s.guidance(st.Settings.Guidance, base.Texts)
	if !st.Settings.Shell.Set {
		st.Settings.Shell.Commands = shellrules.DetectCommands(base.Names, ownCommands(st.Settings))
	}
	return nil
}

// ownCommands are the repository's commands.
func ownCommands(s state.Settings) []string {
	var list []string
	for _, c := range slices.Concat(s.Setup, s.Check) {
		list = append(list, c.Run)
	}
	return list
}

// callable are the beginnings of commands that an agent's shell may run; nil is any.
func callable(s state.Settings) []string {
	if s.Shell.All {
		return nil
	}
	return slices.Concat(ownShell(s), shellrules.BaseCommands())
}

// ownShell are those of them that other repositories do not have.
func ownShell(s state.Settings) []string {
	if s.Shell.All {
		return nil
	}
	if !s.Shell.Set && s.Shell.Commands == nil { // nobody looked
		return shellrules.DetectCommands(nil, ownCommands(s))
	}
	return s.Shell.Commands
}

// deniedCommands are the commands that no agent may call, by how they begin.
func deniedCommands(s state.Settings) []string { return slices.Concat(alwaysDenied(), s.Deny) }

// alwaysDenied are commands by how they begin that no task needs: they change where git pushes to, its
// configuration, or who one is.
func alwaysDenied() []string {
	return []string{"git push", "git remote add", "git remote set-url", "git config --global", "git config --system", "sudo"}
}

// denied are the calls that agents' own rules shall refuse. They save an agent the work that the push gate would
// refuse later, and are no boundary: that is the gate.
func (s *Steps) denied(settings state.Settings) []string {
	var rules []string
	for _, c := range deniedCommands(settings) {
		rules = append(rules, "Bash("+c+":*)")
	}
	if len(s.exceptedPaths(settings)) > 0 {
		return rules // such rules know no exceptions
	}
	for _, glob := range s.protectedPaths(settings) {
		// Names alone mean every folder's there, and not all programs know braces and classes.
		if strings.Contains(glob, "/") && !strings.ContainsAny(glob, "{}[]()!?\\:\"") {
			rules = append(rules, "Edit("+glob+")")
		}
	}
	return rules
}
