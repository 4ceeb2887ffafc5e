package mutants

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Env names the mutant that a test binary with mutants is to play.
const Env = "ERRAND_MUTANT"

// Build builds one test binary of the package under test, with all mutants of the table. A mutant has no effect unless
// Env names it. The test is skipped without a go command.
func (b Table) Build(t *testing.T) (bin string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("building mutants needs the go command, which was not found")
	}
	dir, err := filepath.Abs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	put := func(path, text string) {
		real, err := filepath.Abs(filepath.Join(b.top, filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		replace[real] = filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(replace[real], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(b.Changed)) {
		put(file, b.Changed[file])
		clause, err := parser.ParseFile(token.NewFileSet(), file, b.Changed[file], parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		put(filepath.ToSlash(filepath.Dir(file))+"/zz_mutant.go", "package "+clause.Name.Name+"\n\nimport \"os\"\n\nvar played = os.Getenv(\""+Env+"\")\n\n"+
			"func mutant(id string) bool { return played == id }\n")
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	bin = filepath.Join(dir, "mutants.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the mutants: %v\n%s", err, out)
	}
	return bin
}
