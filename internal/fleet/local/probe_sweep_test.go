package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
)

// TestOldProbesAreSwept leaves the probe of a process that lives alone.
func TestOldProbesAreSwept(t *testing.T) {
	t.Parallel()
	p := &Provider{cfg: Config{Dir: t.TempDir()}}
	dead := filepath.Join(p.cfg.Dir, boxesDir, probePrefix+"1", "home")
	alive := filepath.Join(p.cfg.Dir, boxesDir, probePrefix+"2")
	for _, dir := range []string{dead, alive} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	lock := flock.New(filepath.Join(alive, probeLock))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	if err := p.sweepProbes(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(dead)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("dead probe: got error %v", err)
	}
	if _, err := os.Stat(alive); err != nil {
		t.Errorf("live probe: got error %v", err)
	}
}
