package setup_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/disktest"
)

// TestFullDisk runs a setup again and again with a little more free space, from none to enough. Each failure says that the disk is full and what to
// do, and loses nothing: one App is created, no file is incomplete, and the last setup finishes with that App.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	const page, most = 4 << 10, 60
	disktest.Small(t, 4<<20, func(t *testing.T, dir string) {
		o := newOffice(t)
		o.dir = filepath.Join(dir, "errand")
		o.opts.Dir = o.dir
		o.opts.Skip = []string{"installation", "webhook", "repositories"}
		before := o.github.App().ID
		apps := map[int64]bool{}
		failures := 0
		for n := range most {
			free := disktest.Fill(t, dir, n*2*page)
			err := o.run()
			free()
			if id := o.github.App().ID; id != before {
				apps[id] = true
			}
			checkWhole(t, o.dir)
			if err == nil {
				break
			}
			failures++
			if text := err.Error(); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(text, "free some space in the file system of "+dir) || !strings.Contains(text, "run errand setup again") {
				t.Fatalf("%d bytes free: %v", n*2*page, err)
			}
		}
		if failures < 5 || len(apps) != 1 || !apps[o.load().GitHub.AppID] {
			t.Errorf("%d failures, Apps %v", failures, apps)
		}
	})
}

// checkWhole checks that each file of the setup that exists is complete, and that no temporary file is left.
func checkWhole(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		whole := len(text) == 0 == (e.Name() == "setup.lock")
		switch e.Name() {
		case "setup.json":
			whole = bytes.HasSuffix(text, []byte("}"))
		case "setup.reserve":
			whole = true
		}
		if !whole || strings.HasPrefix(e.Name(), ".new-") {
			t.Errorf("%s is incomplete: %q", e.Name(), text)
		}
	}
}

// TestReadOnlyDisk: on a file system that is mounted read-only, setup says so before it asks anything or creates an App.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	disktest.Small(t, 4<<20, func(t *testing.T, dir string) {
		for _, exists := range []bool{false, true} {
			o := newOffice(t)
			o.dir = filepath.Join(dir, "errand")
			o.opts.Dir = o.dir
			if exists {
				if err := os.Mkdir(o.dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			before := o.github.App().ID
			if err := syscall.Mount("none", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
			err := o.run()
			if err == nil || !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "choose another one with --dir") || !strings.Contains(err.Error(), "mounted read-only") || o.github.App().ID != before {
				t.Errorf("the folder exists: %v: %v", exists, err)
			}
			if err := syscall.Mount("none", dir, "", syscall.MS_REMOUNT, ""); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestReadOnlyFolder: a user who cannot write into the folder is told so, in the beginning and in the middle of a setup, which loses nothing.
func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("skipped: root can write into every folder; run as an ordinary user, this tests setup in a read-only one")
	}
	for name, c := range map[string]struct {
		begun bool // with an App and a configuration
		force bool
	}{"empty": {}, "complete": {begun: true, force: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.opts.Skip = []string{"installation", "webhook", "repositories"}
			if c.begun {
				if err := o.run(); err != nil {
					t.Fatal(err)
				}
			} else if err := os.MkdirAll(o.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			app := o.github.App().ID
			if err := os.Chmod(o.dir, 0o500); err != nil { //nolint:gosec // a folder
				t.Fatal(err)
			}
			o.opts.Force, o.answers["label"] = c.force, "another"
			err := o.run()
			if err == nil || !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "This user cannot write into "+o.dir) || !strings.Contains(err.Error(), "--dir") || o.github.App().ID != app {
				t.Errorf("read-only: %v", err)
			}
			if err := os.Chmod(o.dir, 0o700); err != nil { //nolint:gosec // a folder
				t.Fatal(err)
			}
			if err := o.run(); err != nil || o.load().Trigger.Label != "another" || c.begun && o.load().GitHub.AppID != app {
				t.Errorf("writable again: %v", err)
			}
		})
	}
}
