package disktest_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/disktest"
)

// put writes a file; each letter of how is a step: w writes, s syncs the file, r renames it into place, d syncs the
// directory.
func put(t *testing.T, dir, how string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "new"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range how {
		switch step {
		case 'w':
			_, err = f.WriteString("whole")
		case 's':
			err = f.Sync()
		case 'r':
			err = os.Rename(f.Name(), filepath.Join(dir, "file"))
		case 'd':
			var d *os.File
			if d, err = os.Open(dir); err == nil {
				err = errors.Join(d.Sync(), d.Close())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	disktest.Say("stored")
}

// TestPowerCut: a power cut leaves the synced state of files and directories.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	for how, want := range map[string][]string{
		"wsrd": {"none", "none", "whole"},
		"wrd":  {"none", "empty", "empty"},
		"wsr":  {"none", "none", "lost"},
		"wrsd": {"none", "empty", "whole"},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			var found []string
			disktest.Run(t, disktest.Disk{
				Play: func(t *testing.T, dir string) { put(t, dir, how) },
				Check: func(_ *testing.T, dir string, said []string) {
					is := "none"
					data, err := os.ReadFile(filepath.Join(dir, "file"))
					switch {
					case err == nil && string(data) == "":
						is = "empty"
					case err == nil:
						is = string(data)
					case len(said) > 0:
						is = "lost"
					}
					found = append(found, is)
				},
			})
			for _, w := range want {
				if !slices.Contains(found, w) {
					t.Errorf("got no moment at which the file is %s, only %q", w, found)
				}
			}
			if how == "wsrd" && (slices.Contains(found, "empty") || slices.Contains(found, "lost")) {
				t.Errorf("got %q for a correctly stored file", found)
			}
		})
	}
}

// TestFailedSync: data written before a failed sync is lost even if the next sync succeeds, unless it is written again.
func TestFailedSync(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"synced again": false, "written and synced again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			syncs, last := 0, ""
			disktest.Run(t, disktest.Disk{
				Play: func(t *testing.T, dir string) {
					f, err := os.Create(filepath.Join(dir, "file"))
					if err != nil {
						t.Fatal(err)
					}
					_, err = f.WriteAt([]byte("whole"), 0)
					if err != nil || !errors.Is(f.Sync(), syscall.EIO) {
						t.Fatal("got no error from the sync")
					}
					if again {
						_, err = f.WriteAt([]byte("whole"), 0)
					}
					if err := errors.Join(err, f.Sync()); err != nil {
						t.Fatal(err)
					}
				},
				Fail: func(c disktest.Call, _ []string) syscall.Errno {
					if c.Kind != disktest.Sync {
						return 0
					}
					if syncs++; syncs == 1 {
						return syscall.EIO
					}
					return 0
				},
				Check: func(_ *testing.T, dir string, _ []string) {
					data, _ := os.ReadFile(filepath.Join(dir, "file"))
					last = string(data)
				},
			})
			if (last == "whole") != again {
				t.Errorf("got content %q", last)
			}
		})
	}
}

// TestWritesToAFullDiskFail: writes to a full file system fail, and succeed after space is freed.
func TestWritesToAFullDiskFail(t *testing.T) {
	t.Parallel()
	disktest.Small(t, 1<<20, func(t *testing.T, dir string) {
		free := disktest.Fill(t, dir, 0)
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, []byte(strings.Repeat("x", 5000)), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got error %v", err)
		}
		free()
		if err := os.WriteFile(path, []byte(strings.Repeat("x", 5000)), 0o600); err != nil {
			t.Error(err)
		}
	})
}
