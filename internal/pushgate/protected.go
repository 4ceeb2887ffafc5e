package pushgate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/errand-bot/errand/internal/changeset"
)

// DefaultProtected returns the globs that are protected unless the operator makes an exception: what
// runs by itself with somebody's rights (CI, hooks, editors' tasks), what directs the agents of whoever works in the
// repository, and what decides about errand or about who must review.
func DefaultProtected() []string {
	return slices.Concat([]string{
		".errand.yml", ".errand/**",
		"CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS", ".gitea/CODEOWNERS", ".forgejo/CODEOWNERS",
		"**/.husky/**", ".githooks/**", ".git-hooks/**", ".pre-commit-config.{yml,yaml}",
		"lefthook*.{yml,yaml,toml,json}", ".lefthook*.{yml,yaml,toml,json}", ".lefthook/**", ".overcommit.yml",
		".lfsconfig", // where everybody's large files go
	}, protectedCI(), protectedAgents(), protectedEditors())
}

// protectedCI lists the files that tell CI systems what to run, with their secrets.
func protectedCI() []string {
	return []string{
		".github/workflows/**", ".github/actions/**",
		".gitea/workflows/**", ".gitea/actions/**", ".forgejo/workflows/**", ".forgejo/actions/**",
		".gitlab-ci.{yml,yaml}", ".gitlab-ci/**", ".gitlab/ci/**",
		".circleci/**", ".travis.{yml,yaml}", "appveyor.{yml,yaml}", ".appveyor.{yml,yaml}", ".appveyor/**",
		"azure-pipelines*.{yml,yaml}", ".azure-pipelines*.{yml,yaml}", ".azure-pipelines/**", ".azuredevops/**", ".pipelines/**",
		"**/Jenkinsfile*", ".jenkins/**", ".buildkite/**", "buildkite.{yml,yaml}",
		".drone.{yml,yaml,jsonnet,star}", ".woodpecker.{yml,yaml}", ".woodpecker/**",
		"bitbucket-pipelines.{yml,yaml}", ".cirrus.{yml,yaml,star}", ".semaphore/**", ".teamcity/**",
		".build.yml", ".builds/**", ".tekton/**", ".harness/**", "cloudbuild.{yml,yaml,json}", "buildspec.{yml,yaml}",
		"bitrise.{yml,yaml}", "codemagic.yaml", "codeship-*.yml", "wercker.yml",
	}
}

// protectedAgents lists the files that coding agents obey when they find them in a checkout.
func protectedAgents() []string {
	return []string{
		"**/AGENTS.md", "**/AGENTS.override.md", "**/CLAUDE.md", "**/CLAUDE.local.md", "**/GEMINI.md",
		"**/.claude/**", "**/.mcp.json", "**/.codex/**", "**/.gemini/**",
		"**/.cursor/**", "**/.cursorrules", "**/.windsurf/**", "**/.windsurfrules", "**/.clinerules", "**/.clinerules/**", "**/.aider*",
		".github/copilot-instructions.md", ".github/instructions/**", ".github/prompts/**", ".github/agents/**",
	}
}

// protectedEditors lists the files that make an editor or a shell run something when a folder is opened.
func protectedEditors() []string {
	return []string{
		"**/.vscode/**", "**/*.code-workspace", "**/.devcontainer/**", "**/.devcontainer.json",
		"**/.idea/runConfigurations/**", "**/.idea/workspace.xml", "**/.run/**", "**/.zed/**", "**/.fleet/**", "**/.envrc",
	}
}

