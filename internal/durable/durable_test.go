package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/disktest"
	"github.com/errand-bot/errand/internal/durable"
)

// write creates a folder and writes a file in it twice, and reports each completed step.
func write(t *testing.T, dir string) {
	dir = filepath.Join(dir, "a", "b")
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	disktest.Say("folder")
	for _, word := range []string{"first", "second"} {
		if err := durable.WriteFile(filepath.Join(dir, "file"), []byte(strings.Repeat(word, 3000)), 0o600); err != nil {
			t.Fatal(err)
		}
		disktest.Say(word)
	}
}

// is checks that the file is complete and is the last one that was reported as stored, or the next one.
func is(t *testing.T, dir string, said []string) {
	t.Helper()
	if len(said) == 0 {
		return
	}
	if info, err := os.Stat(filepath.Join(dir, "a", "b")); err != nil || !info.IsDir() {
		t.Errorf("the folder is lost: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "a", "b", "file"))
	first, second := string(data) == strings.Repeat("first", 3000), string(data) == strings.Repeat("second", 3000)
	switch last := said[len(said)-1]; {
	case errors.Is(err, os.ErrNotExist) && last == "folder":
	case !first && !second:
		t.Errorf("the file has %d bytes: %v", len(data), err)
	case last == "second" && first:
		t.Error("the file is the old one")
	}
}

// TestPowerCut: files that were reported as written are complete after a power cut.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	disktest.Run(t, disktest.Disk{Play: write, Check: is})
}

// TestFailingCalls makes each call fail in turn: the error is reported, the old file stays, and no temporary file is
// left.
func TestFailingCalls(t *testing.T) {
	t.Parallel()
	for errno, kinds := range map[syscall.Errno][]disktest.Kind{
		syscall.ENOSPC: {disktest.Create, disktest.Write, disktest.Mkdir, disktest.Rename},
		syscall.EIO:    {disktest.Create, disktest.Write, disktest.Mkdir, disktest.Rename, disktest.Sync, disktest.Close},
		syscall.EDQUOT: {disktest.Close},
	} {
		for _, kind := range kinds {
			t.Run(errno.Error()+" "+string(kind), func(t *testing.T) {
				t.Parallel()
				disktest.Run(t, disktest.Disk{
					Play: func(t *testing.T, dir string) {
						if kind == disktest.Mkdir {
							disktest.Say("broken")
							if err := durable.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); !errors.Is(err, errno) {
								t.Fatalf("got error %v, want %v", err, errno)
							}
							disktest.Say("reported")
							return
						}
						write(t, dir)
						disktest.Say("broken")
						path := filepath.Join(dir, "a", "b", "file")
						if err := durable.WriteFile(path, []byte("third"), 0o600); !errors.Is(err, errno) {
							t.Fatalf("got error %v, want %v", err, errno)
						}
						if data, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(data), "second") {
							t.Errorf("the file holds %.20s, error %v", data, err)
						}
						if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
							t.Errorf("left behind: %v, %v", left, err)
						}
						disktest.Say("reported")
					},
					Fail: func(c disktest.Call, said []string) syscall.Errno {
						if len(said) > 0 && said[len(said)-1] == "broken" && c.Kind == kind {
							return errno
						}
						return 0
					},
				})
			})
		}
	}
}

// A file that cannot take its place leaves nothing.
func TestFileDoesNotReplaceFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "key"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFile(filepath.Join(dir, "key"), []byte("x"), 0o600); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

// TestMkdirAllOnAFile: MkdirAll fails if a file is in place of the folder or of a parent.
func TestMkdirAllOnAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if err := durable.MkdirAll(dir, 0o700); err == nil {
			t.Errorf("%s was treated as a folder", dir)
		}
	}
}
