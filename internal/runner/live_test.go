package runner_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/maven"
	"github.com/errand-bot/errand/internal/runner/proc"
)

// become replaces sudo and does not change the user.
func become() []string { return []string{"env", "--"} }

// asOther is a run of another user.
func asOther(t *testing.T, isolation proc.Isolation, script string) runner.Spec {
	t.Helper()
	spec := shell("a", script)
	spec.Become, spec.Home, spec.Isolation = become(), t.TempDir(), isolation
	return spec
}

// TestMavenGetsTheProxy: a run with errand's proxy finds settings for Maven in the home, unless a file is there, and a run without it finds none.
func TestMavenGetsTheProxy(t *testing.T) {
	t.Parallel()
	for _, mine := range []bool{false, true} {
		spec := asOther(t, "", "cat .m2/settings.xml")
		spec.Dir = spec.Home
		path := filepath.Join(spec.Home, maven.Path)
		if _, exit := follow(t, start(t, spec), "a", 0); exit.Code == 0 {
			t.Error("a run without a proxy has settings of Maven")
		}
		want := "      <port>9413</port>"
		if mine {
			want = "mine"
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("mine\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		spec.Env = map[string]string{"HTTPS_PROXY": "http://run:x@127.0.0.1:9413", maven.PasswordVariable: "x"}
		lines, _ := follow(t, start(t, spec), "a", 0)
		if got := texts(lines); !slices.Contains(got, "stdout: "+want) || mine && len(got) > 1 {
			t.Errorf("settings that existed: %v; got %q", mine, got)
		}
	}
}

// TestRecordsBelongToTheRunnerUser: for a run with its own user, log, exit and spec belong to the runner, and files and input to
// that user, whose directories the command gets.
func TestRecordsBelongToTheRunnerUser(t *testing.T) {
	t.Parallel()
	spec := asOther(t, "", "cat; echo $ROOT; ls $RUN; echo made >$RUN/made")
	spec.Stdin, spec.Env = "prompt\n", map[string]string{"ROOT": "{root}", "RUN": "{run_dir}"}
	spec.Files = []runner.File{{Path: "settings", Content: []byte("x")}, {Path: "~/at-home", Content: []byte("y")}}
	root := start(t, spec)
	lines, exit := follow(t, root, "a", 0)
	theirs := runner.Root(filepath.Join(spec.Home, ".errand"))
	want := []string{"stdout: prompt", "stdout: " + string(theirs), "stdout: settings", "stdout: stdin"}
	if diff := cmp.Diff(want, texts(lines)); diff != "" || exit.Code != 0 {
		t.Errorf("lines (-want +got):\n%s%+v", diff, exit)
	}
	until(t, "the reserved space is freed, after the exit is written", func() bool {
		_, err := os.Stat(filepath.Join(root.RunDir("a"), "reserve"))
		return errors.Is(err, fs.ErrNotExist)
	})
	for dir, names := range map[string][]string{
		string(root):       {"begun", "runs", "work"},
		root.RunDir("a"):   {"alive.lock", "events.jsonl", "exit.json", "isolation", "spec.json", "supervisor.log"},
		theirs.RunDir("a"): {"made", "settings", "stdin"},
		spec.Home:          {".errand", "at-home"},
	} {
		var got []string
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if diff := cmp.Diff(names, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", dir, diff)
		}
	}
}

// TestSetUpOnceAsAnother: the success of a workspace's set-up is recorded in a place that only the other user can read.
func TestSetUpOnceAsAnother(t *testing.T) {
	t.Parallel()
	spec := asOther(t, "", "echo work")
	spec.Setup = []runner.SetupCommand{{Command: "echo setting up"}}
	root := start(t, spec)
	follow(t, root, "a", 0)
	spec.ID, spec.Dir = "b", filepath.Join(string(root), "work")
	startIn(t, root, spec)
	lines, _ := follow(t, root, "b", 0)
	if diff := cmp.Diff([]string{"stdout: work"}, texts(lines)); diff != "" {
		t.Errorf("the second run (-want +got):\n%s", diff)
	}
}

// TestEndsWithoutLive: an agent that kills the process between it and the runner ends its run, and none of its
// processes remain.
func TestEndsWithoutLive(t *testing.T) {
	t.Parallel()
	script, mark := escapee(t)
	root := start(t, asOther(t, proc.Subreaper, script+"\necho last; kill -KILL $PPID; exec sleep 1000"))
	lines, exit := follow(t, root, "a", 0)
	if diff := cmp.Diff([]string{"stdout: last"}, texts(lines)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if exit.Cause != runlog.CauseExited || exit.Code != 137 || exit.Signal != "killed" || exit.LastSeq != 1 {
		t.Errorf("exit %+v", exit)
	}
	if pids := running(t, mark); len(pids) > 0 {
		t.Errorf("%d processes outlived the run", len(pids))
	}
}

// TestProcessesEndWithTheSupervisor: if the supervisor dies, all processes that it started as another user end.
func TestProcessesEndWithTheSupervisor(t *testing.T) {
	t.Parallel()
	for _, isolation := range []proc.Isolation{"", proc.Subreaper} {
		t.Run(string(isolation), func(t *testing.T) {
			t.Parallel()
			script, mark := escapee(t)
			root := start(t, asOther(t, isolation, script+"\nexec sleep 1000"))
			until(t, "the escapee runs", func() bool { return len(running(t, "sleep\x00"+mark)) > 0 })
			supervisors := running(t, "supervise\x00--root\x00"+string(root)+"\x00")
			if len(supervisors) != 1 {
				t.Fatalf("%d supervisors", len(supervisors))
			}
			if err := syscall.Kill(supervisors[0], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if _, exit := follow(t, root, "a", 0); exit.Cause != runlog.CauseLost {
				t.Errorf("exit %+v", exit)
			}
			if pids := running(t, mark); len(pids) > 0 {
				t.Errorf("%d processes outlived the run", len(pids))
			}
		})
	}
}

// TestStopAnother: a run of another user is interrupted, and killed if it does not end.
func TestStopAnother(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"obeys":   "trap 'echo last word; exit 9' INT; echo ready; while :; do sleep 0.05; done",
		"refuses": "trap '' INT TERM HUP; echo ready; while :; do sleep 0.05; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := asOther(t, "", script)
			if name == "refuses" {
				spec.Grace = 1
			}
			root := start(t, spec)
			until(t, "the run is ready", func() bool {
				data, err := os.ReadFile(filepath.Join(root.RunDir("a"), "events.jsonl"))
				return err == nil && strings.Contains(string(data), "ready")
			})
			exit, err := runner.Stop(testContext(t), root, "a", "enough")
			want := map[string]int{"obeys": 9, "refuses": 137}[name]
			if err != nil || exit.Cause != runlog.CauseStopped || exit.Code != want || exit.Message != "enough" {
				t.Errorf("%+v, %v", exit, err)
			}
		})
	}
}

// TestCannotBecome: a run whose user is unavailable is not started, and the error contains the output of sudo.
func TestCannotBecome(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		become []string
		want   string
	}{
		"refused": {[]string{"sh", "-c", "echo you may not >&2; exit 1"}, "you may not"},
		"absent":  {[]string{"no-such-sudo"}, "no-such-sudo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := asOther(t, "", "true")
			spec.Become, spec.Dir = test.become, t.TempDir()
			root := runner.Root(t.TempDir())
			if _, err := runner.Start(testContext(t), root, spec); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("started: %v", err)
			}
			if status, err := runner.StatusOf(root, "a"); err != nil || status.State != runner.StateUnknown {
				t.Errorf("it is %+v, %v", status, err)
			}
		})
	}
	spec := asOther(t, "", "true")
	spec.Home, spec.Dir = "", "/"
	if err := spec.Validate(); err == nil {
		t.Error("another user without a home")
	}
}
