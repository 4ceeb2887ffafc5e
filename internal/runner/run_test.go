package runner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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
	"github.com/errand-bot/errand/internal/runner/tetherd"
)

// patience is how long a test waits for what should take a moment.
const patience = 60 * time.Second

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// until polls a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
	}
}

func shell(id, script string) runner.Spec {
	return runner.Spec{ID: id, Argv: []string{"sh", "-c", script}, Grace: 30 * time.Second}
}

// start starts a run in a new root, and makes sure that it does not outlive the test.
func start(t *testing.T, spec runner.Spec) runner.Root {
	t.Helper()
	root := runner.Root(t.TempDir())
	startIn(t, root, spec)
	return root
}

func startIn(t *testing.T, root runner.Root, spec runner.Spec) runner.Started {
	t.Helper()
	if spec.Dir == "" {
		spec.Dir = filepath.Join(string(root), "work")
	}
	started, err := runner.Start(testContext(t), root, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := runner.Stop(ctx, root, spec.ID, "the test is over"); err != nil {
			t.Error(err)
		}
	})
	return started
}

// follow reads a run to its end.
func follow(t *testing.T, root runner.Root, id string, from int64) ([]runlog.Line, runlog.Exit) {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	r, w := io.Pipe()
	go func() { w.CloseWithError(runner.Follow(ctx, root, id, from, w)) }()
	defer r.Close()
	defer cancel()
	var lines []runlog.Line
	for reader := runlog.NewReader(r, from); ; {
		record, err := reader.Next()
		switch {
		case err != nil:
			t.Fatalf("follow: %v", err)
		case record.Line != nil:
			lines = append(lines, *record.Line)
		case record.Exit != nil:
			return lines, *record.Exit
		}
	}
}

// texts returns the lines as "stream: text".
func texts(lines []runlog.Line) []string {
	var all []string
	for _, line := range lines {
		text := string(line.Stream) + ": " + line.Text
		if line.Cut > 0 {
			text += fmt.Sprintf(" (cut %d)", line.Cut)
		}
		all = append(all, text)
	}
	return all
}

// runs are runs with what they leave, whatever holds their processes together.
var runs = map[string]struct {
	spec  runner.Spec
	lines []string
	exit  runlog.Exit
}{
	"output, error and code": {
		spec:  shell("a", "echo one; echo two >&2; exit 3"),
		lines: []string{"stdout: one", "stderr: two"},
		exit:  runlog.Exit{Cause: runlog.CauseExited, Code: 3},
	},
	"stdin is the prompt and ends": {
		spec:  runner.Spec{ID: "a", Argv: []string{"cat"}, Stdin: "line\nno end"},
		lines: []string{"stdout: line", "stdout: no end"},
		exit:  runlog.Exit{Cause: runlog.CauseExited},
	},
	"killed by itself": {
		spec: shell("a", "kill -9 $$"),
		exit: runlog.Exit{Cause: runlog.CauseExited, Code: 137, Signal: "killed"},
	},
	"command not found": {
		spec: runner.Spec{ID: "a", Argv: []string{"no-such-command"}},
		exit: runlog.Exit{Cause: runlog.CauseStartFailed, Code: 127,
			Message: `command could not be started: find "no-such-command" in PATH: file does not exist`},
	},
	"environment and files": {
		spec: runner.Spec{
			ID: "a", Argv: []string{"sh", "-c", `echo "$GREETING $ERRAND_RUN"; cat "$FILE"; stat -c %a "$1"`, "sh", "{run_dir}/x/file"},
			Env:   map[string]string{"GREETING": "hello", "FILE": "{run_dir}/x/file"},
			Files: []runner.File{{Path: "x/file", Mode: 0o750, Content: []byte("content\n")}},
		},
		lines: []string{"stdout: hello a", "stdout: content", "stdout: 750"},
		exit:  runlog.Exit{Cause: runlog.CauseExited},
	},
	"long lines are cut": {
		spec: func() runner.Spec {
			s := shell("a", `printf '0123456789\nabc\n'; printf '0123456789'`)
			s.MaxLine = 4
			return s
		}(),
		lines: []string{"stdout: 0123 (cut 6)", "stdout: abc", "stdout: 0123 (cut 6)"},
		exit:  runlog.Exit{Cause: runlog.CauseExited},
	},
	"set-up comes first": {
		spec: func() runner.Spec {
			s := shell("a", "cat made")
			s.Setup = []runner.SetupCommand{{Command: "echo by set-up > made; echo ok"}}
			return s
		}(),
		lines: []string{"runner: setup: echo by set-up > made; echo ok", "runner: ok", "stdout: by set-up"},
		exit:  runlog.Exit{Cause: runlog.CauseExited},
	},
	"set-up fails": {
		spec: func() runner.Spec {
			s := shell("a", "echo never")
			s.Setup = []runner.SetupCommand{{Command: "true"}, {Command: "echo why; exit 4"}, {Command: "echo never"}}
			return s
		}(),
		lines: []string{"runner: setup: true", "runner: setup: echo why; exit 4", "runner: why"},
		exit: runlog.Exit{Cause: runlog.CauseSetupFailed, Code: 4,
			Message: "setup command failed (exit code 4): echo why; exit 4\nwhy"},
	},
	"set-up takes too long": {
		spec: func() runner.Spec {
			s := shell("a", "echo never")
			s.Setup = []runner.SetupCommand{{Command: "exec sleep 1000", Timeout: 50 * time.Millisecond}}
			return s
		}(),
		lines: []string{"runner: setup: exec sleep 1000", "runner: The run is being ended: its time of 50ms is up."},
		exit: runlog.Exit{Cause: runlog.CauseSetupFailed, Code: 130, Signal: "interrupt",
			Message: "setup command failed (its time of 50ms was up): exec sleep 1000\nThe run is being ended: its time of 50ms is up."},
	},
	"duration": {
		spec: func() runner.Spec {
			s := shell("a", `trap 'echo last word; exit 9' INT; while :; do sleep 0.05; done`)
			s.Duration = 300 * time.Millisecond
			return s
		}(),
		lines: []string{"runner: The run is being ended: its time of 300ms is up.", "stdout: last word"},
		exit:  runlog.Exit{Cause: runlog.CauseDuration, Code: 9},
	},
	"stalled": {
		spec: func() runner.Spec {
			s := shell("a", "exec sleep 1000")
			s.Stall = 300 * time.Millisecond
			return s
		}(),
		lines: []string{"runner: The run is being ended: no output, no open request and no CPU use for 300ms."},
		exit:  runlog.Exit{Cause: runlog.CauseStalled, Code: 130, Signal: "interrupt"},
	},
	"CPU use is a sign of life": {
		spec: func() runner.Spec {
			s := shell("a", "trap 'exit 0' INT; while :; do :; done")
			s.Stall, s.Duration = 600*time.Millisecond, 1800*time.Millisecond
			return s
		}(),
		lines: []string{"runner: The run is being ended: its time of 1.8s is up."},
		exit:  runlog.Exit{Cause: runlog.CauseDuration},
	},
}

