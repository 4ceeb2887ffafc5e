package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/state/settings"
)

// Gate limits the changes that errand publishes, in every repository. A repository's own `gate` can lower these limits,
// protect more paths, and opt out of exceptions that are made here. After a change, `retry` checks refused commits again.
type Gate struct {
	// SecretsAllowedIn are patterns of paths, such as `**/testdata/**`, in which text that looks like a secret is
	// allowed, for example fake keys. The secrets that errand itself uses are refused everywhere.
	SecretsAllowedIn []string `yaml:"secrets_allowed_in"`
	// MaxPaths is how many paths one changeset may change, at most 20000.
	MaxPaths int `yaml:"max_paths"`
	// MaxBytes is how many bytes of new content one changeset may bring, at most 67108864.
	MaxBytes int64 `yaml:"max_bytes"`
	// Protected are patterns of paths that no changeset may touch, in addition to the built-in ones: errand's settings,
	// code owners, git hooks, and the configuration of CI systems, agents and editors.
	Protected []string `yaml:"protected"`
	// Unprotected are patterns of exceptions from protection, such as AGENTS.md. A pattern matches a path exactly as it
	// is written; names that only look alike stay protected.
	Unprotected []string `yaml:"unprotected"`
}

// RepoGate limits the changes that errand publishes in one repository, within the operator's `gate`.
type RepoGate struct {
	// SecretsAllowedIn narrows the operator's `secrets_allowed_in` to these patterns; an empty list allows nothing.
	SecretsAllowedIn *[]string `yaml:"secrets_allowed_in"`
	// MaxPaths is how many paths one changeset may change.
	MaxPaths int `yaml:"max_paths"`
	// MaxBytes is how many bytes of new content one changeset may bring.
	MaxBytes int64 `yaml:"max_bytes"`
	// Protected are patterns of paths that no changeset may touch, in addition to the operator's.
	Protected []string `yaml:"protected"`
	// Unprotected narrows the operator's `unprotected` to these patterns; an empty list allows nothing.
	Unprotected *[]string `yaml:"unprotected"`
}

// RepoGates sets how well tests have to cover changed code. After all commands of check succeeded, errand reads the reports
// that they wrote; below a gate the agent gets the lines that lack tests, like the output of a failing check.
type RepoGates struct {
	// Coverage is the lowest percentage of the changed lines with code that tests have to cover, 1 to 100; 0 means no gate.
	Coverage int `yaml:"coverage"`
	// Mutation is the lowest percentage of the mutants on changed lines that tests have to detect, 1 to 100; 0 means no gate.
	Mutation int `yaml:"mutation"`
	// Reports lists patterns of the paths of the reports, such as build/reports/**/*.xml. By default errand reads lcov.info,
	// coverage.xml, cobertura*.xml, coverage.cobertura.xml, jacoco*.xml, coverage.out, cover.out and mutations.xml in any folder.
	Reports []string `yaml:"reports"`
}

// maxReportPatterns is the maximum number of patterns of reports.
const maxReportPatterns = 50

func (g RepoGates) problems(r *report, setup, check []RepoCommand) {
	r.unless(g.Coverage >= 0 && g.Coverage <= 100, "gates.coverage", "write a percentage from 0 to 100")
	r.unless(g.Mutation >= 0 && g.Mutation <= 100, "gates.mutation", "write a percentage from 0 to 100")
	r.unless(len(check) > 0 || g.Coverage == 0 && g.Mutation == 0, "gates", "a command in check has to write the reports")
	n := len(g.Reports)
	r.unless(n <= maxReportPatterns, "gates.reports", "%d patterns are too many; write at most %d", n, maxReportPatterns)
	for i, pattern := range g.Reports {
		key := fmt.Sprintf("gates.reports[%d]", i)
		r.unless(!strings.HasPrefix(pattern, "/") && !slices.Contains(strings.Split(pattern, "/"), ".."), key, "write a path within the checkout")
		if err := pushgate.CheckGlobs([]string{pattern}); err != nil {
			r.unless(false, key, "%q is not a pattern such as build/**/jacoco.xml", cut(pattern))
		}
	}
	for i, c := range setup {
		r.unless(!c.BeforePR, fmt.Sprintf("setup[%d].before_pr", i), "this is for commands of check")
	}
}

func (g Gate) problems(r *report) {
	r.unless(g.MaxPaths > 0 && g.MaxPaths <= pushgate.CeilingPaths, "gate.max_paths", "write a number from 1 to %d", pushgate.CeilingPaths)
	r.unless(g.MaxBytes > 0 && g.MaxBytes <= pushgate.CeilingBytes, "gate.max_bytes", "write a number of bytes from 1 to %d", pushgate.CeilingBytes)
	globProblems(r, "gate.secrets_allowed_in", g.SecretsAllowedIn)
	globProblems(r, "gate.protected", g.Protected)
	globProblems(r, "gate.unprotected", g.Unprotected)
}

func (g RepoGate) problems(r *report) {
	r.unless(g.MaxPaths >= 0, "gate.max_paths", "must be greater than zero")
	r.unless(g.MaxBytes >= 0, "gate.max_bytes", "must be greater than zero")
	s := g.settings()
	globProblems(r, "gate.secrets_allowed_in", s.SecretsAllowedIn)
	globProblems(r, "gate.protected", s.Protected)
	globProblems(r, "gate.unprotected", s.Unprotected)
}

// settings returns the repository's settings; settings missing in the file are zero.
func (g RepoGate) settings() settings.Gate {
	return settings.Gate{
		SecretsAllowedIn: definedList(g.SecretsAllowedIn), MaxPaths: g.MaxPaths, MaxBytes: g.MaxBytes,
		Protected: g.Protected, Unprotected: definedList(g.Unprotected),
	}
}

// definedList returns a list that is not nil if the file has one, even if it is empty.
func definedList(list *[]string) []string {
	if list == nil {
		return nil
	}
	return append([]string{}, *list...)
}

func globProblems(r *report, key string, globs []string) {
	for i, glob := range globs {
		if err := pushgate.CheckGlobs([]string{glob}); err != nil {
			r.unless(false, fmt.Sprintf("%s[%d]", key, i), "%s; write a pattern such as deploy/**", cut(err.Error()))
		}
	}
}
