package runner_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/proc"
)

// escapee starts a process that leaves its parent's session and group and is found by its name.
func escapee(t *testing.T) (script, mark string) {
	t.Helper()
	mark = "1000." + strconv.FormatInt(time.Now().UnixNano(), 10)
	return "setsid nohup sh -c 'trap \"\" INT TERM HUP; sleep " + mark + "; sleep " + mark + "' >/dev/null 2>&1 &\n" +
		"until grep -qs " + mark + " /proc/[0-9]*/cmdline; do sleep 0.01; done", mark
}

// running counts the processes whose command line holds a mark.
func running(t *testing.T, mark string) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), mark) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestProcessesEndWithTheirRun(t *testing.T) {
	t.Parallel()
	for _, isolation := range []proc.Isolation{"", proc.Subreaper} {
		for name, after := range map[string]string{"normal exit": "exit 0", "stop": "echo ready; exec sleep 1000"} {
			t.Run(name+"/"+string(isolation), func(t *testing.T) {
				t.Parallel()
				script, mark := escapee(t)
				spec := shell("a", script+"\n"+after)
				spec.Isolation = isolation
				root := start(t, spec)
				if name == "stop" {
					until(t, "the escapee runs", func() bool { return len(running(t, "sleep\x00"+mark)) > 0 })
					if exit, err := runner.Stop(testContext(t), root, "a", "enough"); err != nil || exit.Cause != runlog.CauseStopped || exit.Message != "enough" {
						t.Errorf("stop: %+v, %v", exit, err)
					}
				}
				_, exit := follow(t, root, "a", 0)
				if pids := running(t, mark); len(pids) > 0 {
					t.Errorf("%d processes outlived the run (%+v)", len(pids), exit)
				}
			})
		}
	}
}

func TestStopKillsWhatIgnoresInterrupts(t *testing.T) {
	t.Parallel()
	spec := shell("a", "trap '' INT TERM; echo ready; while :; do sleep 0.05; done")
	spec.Grace = 100 * time.Millisecond
	root := start(t, spec)
	until(t, "the run is ready", func() bool {
		data, err := os.ReadFile(filepath.Join(root.RunDir("a"), "events.jsonl"))
		return err == nil && strings.Contains(string(data), "ready")
	})
	first, err := runner.Stop(testContext(t), root, "a", "enough")
	if err != nil {
		t.Fatal(err)
	}
	if first.Cause != runlog.CauseStopped || first.Signal != "killed" {
		t.Errorf("exit %+v", first)
	}
	again, err := runner.Stop(testContext(t), root, "a", "other")
	if diff := cmp.Diff(first, again); err != nil || diff != "" {
		t.Errorf("stopped again: %v, %s", err, diff)
	}
}

// killSupervisor simulates a crash of the supervisor.
func killSupervisor(t *testing.T, root runner.Root) {
	t.Helper()
	pids := running(t, "supervise\x00--root\x00"+string(root)+"\x00")
	if len(pids) != 1 {
		t.Fatalf("found supervisors %v", pids)
	}
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestLostRunIsReported(t *testing.T) {
	t.Parallel()
	for _, isolation := range []proc.Isolation{"", proc.Subreaper} {
		t.Run(string(isolation), func(t *testing.T) {
			t.Parallel()
			script, mark := escapee(t)
			spec := shell("a", script+"\necho one; echo two; exec sleep 1000")
			spec.Isolation = isolation
			root := start(t, spec)
			until(t, "both lines are logged", func() bool {
				data, err := os.ReadFile(filepath.Join(root.RunDir("a"), "events.jsonl"))
				return err == nil && strings.Contains(string(data), "two")
			})
			if status, err := runner.StatusOf(root, "a"); err != nil || status.State != runner.StateRunning {
				t.Errorf("status %+v, %v", status, err)
			}
			neighbour := start(t, shell("a", "exec sleep 1000")) // of the same name
			killSupervisor(t, root)
			until(t, "the run is seen to be lost", func() bool {
				status, err := runner.StatusOf(root, "a")
				return err == nil && status.State == runner.StateLost
			})
			lines, exit := follow(t, root, "a", 1)
			if diff := cmp.Diff([]string{"stdout: two"}, texts(lines)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if exit.Cause != runlog.CauseLost || exit.LastSeq != 2 {
				t.Errorf("exit %+v", exit)
			}
			if pids := running(t, mark); len(pids) > 0 {
				t.Errorf("%d processes outlived the supervisor", len(pids))
			}
			if status, err := runner.StatusOf(neighbour, "a"); err != nil || status.State != runner.StateRunning {
				t.Errorf("the neighbour is %+v, %v", status, err)
			}
			if status, err := runner.StatusOf(root, "a"); err != nil || status.State != runner.StateExited {
				t.Errorf("status %+v, %v", status, err)
			}
		})
	}
}
