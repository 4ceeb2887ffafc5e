package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/disktest"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
)

// runOnce plays a run to its end and reports it.
func runOnce(t *testing.T, dir string) runner.Status {
	t.Helper()
	root := runner.Root(filepath.Join(dir, "errand"))
	spec := shell("a", "echo one; echo two; echo three")
	spec.Dir = t.TempDir()
	startIn(t, root, spec)
	var status runner.Status
	until(t, "the run has ended", func() bool {
		var err error
		if status, err = runner.StatusOf(root, "a"); err != nil {
			t.Fatal(err)
		}
		return status.State == runner.StateExited
	})
	return status
}

// TestPowerCut: after a power cut, a run with an exit has its complete log, and a run whose end was reported has its
// exit.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	ends := 0
	disktest.Run(t, disktest.Disk{
		Play: func(t *testing.T, dir string) {
			status := runOnce(t, dir)
			if status.Exit.Cause != runlog.CauseExited {
				t.Errorf("%+v", status.Exit)
			}
			disktest.Say("ended")
		},
		Check: func(t *testing.T, dir string, said []string) {
			run := filepath.Join(dir, "errand", "runs", "a")
			var exit runlog.Exit
			data, err := os.ReadFile(filepath.Join(run, "exit.json"))
			if errors.Is(err, os.ErrNotExist) && len(said) == 0 {
				return
			}
			if err = errors.Join(err, json.Unmarshal(data, &exit)); err != nil {
				t.Errorf("the exit of a run that has ended: %v", err)
				return
			}
			ends++
			log, err := os.ReadFile(filepath.Join(run, "events.jsonl"))
			if lines := int64(bytes.Count(log, []byte("\n"))); err != nil || lines != exit.LastSeq || lines < 3 {
				t.Errorf("the log of a run that has ended has %d of %d lines: %v", lines, exit.LastSeq, err)
			}
			if _, err := os.Stat(filepath.Join(run, "spec.json")); err != nil {
				t.Errorf("what was to be run: %v", err)
			}
			var out bytes.Buffer
			if err := runner.Follow(context.WithoutCancel(t.Context()), runner.Root(filepath.Join(dir, "errand")), "a", 0, &out); err != nil || !strings.Contains(out.String(), "three") {
				t.Errorf("followed after the power cut: %v %s", err, &out)
			}
		},
	})
	if ends == 0 {
		t.Error("no run has ended")
	}
}

// TestFailingCalls: a run whose log cannot be synced or closed reports that in its exit. An exit that cannot be written
// is never partial: the run is found lost.
func TestFailingCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind disktest.Kind
		file string
		want string // in the exit's message
	}{
		"log synced":  {disktest.Sync, "events.jsonl", "input/output error"},
		"log closed":  {disktest.Close, "events.jsonl", "input/output error"},
		"log written": {disktest.Write, "events.jsonl", "input/output error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disktest.Run(t, disktest.Disk{
				Play: func(t *testing.T, dir string) {
					status := runOnce(t, dir)
					if !strings.Contains(status.Exit.Message, test.want) {
						t.Errorf("%+v", status.Exit)
					}
				},
				Fail: func(c disktest.Call, _ []string) syscall.Errno {
					if c.Kind == test.kind && filepath.Base(c.Path) == test.file {
						return syscall.EIO
					}
					return 0
				},
			})
		})
	}
}

// TestFailingStart: a run whose files cannot be written is not started, and can be started when the disk works again.
func TestFailingStart(t *testing.T) {
	t.Parallel()
	for _, kind := range []disktest.Kind{disktest.Write, disktest.Sync, disktest.Rename, disktest.Mkdir, disktest.Create} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			disktest.Run(t, disktest.Disk{
				Play: func(t *testing.T, dir string) {
					spec := shell("a", "echo one")
					spec.Dir = t.TempDir()
					if _, err := runner.Start(testContext(t), runner.Root(filepath.Join(dir, "errand")), spec); !errors.Is(err, syscall.ENOSPC) {
						t.Fatalf("started: %v", err)
					}
					disktest.Say("mended")
					if status := runOnce(t, dir); status.Exit.Cause != runlog.CauseExited {
						t.Errorf("%+v", status.Exit)
					}
				},
				Fail: func(c disktest.Call, said []string) syscall.Errno {
					if len(said) == 0 && c.Kind == kind {
						return syscall.ENOSPC
					}
					return 0
				},
			})
		})
	}
}