// judgeProtected compares paths in their canonical form, because a checkout on macOS or Windows does.
func judgeProtected(s *subject) []Refusal {
	for _, list := range [][]string{s.policy.Operator.Protected, s.policy.Operator.Unprotected, s.policy.Repository.Protected, s.policy.Repository.Unprotected} {
		if err := CheckGlobs(list); err != nil {
			return []Refusal{{Rule: RuleProtected, Detail: "the configured list cannot be used: " + err.Error(), Remedy: "correct the list of protected paths"}}
		}
	}
	operators := guards(slices.Concat(DefaultProtected(), s.policy.Operator.Protected))
	own := guards(s.policy.Repository.Protected)
	var refusals []Refusal
	s.each(func(j judged, change changeset.Change) {
		refused := func(by guard, operators bool) {
			r := Refusal{
				Rule: RuleProtected, Path: change.Path, Detail: fmt.Sprintf("the path is protected by `%s`", by.glob),
				Remedy: orSet("leave it as it is and describe the wanted change in the pull request", s.unprotect(change.Path, by.glob, operators)...),
			}
			if j.undone[change.Path] {
				r.Detail += fmt.Sprintf(", and merge %s undoes the base branch's change to it", shortID(j.commit.ID))
				r.Remedy = orSet("merge again and take the path as the base branch has it", s.unprotect(change.Path, by.glob, operators)...)
			}
			refusals = append(refusals, r)
		}
		if i := slices.IndexFunc(operators, protecting(change)); i >= 0 && !s.policy.unprotected(change.Path) {
			refused(operators[i], true)
		} else if i := slices.IndexFunc(own, protecting(change)); i >= 0 {
			refused(own[i], false)
		}
	})
	return refusals
}

// unprotected reports whether the operator excepts a path and the repository does not give that up.
func (p *Policy) unprotected(path string) bool {
	own := p.Repository.Unprotected
	return matchesExactly(p.Operator.Unprotected, path) && (own == nil || matchesExactly(own, path))
}

// unprotect says which settings would let a change of the path pass; none if they cannot be written down.
func (s *subject) unprotect(path, glob string, operators bool) (needed []suggestion) {
	own := s.policy.Repository
	add := func(key string, list []string, operator bool) bool {
		value, ok := listOf(list)
		needed = append(needed, suggestion{key: key, value: value, operator: operator})
		return ok
	}
	except := s.globFor(path)
	if _, ok := listOf([]string{except}); !ok {
		except = glob
	}
	if !matchesExactly([]string{except}, path) {
		return nil // a look-alike with such a name is excepted by nothing that could be shown
	}
	if operators {
		if !matchesExactly(s.policy.Operator.Unprotected, path) && !add("unprotected", append(slices.Clone(s.policy.Operator.Unprotected), except), true) {
			return nil
		}
		if own.Unprotected != nil && !matchesExactly(own.Unprotected, path) && !add("unprotected", append(slices.Clone(own.Unprotected), except), false) {
			return nil
		}
	}
	protects := protecting(changeset.Change{Path: path, Mode: changeset.ModeFile})
	rest := slices.DeleteFunc(slices.Clone(own.Protected), func(glob string) bool { return protects(guards([]string{glob})[0]) })
	if len(rest) < len(own.Protected) && !add("protected", rest, false) {
		return nil
	}
	return needed
}

// A guard is a glob prepared for comparisons.
type guard struct {
	glob, pattern string
	// fixed is what stands before the first wildcard, at the root or anywhere.
	fixed    string
	anywhere bool
}

func guards(globs []string) []guard {
	list := make([]guard, 0, len(globs))
	for _, glob := range globs {
		g := guard{glob: glob, pattern: loose(glob)}
		var below, rest string
		below, g.anywhere = strings.CutPrefix(g.pattern, "**/")
		if g.fixed, rest = doublestar.SplitPattern(below); !strings.ContainsAny(rest, `*?[{\`) {
			g.fixed = below
		}
		list = append(list, g)
	}
	return list
}

// protecting returns whether a guard protects what the change would change.
func protecting(change changeset.Change) func(guard) bool {
	spellings := slices.Compact([]string{canonical(change.Path), loose(change.Path)})
	return func(g guard) bool {
		return slices.ContainsFunc(spellings, func(path string) bool {
			ok, err := doublestar.Match(g.pattern, path)
			return err == nil && ok || !change.Deleted() && g.replacedBy(path)
		})
	}
}

// replacedBy reports whether a file or a link at the path stands where the protected paths' own directory would be,
// which moves all of them away.
func (g guard) replacedBy(path string) bool {
	for {
		if g.fixed == path || strings.HasPrefix(g.fixed, path+"/") {
			return true
		}
		var more bool
		if _, path, more = strings.Cut(path, "/"); !g.anywhere || !more {
			return false
		}
	}
}