func TestRun(t *testing.T) {
	t.Parallel()
	for name, test := range runs {
		for _, isolation := range []proc.Isolation{"", proc.Subreaper} {
			t.Run(name+"/"+string(isolation), func(t *testing.T) {
				t.Parallel()
				spec := test.spec
				spec.Isolation = isolation
				lines, exit := follow(t, start(t, spec), "a", 0)
				if exit.StartedAt.IsZero() || exit.EndedAt.Before(exit.StartedAt) {
					t.Errorf("ran from %s to %s", exit.StartedAt, exit.EndedAt)
				}
				want := test.exit
				want.StartedAt, want.EndedAt, want.LastSeq = exit.StartedAt, exit.EndedAt, int64(len(lines))
				if diff := cmp.Diff(want, exit); diff != "" {
					t.Errorf("exit (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(byStream(test.lines), byStream(texts(lines))); diff != "" {
					t.Errorf("lines (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// byStream groups lines, because two pipes have no order among them.
func byStream(lines []string) map[string][]string {
	groups := make(map[string][]string)
	for _, line := range lines {
		stream, text, _ := strings.Cut(line, ": ")
		groups[stream] = append(groups[stream], text)
	}
	return groups
}

func TestHugeLine(t *testing.T) {
	t.Parallel()
	spec := shell("a", `head -c 8388608 /dev/zero | tr '\0' x; echo; echo end`)
	lines, _ := follow(t, start(t, spec), "a", 0)
	if len(lines) != 2 || len(lines[0].Text) != runner.DefaultMaxLine || lines[0].Cut != 8<<20-runner.DefaultMaxLine {
		t.Fatalf("%d lines, the first of %d bytes", len(lines), len(lines[0].Text))
	}
	if lines[1].Text != "end" {
		t.Errorf("the last line is %q", lines[1].Text)
	}
}

func TestFloodKeepsTheEnd(t *testing.T) {
	t.Parallel()
	spec := shell("a", "seq 1 1000")
	spec.MaxLog = 100
	lines, exit := follow(t, start(t, spec), "a", 0)
	all := texts(lines)
	if len(all) > 150 || all[0] != "stdout: 1" || all[len(all)-1] != "stdout: 1000" {
		t.Errorf("%d lines from %q to %q", len(all), all[0], all[len(all)-1])
	}
	if !strings.Contains(strings.Join(all, "\n"), "lines were left out here.") {
		t.Error("nothing says that lines were left out")
	}
	if exit.LastSeq != lines[len(lines)-1].Seq {
		t.Errorf("last is %d, not %d", exit.LastSeq, lines[len(lines)-1].Seq)
	}
}

func TestStartTwice(t *testing.T) {
	t.Parallel()
	root := start(t, shell("a", "echo once >> ../count"))
	for range 3 {
		if started := startIn(t, root, shell("a", "echo other >> ../count")); !started.Already || started.Started {
			t.Errorf("started again: %+v", started)
		}
	}
	follow(t, root, "a", 0)
	data, err := os.ReadFile(filepath.Join(string(root), "count"))
	if err != nil || string(data) != "once\n" {
		t.Errorf("ran %q, %v", data, err)
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*runner.Spec)
		want   string
	}{
		"id leads elsewhere": {func(s *runner.Spec) { s.ID = "../x" }, "run id"},
		"no id":              {func(s *runner.Spec) { s.ID = "" }, "run id"},
		"no command":         {func(s *runner.Spec) { s.Argv = nil }, "argv"},
		"no workspace":       {func(s *runner.Spec) { s.Dir = "" }, "dir"},
		"negative duration":  {func(s *runner.Spec) { s.Duration = -1 }, "duration"},
		"unknown isolation":  {func(s *runner.Spec) { s.Isolation = "magic" }, "isolation"},
		"mode of a file":     {func(s *runner.Spec) { s.Files = []runner.File{{Path: "x", Mode: 0o4755}} }, "files[0]"},
		"empty set-up":       {func(s *runner.Spec) { s.Setup = []runner.SetupCommand{{}} }, "setup[0]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := shell("a", "true")
			spec.Dir = "/"
			test.change(&spec)
			_, err := runner.Start(testContext(t), runner.Root(t.TempDir()), spec)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one about %q", err, test.want)
			}
		})
	}
}

func TestSetupRunsOncePerWorkspace(t *testing.T) {
	t.Parallel()
	root := runner.Root(t.TempDir())
	for i, command := range []string{"echo >> n", "echo >> n", "echo >> n; true"} {
		spec := shell("run"+strconv.Itoa(i), "wc -l < n")
		spec.Setup = []runner.SetupCommand{{Command: command}}
		startIn(t, root, spec)
		lines, _ := follow(t, root, spec.ID, 0)
		want := []string{"1", "1", "2"}[i]
		if got := strings.TrimSpace(lines[len(lines)-1].Text); got != want {
			t.Errorf("after run %d set-up ran %s times, want %s", i, got, want)
		}
	}
}

func TestUnknownRun(t *testing.T) {
	t.Parallel()
	root := runner.Root(t.TempDir())
	if err := runner.Follow(testContext(t), root, "x", 0, io.Discard); !errors.Is(err, runner.ErrUnknownRun) {
		t.Errorf("follow: %v", err)
	}
	if _, err := runner.Stop(testContext(t), root, "x", ""); !errors.Is(err, runner.ErrUnknownRun) {
		t.Errorf("stop: %v", err)
	}
	if status, err := runner.StatusOf(root, "x"); err != nil || status.State != runner.StateUnknown {
		t.Errorf("status: %+v, %v", status, err)
	}
}

// escapee starts a process that leaves its parent's session and group and is told by its name.
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

func TestNothingOutlivesARun(t *testing.T) {
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

// killSupervisor does what a crash does.
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

func TestLost(t *testing.T) {
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

func TestFollowGoesOnWhereItWasCut(t *testing.T) {
	t.Parallel()
	root := start(t, shell("a", "for i in 1 2 3 4 5 6; do echo $i; sleep 0.05; done; until [ -e ../go ]; do sleep 0.01; done; echo 7"))
	ctx, cancel := context.WithCancel(testContext(t))
	r, w := io.Pipe()
	go func() { w.CloseWithError(runner.Follow(ctx, root, "a", 0, w)) }()
	reader := runlog.NewReader(r, 0)
	for reader.Last() < 3 {
		if _, err := reader.Next(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	_ = r.Close()
	if err := os.WriteFile(filepath.Join(string(root), "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	lines, exit := follow(t, root, "a", reader.Last())
	if diff := cmp.Diff([]string{"stdout: 4", "stdout: 5", "stdout: 6", "stdout: 7"}, texts(lines)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if exit.Cause != runlog.CauseExited || exit.LastSeq != 7 {
		t.Errorf("exit %+v", exit)
	}
}

func TestOpenRequestIsASignOfLife(t *testing.T) {
	t.Parallel()
	root := runner.Root(t.TempDir())
	ctx := testContext(t)
	status, err := tetherd.ServeDetached(ctx, string(root), tetherd.Config{Dir: root.TetherDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := tetherd.Stop(context.Background(), root.TetherDir()); err != nil {
			t.Error(err)
		}
	})
	conn, err := net.Dial("tcp", status.Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	spec := shell("a", "exec sleep 1000")
	spec.Stall, spec.Duration = 200*time.Millisecond, 1200*time.Millisecond
	startIn(t, root, spec)
	if _, exit := follow(t, root, "a", 0); exit.Cause != runlog.CauseDuration {
		t.Errorf("with an open request the run ended as %+v", exit)
	}
}
