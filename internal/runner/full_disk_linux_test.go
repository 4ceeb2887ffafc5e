package runner_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
)

// A run whose log cannot be written is ended, because it could not be observed.
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

// inside runs a test again in its own namespaces, where it may mount.
const inside = "ERRAND_TEST_MAY_MOUNT"

// TestStartOnAFullDiskFails: on a disk without a free block, and without the reserve, a run whose supervisor is gone still ends,
// can be stopped, and reports the cause, repeatedly.
func TestStartOnAFullDiskFails(t *testing.T) {
	if os.Getenv(inside) == "" {
		t.Parallel()
		cmd := exec.Command(os.Args[0], "-test.run=^TestStartOnAFullDiskFails$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if (err != nil && cmd.ProcessState == nil) || bytes.Contains(out, []byte("may not mount")) {
			t.Skipf("SKIP: no mounts without root here: %v", err)
		}
		if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatalf("may not mount: %v", err)
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
	root := runner.Root(dir)
	run := root.RunDir("a")
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"spec.json", "alive.lock"} {
		if err := os.WriteFile(filepath.Join(run, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "hog"), make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the disk does not get full")
	}
	for range 2 {
		exit, err := runner.Stop(t.Context(), root, "a", "because")
		if err != nil || exit.Cause != runlog.CauseLost || !exit.DiskFull {
			t.Errorf("stopped: %+v, %v", exit, err)
		}
		var out bytes.Buffer
		if err := runner.Follow(context.WithoutCancel(t.Context()), root, "a", 0, &out); err != nil || !strings.Contains(out.String(), `"disk_full":true`) {
			t.Errorf("followed: %s, %v", out.String(), err)
		}
	}
	if _, err := os.Stat(filepath.Join(run, "stop")); err != nil {
		t.Errorf("nothing asks the supervisor to stop: %v", err)
	}
}
