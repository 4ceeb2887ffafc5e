package pushgate

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/errand-bot/errand/internal/changeset"
)

// DefaultProtected returns the globs that are protected unless the operator says otherwise: what
// runs by itself with somebody's rights (workflows, hooks, agents' settings), and what decides
// about errand or about who must review.
func DefaultProtected() []string {
	return []string{
		".github/workflows/**", ".github/actions/**",
		".errand.yml", ".errand/**",
		"CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS",
		".husky/**", ".githooks/**", ".git-hooks/**", ".pre-commit-config.{yml,yaml}", "lefthook.{yml,yaml}",
		".claude/settings*.json", ".claude/hooks/**", ".mcp.json", ".codex/**", ".gemini/**",
		".lfsconfig", // where everybody's large files go
	}
}

// CheckGlobs returns an error that names the first glob that is not valid, with or without a
// leading exclamation mark. Judge refuses every change while a policy holds one.
func CheckGlobs(globs []string) error {
	for _, glob := range globs {
		pattern := strings.TrimPrefix(glob, "!")
		if pattern == "" || !doublestar.ValidatePattern(pattern) {
			return fmt.Errorf("glob %q is not valid", glob)
		}
	}
	return nil
}

// judgeProtected compares without regard to case, because a checkout on macOS or Windows does.
func judgeProtected(s *subject) []Refusal {
	if err := CheckGlobs(s.policy.Protected); err != nil {
		return []Refusal{{Rule: RuleProtected, Detail: "the configured list cannot be used: " + err.Error(), Remedy: "correct the list of protected paths"}}
	}
	var refusals []Refusal
	s.each(func(j judged, change changeset.Change) {
		glob, ok := protectedBy(s.policy.Protected, change)
		if !ok {
			return
		}
		if j.undone[change.Path] {
			refusals = append(refusals, Refusal{
				Rule: RuleProtected, Path: change.Path,
				Detail: fmt.Sprintf("the path is protected by `%s`, and merge %s undoes the base branch's change to it", glob, shortID(j.commit.ID)),
				Remedy: "merge again and take the path as the base branch has it",
			})
			return
		}
		refusals = append(refusals, Refusal{
			Rule: RuleProtected, Path: change.Path,
			Detail: fmt.Sprintf("the path is protected by `%s`", glob),
			Remedy: "leave it as it is and describe the wanted change in the pull request, or ask an operator to except the path",
		})
	})
	return refusals
}

// protectedBy returns the glob that protects the change's path.
func protectedBy(globs []string, change changeset.Change) (string, bool) {
	by, protected := "", false
	for _, glob := range globs {
		pattern, exception := strings.CutPrefix(glob, "!")
		if exception {
			if matchFold(pattern, change.Path) {
				by, protected = "", false
			}
			continue
		}
		if matchFold(pattern, change.Path) || replacesDirectory(pattern, change) {
			by, protected = glob, true
		}
	}
	return by, protected
}

func matchFold(pattern, path string) bool {
	ok, err := doublestar.Match(strings.ToLower(pattern), strings.ToLower(path))
	return err == nil && ok
}

// replacesDirectory reports whether the change puts a file or a link where the protected paths'
// own directory would be, which moves all of them away.
func replacesDirectory(pattern string, change changeset.Change) bool {
	if change.Deleted() {
		return false
	}
	fixed, rest := doublestar.SplitPattern(strings.ToLower(pattern))
	if !strings.ContainsAny(rest, `*?[{\`) {
		fixed = strings.ToLower(pattern)
	}
	path := strings.ToLower(change.Path)
	return fixed == path || strings.HasPrefix(fixed, path+"/")
}
