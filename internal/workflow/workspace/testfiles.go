package workspace

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
)

// Tests is the data that the operator gives to a repository's set-up, agents and checks: variables by name, and files
// of the checkout by path. Neither is secret: whoever directs an agent can read them.
type Tests struct {
	Env, Files map[string]string
}

// Tests returns those of a task's repository.
func (o *Opener) Tests(t *state.Task) Tests {
	if o.TestsFor == nil {
		return Tests{}
	}
	return o.TestsFor(t.Repo.FullName())
}

// TestFiles returns a task's test files, sorted by path.
func (o *Opener) TestFiles(t *state.Task) []work.TestFile {
	all := o.Tests(t).Files
	out := make([]work.TestFile, 0, len(all))
	for _, path := range slices.Sorted(maps.Keys(all)) {
		out = append(out, work.TestFile{Path: path, Content: []byte(all[path])})
	}
	return out
}

// TestPaths returns the paths of a task's test files, sorted.
func (o *Opener) TestPaths(t *state.Task) []string {
	return slices.Sorted(maps.Keys(o.Tests(t).Files))
}

// AddTestFiles puts the test files into the checkout. It is called before each run: the checkout may be new, or on
// another commit.
func (ws *Workspace) AddTestFiles(ctx context.Context, l *state.Launch) error {
	files := ws.open.TestFiles(ws.task)
	if len(files) == 0 {
		return nil
	}
	base := cmp.Or(l.Root, Root(ws.task))
	lent, err := ws.open.Runner.Lend(ctx, ws.VM.Name, work.LendSpec{Dir: ws.Place.Dir, Base: base, Files: files})
	if err != nil {
		return fmt.Errorf("put the test files into the checkout: %w", err)
	}
	for _, p := range ws.open.TestPaths(ws.task) {
		if slices.Contains(lent.Taken, p) { // a path that the VM reports is repeated only if it is one of errand's
			return &step.Problem{
				Reason: fmt.Sprintf("The operator's `test_files` contain `%s`, but the repository already has a file there.", p),
				Hint:   "The operator can choose another path, or the repository can remove its file; then comment `retry`.", Class: state.ClassConfig, Permanent: true,
			}
		}
	}
	return nil
}

// RemoveTestFiles removes the test files from the checkout on the task's VM, before the checkout is saved.
func (o *Opener) RemoveTestFiles(ctx context.Context, t *state.Task) error {
	paths := o.TestPaths(t)
	if len(paths) == 0 {
		return nil
	}
	ws, err := o.Open(ctx, t)
	if err != nil {
		return err
	}
	if _, err := o.Runner.Lend(ctx, ws.VM.Name, work.LendSpec{Dir: ws.Place.Dir, Back: paths}); err != nil {
		return fmt.Errorf("take the test files out of the checkout: %w", err)
	}
	return nil
}
