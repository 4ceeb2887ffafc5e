package step

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/state/settings"
)

// RepositoryGate returns the repository's settings of the push gate. A task that was started by an older version has
// its protected paths elsewhere, with exceptions that never counted.
func RepositoryGate(s settings.Settings) settings.Gate {
	g := s.Gate
	g.Protected = slices.Clone(g.Protected)
	for _, glob := range s.Protected {
		if !strings.HasPrefix(glob, "!") {
			g.Protected = append(g.Protected, glob)
		}
	}
	return g
}

// ProtectedPaths returns all patterns of paths that a task's changes may not touch.
func ProtectedPaths(operator settings.Gate, s settings.Settings) []string {
	return slices.Concat(pushgate.DefaultProtected(), operator.Protected, RepositoryGate(s).Protected)
}

// ExceptedPaths returns the patterns of paths that are excepted from the protection: those of the operator and the
// repository that the other side covers. They are for the agent's prompt; the gate asks both sides about each path.
func ExceptedPaths(operator settings.Gate, s settings.Settings) []string {
	operators, own := operator.Unprotected, s.Gate.Unprotected
	if own == nil {
		return operators
	}
	covered := func(by []string) func(string) bool {
		return func(glob string) bool {
			return slices.ContainsFunc(by, func(other string) bool {
				ok, err := doublestar.Match(other, glob)
				return other == glob || err == nil && ok
			})
		}
	}
	var list []string
	for _, glob := range own {
		if covered(operators)(glob) {
			list = append(list, glob)
		}
	}
	for _, glob := range operators {
		if covered(own)(glob) && !slices.Contains(list, glob) {
			list = append(list, glob)
		}
	}
	return list
}
