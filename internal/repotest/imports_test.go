package repotest_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/tools/layers"
)

// All imports comply with the rules of package layers.
func TestImports(t *testing.T) {
	t.Parallel()
	paths, err := files(".go")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := layers.Packages(root, paths)
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 50 {
		t.Fatalf("only %d packages: this is not the tree", len(packages))
	}
	for _, fault := range layers.Check(packages) {
		t.Error(fault)
	}
}

// The shipped programs import no simulator, not even indirectly.
func TestShippedBinariesLinkNoSimulator(t *testing.T) {
	t.Parallel()
	paths, err := files(".go")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := layers.Packages(root, paths)
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	for _, p := range packages {
		imports[p.Path] = p.Ours()
	}
	for _, program := range []string{"cmd/errand", "cmd/errand-runner"} {
		seen := map[string]bool{}
		var follow func(pkg string, way []string)
		follow = func(pkg string, way []string) {
			if seen[pkg] {
				return
			}
			seen[pkg] = true
			way = append(way, pkg)
			if strings.HasPrefix(pkg, "internal/sim/") {
				t.Errorf("%s links a simulator: %s", program, strings.Join(way, " → "))
			}
			for _, next := range imports[pkg] {
				follow(next, way)
			}
		}
		if follow(program, nil); len(seen) < 10 {
			t.Errorf("only %d packages of %s were found", len(seen), program)
		}
	}
}
