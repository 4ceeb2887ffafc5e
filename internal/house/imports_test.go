package house_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/house/layers"
)

// TestImports checks the imports of every package against the rules of package layers.
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
