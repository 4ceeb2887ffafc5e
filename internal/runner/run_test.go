package runner_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/proc"
)

// runs are specs with their expected results under every isolation.
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
		lines: []string{"runner: setup: exec sleep 1000", "runner: The run is being ended: it exceeded its time limit of 50ms."},
		exit: runlog.Exit{Cause: runlog.CauseSetupFailed, Code: 130, Signal: "interrupt",
			Message: "setup command failed (it exceeded its timeout of 50ms): exec sleep 1000\nThe run is being ended: it exceeded its time limit of 50ms."},
	},
	"duration": {
		spec: func() runner.Spec {
			s := shell("a", `trap 'echo last word; exit 9' INT; while :; do sleep 0.05; done`)
			s.Duration = 3 * time.Second
			return s
		}(),
		lines: []string{"runner: The run is being ended: it exceeded its time limit of 3s.", "stdout: last word"},
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
			s.Stall, s.Duration = 2*time.Second, 4500*time.Millisecond
			return s
		}(),
		lines: []string{"runner: The run is being ended: it exceeded its time limit of 4.5s."},
		exit:  runlog.Exit{Cause: runlog.CauseDuration},
	},
}

func TestRun(t *testing.T) {
	t.Parallel()
	for name, test := range runs {
		for _, isolation := range []proc.Isolation{"", proc.Subreaper, "other user"} {
			if isolation == "other user" && name == "CPU use is a sign of life" {
				continue // it takes its time, and is read alike: see proc.TreeCPU
			}
			t.Run(name+"/"+string(isolation), func(t *testing.T) {
				t.Parallel()
				spec := test.spec
				if spec.Isolation = isolation; isolation == "other user" {
					spec.Isolation, spec.Become, spec.Home = "", become(), t.TempDir()
				}
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
	spec := shell("a", "seq 1 10000")
	spec.MaxLog = 100
	lines, exit := follow(t, start(t, spec), "a", 0)
	all := texts(lines)
	if len(all) > 1200 || all[0] != "stdout: 1" || all[len(all)-1] != "stdout: 10000" {
		t.Errorf("%d lines from %q to %q", len(all), all[0], all[len(all)-1])
	}
	if !strings.Contains(strings.Join(all, "\n"), "lines were left out here.") {
		t.Error("nothing says that lines were left out")
	}
	if exit.LastSeq != lines[len(lines)-1].Seq {
		t.Errorf("last is %d, not %d", exit.LastSeq, lines[len(lines)-1].Seq)
	}
}

// TestLogIsBounded: a run's log on its VM stays within its limit plus the kept end, for any output of the agent or a
// set-up command.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	const limit = 100 << 10
	setUp := func(command string) runner.Spec {
		s := shell("a", "echo never")
		s.Setup = []runner.SetupCommand{{Command: command}}
		return s
	}
	for name, spec := range map[string]runner.Spec{
		"lines":               shell("a", "seq 1 100000; echo the end"),
		"empty lines":         shell("a", "yes '' | head -n 200000; echo the end"),
		"control codes":       shell("a", `head -c 2000000 /dev/zero | tr '\0' '\1' | fold -w 1000; echo; echo the end`),
		"by a set-up":         setUp("seq 1 100000; echo the end; exit 3"),
		"errors, by a set-up": setUp("seq 1 100000 >&2; echo the end >&2; exit 3"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec.MaxLog = limit
			root := start(t, spec)
			lines, exit := follow(t, root, "a", 0)
			info, err := os.Stat(filepath.Join(root.RunDir("a"), "events.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			if got, most := info.Size(), int64(limit+1024*(1000*len(`\u0001`)+150)+1000); got > most {
				t.Errorf("the log has %d bytes, at most %d are allowed", got, most)
			}
			all := strings.Join(texts(lines), "\n")
			if !strings.Contains(all, "lines were left out here.") || !strings.Contains(all, ": the end") {
				t.Errorf("of %d lines, the last are:\n%s", len(lines), all[max(0, len(all)-500):])
			}
			if spec.Setup != nil && !strings.HasSuffix(exit.Message, "\nthe end") {
				t.Errorf("the message is %q", exit.Message)
			}
		})
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
