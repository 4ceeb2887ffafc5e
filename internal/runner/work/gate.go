package work

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/gates"
)

// skippedAfterFailure is why commands that wait for others, and gates, are not run.
const skippedAfterFailure = "another check failed"

// gateInput is what gates need to know about the commit. It is read before the commands run, which may write anywhere in
// the worktree.
type gateInput struct {
	changed gates.Changes
	tracked []string
	problem string // why that is not known
}

// readGateInput compares the head with the base, for the gates. The worktree's files decide nothing about it: attributes
// that call a file binary are ignored.
func (p *checkPlace) readGateInput(ctx context.Context, spec CheckSpec) (in gateInput) {
	base := orText(spec.GateBase, spec.Base)
	if !changeset.IsID(base) {
		in.problem = "It is not known with which commit the changes are to be compared."
		return in
	}
	r := openRepo(filepath.Join(p.dir, "tree"))
	patch, err := r.run(ctx, "diff", "--unified=0", "--text", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames",
		"--submodule=short", "--src-prefix=a/", "--dst-prefix=b/", base, spec.Head, "--")
	if err == nil {
		in.changed, err = gates.ParseDiff(patch)
	}
	if err != nil {
		in.problem = fmt.Sprintf("The changes cannot be compared with the base: %v.", err)
		return in
	}
	list, err := r.run(ctx, "ls-tree", "-r", "-z", "--name-only", spec.Head)
	if err != nil {
		in.problem = fmt.Sprintf("The files of the commit cannot be listed: %v.", err)
		return in
	}
	in.tracked = strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00")
	return in
}

// judge judges the gates after all commands.
func (p *checkPlace) judge(ctx context.Context, g gates.Gates, in gateInput) []gates.Result {
	if in.problem != "" {
		return gates.Fail(g, in.problem)
	}
	dir := filepath.Join(p.dir, "tree")
	root, err := os.OpenRoot(dir)
	if err != nil {
		return gates.Fail(g, "The checkout cannot be opened.")
	}
	defer func() { _ = root.Close() }()
	roots := []string{dir}
	if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
		roots = append(roots, real)
	}
	unrun := p.unrun && (!p.ran || !in.changed.HasCode())
	return gates.Evaluate(ctx, gates.Input{Gates: g, Changed: in.changed, Tracked: in.tracked, Tree: root.FS(), Roots: roots, Unrun: unrun})
}

// gateResults returns the results as those of checks.
func gateResults(list []gates.Result) []CheckResult {
	var out []CheckResult
	for _, r := range list {
		c := CheckResult{Type: TypeCheckResult, Name: r.Name, Gate: true, Skipped: r.Skipped, Tail: r.Text}
		if r.Failed {
			c.Code = 1
		}
		out = append(out, c)
	}
	return out
}

// inOrder returns the commands in the order in which they run: those that wait for others come last.
func inOrder(list []CheckCommand) []CheckCommand {
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b CheckCommand) int {
		switch {
		case a.BeforePR == b.BeforePR:
			return 0
		case b.BeforePR:
			return -1
		}
		return 1
	})
	return out
}
