package buildtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/errand-bot/errand/internal/buildtest"
)

// TestProgram: a program is linked once and copied each time; a test that changes its copy does not affect others.
func TestProgram(t *testing.T) {
	t.Parallel()
	var shared os.FileInfo
	for range 2 {
		dir := t.TempDir()
		if err := buildtest.Program(t.Context(), dir, "errand-runner"); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "errand-runner"), "version").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := os.WriteFile(filepath.Join(dir, "errand-runner"), []byte("changed"), 0o755); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat("../../.cache/bin/errand-runner")
		if err != nil {
			t.Fatal(err)
		}
		if shared != nil && !os.SameFile(shared, info) {
			t.Error("it was linked again")
		}
		shared = info
	}
	if err := buildtest.Program(t.Context(), t.TempDir(), "no-such-program"); err == nil {
		t.Error("a program that does not exist was built")
	}
}
