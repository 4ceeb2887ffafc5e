package pushgate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/errand-bot/errand/internal/changeset"
)

// DefaultProtected returns the globs that are protected unless the operator makes an exception: files that run
// automatically with somebody's permissions (CI, hooks, editors' tasks), files that instruct coding agents, and files
// that configure errand or determine required reviewers.
func DefaultProtected() []string {
	return slices.Concat([]string{
		".errand.yml", ".errand/**",
		"CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS", ".gitea/CODEOWNERS", ".forgejo/CODEOWNERS",
		"**/.husky/**", ".githooks/**", ".git-hooks/**", ".pre-commit-config.{yml,yaml}",
		"lefthook*.{yml,yaml,toml,json}", ".lefthook*.{yml,yaml,toml,json}", ".lefthook/**", ".overcommit.yml",
		".lfsconfig", // determines where large files are uploaded
	}, protectedCI(), protectedAgents(), protectedEditors())
}

// protectedCI returns the files that configure CI systems, whose jobs run with secrets.
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

// protectedAgents returns the files from which coding agents take instructions in a checkout.
func protectedAgents() []string {
	return []string{
		"**/AGENTS.md", "**/AGENTS.override.md", "**/CLAUDE.md", "**/CLAUDE.local.md", "**/GEMINI.md",
		"**/.claude/**", "**/.mcp.json", "**/.codex/**", "**/.gemini/**",
		"**/.cursor/**", "**/.cursorrules", "**/.windsurf/**", "**/.windsurfrules", "**/.clinerules", "**/.clinerules/**", "**/.aider*",
		".github/copilot-instructions.md", ".github/instructions/**", ".github/prompts/**", ".github/agents/**",
	}
}

// protectedEditors returns the files that make an editor or a shell run commands when a folder is opened.
func protectedEditors() []string {
	return []string{
		"**/.vscode/**", "**/*.code-workspace", "**/.devcontainer/**", "**/.devcontainer.json",
		"**/.idea/runConfigurations/**", "**/.idea/workspace.xml", "**/.run/**", "**/.zed/**", "**/.fleet/**", "**/.envrc",
	}
}

// checkProtected compares paths in their canonical form, as a checkout on macOS or Windows does.
func checkProtected(s *subject) []Refusal {
	for _, list := range [][]string{
		s.policy.Operator.Protected, s.policy.Operator.Unprotected,
		s.policy.Repository.Protected, s.policy.Repository.Unprotected,
	} {
		if err := CheckGlobs(list); err != nil {
			return []Refusal{{Rule: RuleProtected, Detail: "the configured list cannot be used: " + err.Error(), Remedy: "correct the list of protected paths"}}
		}
	}
	operators := prepareGlobs(slices.Concat(DefaultProtected(), s.policy.Operator.Protected))
	own := prepareGlobs(s.policy.Repository.Protected)
	var refusals []Refusal
	s.eachChange(func(j checkedCommit, change changeset.Change) {
		refused := func(by protectedGlob, operators bool) {
			r := Refusal{
				Rule: RuleProtected, Path: change.Path, Detail: fmt.Sprintf("the path is protected by `%s`", by.glob),
				Remedy: withSuggestions("leave it as it is and describe the wanted change in the pull request", s.suggestUnprotect(change.Path, by.glob, operators)...),
			}
			if j.undone[change.Path] {
				r.Detail += fmt.Sprintf(", and merge %s undoes the base branch's change to it", shortID(j.commit.ID))
				r.Remedy = withSuggestions("merge again and take the path as the base branch has it", s.suggestUnprotect(change.Path, by.glob, operators)...)
			}
			refusals = append(refusals, r)
		}
		if i := slices.IndexFunc(operators, protects(change)); i >= 0 && !s.policy.isUnprotected(change.Path) {
			refused(operators[i], true)
		} else if i := slices.IndexFunc(own, protects(change)); i >= 0 {
			refused(own[i], false)
		}
	})
	return refusals
}

// isUnprotected reports whether the operator makes an exception for the path and the repository does not withdraw it.
func (p *Policy) isUnprotected(path string) bool {
	own := p.Repository.Unprotected
	return matchesExactly(p.Operator.Unprotected, path) && (own == nil || matchesExactly(own, path))
}

// suggestUnprotect returns the settings that would allow a change of the path, or nil if no setting could be shown.
func (s *subject) suggestUnprotect(path, glob string, operators bool) (needed []suggestion) {
	own := s.policy.Repository
	add := func(key string, list []string, operator bool) bool {
		value, ok := yamlList(list)
		needed = append(needed, suggestion{key: key, value: value, operator: operator})
		return ok
	}
	except := s.globFor(path)
	if _, ok := yamlList([]string{except}); !ok {
		except = glob
	}
	if !matchesExactly([]string{except}, path) {
		return nil // no glob that can be shown matches such a look-alike
	}
	if operators {
		if !matchesExactly(s.policy.Operator.Unprotected, path) &&
			!add("unprotected", append(slices.Clone(s.policy.Operator.Unprotected), except), true) {
			return nil
		}
		if own.Unprotected != nil && !matchesExactly(own.Unprotected, path) &&
			!add("unprotected", append(slices.Clone(own.Unprotected), except), false) {
			return nil
		}
	}
	isProtectedBy := protects(changeset.Change{Path: path, Mode: changeset.ModeFile})
	rest := slices.DeleteFunc(slices.Clone(own.Protected), func(glob string) bool { return isProtectedBy(prepareGlobs([]string{glob})[0]) })
	if len(rest) < len(own.Protected) && !add("protected", rest, false) {
		return nil
	}
	return needed
}

// A protectedGlob is a glob prepared for comparisons.
type protectedGlob struct {
	glob, pattern string
	// fixed is the part before the first wildcard, relative to the root or, with anywhere, to any directory.
	fixed    string
	anywhere bool
}

func prepareGlobs(globs []string) []protectedGlob {
	list := make([]protectedGlob, 0, len(globs))
	for _, glob := range globs {
		g := protectedGlob{glob: glob, pattern: looseForm(glob)}
		var below, rest string
		below, g.anywhere = strings.CutPrefix(g.pattern, "**/")
		if g.fixed, rest = doublestar.SplitPattern(below); !strings.ContainsAny(rest, `*?[{\`) {
			g.fixed = below
		}
		list = append(list, g)
	}
	return list
}

// protects returns a predicate that reports whether a glob protects the changed path.
func protects(change changeset.Change) func(protectedGlob) bool {
	spellings := slices.Compact([]string{canonical(change.Path), looseForm(change.Path)})
	return func(g protectedGlob) bool {
		return slices.ContainsFunc(spellings, func(path string) bool {
			ok, err := doublestar.Match(g.pattern, path)
			return err == nil && ok || !change.Deleted() && g.replacedBy(path)
		})
	}
}

// replacedBy reports whether a file or link at the path would replace the directory of the protected paths, and so
// remove all of them.
func (g protectedGlob) replacedBy(path string) bool {
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
