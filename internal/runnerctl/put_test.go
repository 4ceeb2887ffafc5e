package runnerctl_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/runnerctl"
)

// TestPut: a file is written with its folder, is not written again, and is restored if the agent changed it.
func TestPut(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	b := newBoxes(t)
	vm := b.create("put")
	ctl := runnerctl.New(b, "")
	file := filepath.Join(vm.Facts[fleet.FactHome], "attachments", "it's.png")
	put := func() {
		t.Helper()
		if err := ctl.Put(ctx, vm.Name, file, []byte("\x89PNG")); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != "\x89PNG" {
			t.Fatalf("got %q, error %v", got, err)
		}
	}
	put()
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	put()
	if info, err := os.Stat(file); err != nil || !info.ModTime().Before(old.Add(time.Minute)) {
		t.Errorf("written again: %v, error %v", info, err)
	}
	if err := os.WriteFile(file, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	put()
}
