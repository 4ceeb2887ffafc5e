package server

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/config"
)

// TestInitDeletesWhatWasAbandoned: a folder without a process goes, also one with read-only folders in it; a folder in use, one without the
// name or the marker, a file, and what a link points at stay.
func TestInitDeletesWhatWasAbandoned(t *testing.T) {
	tmp, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	kept := filepath.Join(elsewhere, "kept")
	for _, file := range []string{
		kept, filepath.Join(tmp, "errand-init-file"), filepath.Join(tmp, "errand-demo", "x"), filepath.Join(tmp, "errand-init-1", "a", "b"), filepath.Join(tmp, "errand-init-2", "mod", "b"),
		filepath.Join(tmp, "errand-init-1", initMarker), filepath.Join(tmp, "errand-init-2", initMarker), filepath.Join(tmp, "errand-init-notes", "mine"),
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(tmp, "errand-init-2", "mod"), 0o500); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(tmp, "errand-init-link")); err != nil {
		t.Fatal(err)
	}
	inUse, lock, err := initDir()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	i := &Init{s: &Server{cfg: config.Config{Deployment: "errand"}, opts: Options{Log: zerolog.New(&log)}}}
	i.deleteAbandoned(t.Context())
	names := func() (list []string) {
		entries, err := os.ReadDir(tmp)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			list = append(list, e.Name())
		}
		return list
	}
	want := []string{"errand-demo", "errand-init-file", "errand-init-link", "errand-init-notes", filepath.Base(inUse)}
	slices.Sort(want)
	if got := names(); !slices.Equal(got, want) || log.Len() > 0 {
		t.Errorf("got %q, want %q; log %s", got, want, &log)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if err := lock.Close(); err != nil { // as when its process is killed
		t.Fatal(err)
	}
	i.deleteAbandoned(t.Context())
	if got := names(); slices.Contains(got, filepath.Base(inUse)) {
		t.Errorf("got %q after the process ended", got)
	}
}

// TestInitSaysWhatItCannotDelete: a folder that cannot be deleted is named in the log, and does not keep init from working.
func TestInitSaysWhatItCannotDelete(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	if err := os.MkdirAll(filepath.Join(tmp, "errand-init-1", "local", "boxes"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tmp, "errand-init-1", initMarker), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	i := &Init{s: &Server{opts: Options{Log: zerolog.New(&log), BinDir: filepath.Join(tmp, "none")}}}
	i.deleteAbandoned(context.Background())
	if !strings.Contains(log.String(), "failed to delete what an interrupted errand init has left") || !strings.Contains(log.String(), "errand-init-1") {
		t.Errorf("log %q", &log)
	}
}
