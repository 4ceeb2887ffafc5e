package workflow

import (
	"slices"
	"strings"

	"github.com/errand-bot/errand/state"
)

// alwaysDenied are commands by how they begin that no task needs: they change where git pushes to, its
// configuration, or who one is.
func alwaysDenied() []string {
	return []string{"git push", "git remote add", "git remote set-url", "git config --global", "git config --system", "sudo"}
}

// denied are the calls that agents' own rules shall refuse. They save an agent the work that the push gate would
// refuse later, and are no boundary: that is the gate.
func denied(s state.Settings) []string {
	var rules []string
	for _, c := range slices.Concat(alwaysDenied(), s.Deny) {
		rules = append(rules, "Bash("+c+":*)")
	}
	if slices.ContainsFunc(s.Protected, func(glob string) bool { return strings.HasPrefix(glob, "!") }) {
		return rules // such rules know no exceptions
	}
	for _, glob := range protectedPaths(s) {
		// Names alone mean every folder's there, and not all programs know braces and classes.
		if strings.Contains(glob, "/") && !strings.ContainsAny(glob, "{}[]()!?\\:\"") {
			rules = append(rules, "Edit("+glob+")")
		}
	}
	return rules
}
