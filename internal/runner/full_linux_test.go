package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
)

// A run whose log cannot be written is ended: nobody could tell what it does.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	root := runner.Root(t.TempDir())
	if err := os.MkdirAll(root.RunDir("a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", filepath.Join(root.RunDir("a"), "events.jsonl")); err != nil {
		t.Fatal(err)
	}
	startIn(t, root, shell("a", "echo lost; exec sleep 1000"))
	var status runner.Status
	until(t, "the run has ended", func() (ended bool) {
		var err error
		if status, err = runner.StatusOf(root, "a"); err != nil {
			t.Fatal(err)
		}
		return status.State == runner.StateExited
	})
	if status.Exit.Cause != runlog.CauseLost || !status.Exit.DiskFull || !strings.Contains(status.Exit.Message, "no space left") {
		t.Errorf("exit %+v", status.Exit)
	}
}
