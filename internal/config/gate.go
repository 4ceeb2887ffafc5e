package config

import (
	"fmt"

	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/state"
)

// Gate is what may leave errand for a repository, in every repository. A repository's own `gate` can lower these
// limits, protect more paths, and give up exceptions that are made here; a task that was refused goes on with `retry`
// once they are changed.
type Gate struct {
	// SecretsAllowedIn are patterns of paths, such as `**/testdata/**`, in which what looks like a secret is let pass,
	// made-up keys for instance. What errand knows to be a secret is refused everywhere.
	SecretsAllowedIn []string `yaml:"secrets_allowed_in"`
	// MaxPaths is how many paths one changeset may change, at most 20000.
	MaxPaths int `yaml:"max_paths"`
	// MaxBytes is how many bytes of new content one changeset may bring, at most 67108864.
	MaxBytes int64 `yaml:"max_bytes"`
	// Protected are patterns of paths that no changeset may touch, besides the built-in ones: errand's settings, code
	// owners, git hooks, what CI systems run, what agents and editors obey.
	Protected []string `yaml:"protected"`
	// Unprotected are patterns of paths that may be changed although they are protected, here or built in, such as
	// AGENTS.md. A path has to be matched as it is written; names that only look alike stay protected.
	Unprotected []string `yaml:"unprotected"`
}

// RepoGate is what may leave errand for a repository, within what the operator's `gate` allows.
type RepoGate struct {
	// SecretsAllowedIn are those of the paths in which the operator lets pass what looks like a secret that this
	// repository needs; an empty list is none of them.
	SecretsAllowedIn *[]string `yaml:"secrets_allowed_in"`
	// MaxPaths is how many paths one changeset may change.
	MaxPaths int `yaml:"max_paths"`
	// MaxBytes is how many bytes of new content one changeset may bring.
	MaxBytes int64 `yaml:"max_bytes"`
	// Protected are patterns of paths that no changeset may touch, besides the operator's.
	Protected []string `yaml:"protected"`
	// Unprotected are those of the operator's exceptions from protection that this repository needs, as patterns;
	// an empty list is none of them.
	Unprotected *[]string `yaml:"unprotected"`
}

func (g Gate) problems(r *report) {
	r.unless(g.MaxPaths > 0 && g.MaxPaths <= pushgate.CeilingPaths, "gate.max_paths", "write a number from 1 to %d", pushgate.CeilingPaths)
	r.unless(g.MaxBytes > 0 && g.MaxBytes <= pushgate.CeilingBytes, "gate.max_bytes", "write a number of bytes from 1 to %d", pushgate.CeilingBytes)
	globProblems(r, "gate.secrets_allowed_in", g.SecretsAllowedIn)
	globProblems(r, "gate.protected", g.Protected)
	globProblems(r, "gate.unprotected", g.Unprotected)
}

func (g RepoGate) problems(r *report) {
	r.unless(g.MaxPaths >= 0, "gate.max_paths", "has to be above zero")
	r.unless(g.MaxBytes >= 0, "gate.max_bytes", "has to be above zero")
	s := g.settings()
	globProblems(r, "gate.secrets_allowed_in", s.SecretsAllowedIn)
	globProblems(r, "gate.protected", s.Protected)
	globProblems(r, "gate.unprotected", s.Unprotected)
}

// settings are what the repository says; what it leaves out stays zero.
func (g RepoGate) settings() state.Gate {
	return state.Gate{
		SecretsAllowedIn: written(g.SecretsAllowedIn), MaxPaths: g.MaxPaths, MaxBytes: g.MaxBytes,
		Protected: g.Protected, Unprotected: written(g.Unprotected),
	}
}

// written tells an empty list, which is not nil, from one that is not there.
func written(list *[]string) []string {
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
