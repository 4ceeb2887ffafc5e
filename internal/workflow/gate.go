package workflow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/state"
)

// repositoryGate is what a task's repository sets of the push gate. A task that an older version started has its protected
// paths elsewhere, with exceptions that never counted.
func repositoryGate(s state.Settings) state.Gate {
	g := s.Gate
	g.Protected = slices.Clone(g.Protected)
	for _, glob := range s.Protected {
		if !strings.HasPrefix(glob, "!") {
			g.Protected = append(g.Protected, glob)
		}
	}
	return g
}

// currentGate is repositoryGate as it is by now, if the gate has refused something of the task: a refusal says what to write into
// the repository's file.
func (s *Steps) currentGate(ctx context.Context, w *unit) (state.Gate, error) {
	t := w.task
	if len(t.Gate) == 0 {
		return repositoryGate(t.Settings), nil
	}
	out, err := s.GitHub.IssueSnapshot(ctx, w.repo, t.Key.Issue, configFile)
	if err != nil {
		return state.Gate{}, fmt.Errorf("read what the repository sets of the push gate: %w", err)
	}
	settings, held := s.settings(w, out)
	if held != nil && held.Kind == state.WaitConfig {
		return repositoryGate(t.Settings), nil // a file that cannot be used changes nothing
	}
	return repositoryGate(settings), nil
}

// protectedPaths are all patterns of paths that are protected from a task's changes.
func (s *Steps) protectedPaths(settings state.Settings) []string {
	return slices.Concat(pushgate.DefaultProtected(), s.Gate.Protected, repositoryGate(settings).Protected)
}

// exceptedPaths are the patterns of paths that are excepted from that: of the operator's and the repository's those
// that the other side covers. They are what an agent is told; the gate asks both sides about each path.
func (s *Steps) exceptedPaths(settings state.Settings) []string {
	operators, own := s.Gate.Unprotected, settings.Gate.Unprotected
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
