package workflow

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/state"
)

// Tests are what the operator gives to a repository's set-up, agents and checks: variables by name, and files of
// the checkout by path. Both are expendable: whoever directs an agent can read them.
type Tests struct {
	Env, Files map[string]string
}

// tests are those of a task's repository.
func (s *Steps) tests(t *state.Task) Tests {
	if s.TestsFor == nil {
		return Tests{}
	}
	return s.TestsFor(t.Repo.FullName())
}

// withVariables adds to an environment what the repository sets, where nothing else is set, and over all what the
// operator sets for its tests. Neither may name what errand or an agent's program sets.
func (s *Steps) withVariables(t *state.Task, env map[string]string) map[string]string {
	out := maps.Clone(t.Settings.Env)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, env)
	maps.Copy(out, s.tests(t).Env)
	return out
}

// files are a task's test files, in order.
func (s *Steps) files(t *state.Task) []work.TestFile {
	all := s.tests(t).Files
	out := make([]work.TestFile, 0, len(all))
	for _, path := range slices.Sorted(maps.Keys(all)) {
		out = append(out, work.TestFile{Path: path, Content: []byte(all[path])})
	}
	return out
}

// lentPaths are the paths of a task's test files, in order.
func (s *Steps) lentPaths(t *state.Task) []string {
	return slices.Sorted(maps.Keys(s.tests(t).Files))
}

// lend puts the test files into the checkout, each time: a checkout may be new, or have been put elsewhere.
func (s *Steps) lend(ctx context.Context, t *state.Task, vm string, place runnerctl.Place, l *state.Launch) error {
	files := s.files(t)
	if len(files) == 0 {
		return nil
	}
	base := cmp.Or(l.Root, workRoot(t))
	lent, err := s.Runner.Lend(ctx, vm, work.LendSpec{Dir: place.Dir, Base: base, Files: files})
	if err != nil {
		return fmt.Errorf("put the test files into the checkout: %w", err)
	}
	for _, p := range s.lentPaths(t) {
		if slices.Contains(lent.Taken, p) { // what a VM says is repeated only if we know it
			return &Problem{
				Reason: fmt.Sprintf("The operator's `test_files` name `%s`, but the repository has something there itself.", p),
				Hint:   "The operator can name another path, or the repository can leave it out; then comment `retry`.", Class: "config", Permanent: true,
			}
		}
	}
	return nil
}

// workBase is the commit with which checks compare: what the pull request shows is what differs from it, and
// sometimes less, after the base was merged in. We know it ourselves; a VM could name its own head.
func workBase(t *state.Task) string { return cmp.Or(t.Branch.BaseSHA, workRoot(t)) }

// takeBack takes the test files out of the checkout, before what is there is put away.
func (s *Steps) takeBack(ctx context.Context, t *state.Task, vm string) error {
	paths := s.lentPaths(t)
	if len(paths) == 0 {
		return nil
	}
	place, err := s.Runner.Place(ctx, vm)
	if err != nil {
		return err
	}
	if _, err := s.Runner.Lend(ctx, vm, work.LendSpec{Dir: place.Dir, Back: paths}); err != nil {
		return fmt.Errorf("take the test files out of the checkout: %w", err)
	}
	return nil
}
