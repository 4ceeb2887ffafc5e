package scan_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/errand-bot/errand/internal/scan"
)

// FuzzScan: every tree leads to a file with exactly the commands of the report, each of which is one visible line; the same tree
// always leads to the same report.
func FuzzScan(f *testing.F) {
	files, err := filepath.Glob("testdata/trees/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tree := treeOf(txtar.Parse(data))
		if n := len(scan.Wanted(tree.Paths)); n > 80 {
			t.Fatalf("wants %d files", n)
		}
		r := scan.Scan(tree)
		if len(r.Setup) > 20 || len(r.Check) > 20 {
			t.Fatalf("proposes %d and %d commands", len(r.Setup), len(r.Check))
		}
		checkReport(t, r)
		slices.Reverse(tree.Paths)
		if diff := cmp.Diff(r, scan.Scan(tree)); diff != "" {
			t.Fatalf("the order of the paths matters:\n%s", diff)
		}
	})
}
