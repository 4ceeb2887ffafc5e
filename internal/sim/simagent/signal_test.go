package simagent_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simmodel"
)

// TestSignals sends each signal during a model call and during a tool call.
func TestSignals(t *testing.T) {
	t.Parallel()
	asking := []simmodel.Turn{{Text: "never", Wait: "gate"}}
	working := []simmodel.Turn{{Bash: []string{"touch running; sleep 60; touch slept"}}, {Bash: []string{"touch went-on"}}, {Text: "end"}}
	for name, tc := range map[string]struct {
		turns  []simmodel.Turn
		signal syscall.Signal
		code   int
		want   map[string]string // nil: no result
		wentOn bool
	}{
		"SIGINT in a model call":      {asking, syscall.SIGINT, 0, map[string]string{"subtype": "error_during_execution", "terminal_reason": "aborted_streaming"}, false},
		"SIGINT in a tool":            {working, syscall.SIGINT, 1, map[string]string{"subtype": "error_during_execution", "terminal_reason": "aborted_tools"}, false},
		"SIGTERM in a model call":     {asking, syscall.SIGTERM, 143, nil, false},
		"SIGHUP in a model call":      {asking, syscall.SIGHUP, 143, nil, false},
		"run continues after SIGTERM": {working, syscall.SIGTERM, 0, map[string]string{"subtype": "success", "result": "end"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.turns...)
			cmd, stdout, stderr := w.command("Work.")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if tc.turns[0].Wait == "" {
				w.waitFor("running")
			} else {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				if err := w.model.Waiting(ctx, "gate"); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Process.Signal(tc.signal); err != nil {
				t.Fatal(err)
			}
			r := w.ended(cmd.Wait(), stdout, stderr)
			if tc.want == nil {
				if r.code != tc.code || r.count("result", "") != 0 {
					t.Errorf("got exit %d, stdout %s", r.code, r.out)
				}
			} else {
				r.want(t, tc.code, tc.want)
			}
			if w.exists("slept") || w.exists("went-on") != tc.wentOn {
				t.Errorf("got slept %v, continued %v", w.exists("slept"), w.exists("went-on"))
			}
		})
	}
}

// TestClosedStdoutIsIgnored: the agent continues when its output is not read.
func TestClosedStdoutIsIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Bash: []string{"touch done"}}, simmodel.Turn{Text: "end"})
	cmd, _, _ := w.command("Work.")
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = out
	r.Close()
	err = cmd.Run()
	out.Close()
	if err != nil || !w.exists("done") {
		t.Errorf("%v, done %v", err, w.exists("done"))
	}
}

// TestSessions resumes sessions that were damaged in different ways between two runs.
func TestSessions(t *testing.T) {
	t.Parallel()
	script := simmodel.Script{Rules: []simmodel.Rule{
		{Match: "again", Turns: []simmodel.Turn{{Text: "second of {{.First}}"}}},
		{Turns: []simmodel.Turn{{Bash: []string{"echo hi"}}, {Text: "first"}}},
	}}
	for name, change := range map[string]func(t *testing.T, path string) (flags []string){
		"untouched": func(*testing.T, string) []string { return nil },
		"last third lost": func(t *testing.T, path string) []string {
			info, err := os.Stat(path)
			if err == nil {
				err = os.Truncate(path, info.Size()*2/3)
			}
			if err != nil {
				t.Fatal(err)
			}
			return nil
		},
		"garbage at the end": func(t *testing.T, path string) []string {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := io.WriteString(f, `{"type":"assis`); err != nil {
				t.Fatal(err)
			}
			return nil
		},
		"forked": func(*testing.T, string) []string { return []string{"--fork-session"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOf(t, script)
			id := fmt.Sprint(w.run("the task").result(t)["session_id"])
			path := filepath.Join(w.home, ".claude", "projects", strings.NewReplacer("/", "-", "_", "-", ".", "-").Replace(w.work), id+".jsonl")
			flags := change(t, path)
			second := w.run("again", append(flags, "--resume", id)...)
			second.want(t, 0, map[string]string{"result": "second of the task"})
			if same := fmt.Sprint(second.result(t)["session_id"]) == id; same == (name == "forked") {
				t.Errorf("same session ID: %v", same)
			}
			third := w.run("again", "--resume", fmt.Sprint(second.result(t)["session_id"]))
			third.want(t, 0, map[string]string{"result": "second of the task"})
		})
	}
}

// TestSessionByPath resumes in another directory, where the ID alone is unknown.
func TestSessionByPath(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, simmodel.Script{Rules: []simmodel.Rule{{Turns: []simmodel.Turn{{Text: "of {{.First}}"}}}}})
	id := fmt.Sprint(w.run("the task").result(t)["session_id"])
	files, err := filepath.Glob(filepath.Join(w.home, ".claude", "projects", "*", id+".jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("session files %v: %v", files, err)
	}
	w.work = t.TempDir()
	w.run("again", "--resume", id).want(t, 1, map[string]string{
		"subtype": "error_during_execution", "num_turns": "0", "errors": "[No conversation found with session ID: " + id + "]",
	})
	w.run("again", "--resume", files[0]).want(t, 0, map[string]string{"result": "of the task", "session_id": id})
}

// TestUnwritableHomeIsNotAnError: the agent runs without saving a session.
func TestUnwritableHomeIsNotAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Text: "ok"})
	w.env = append(w.env, "CLAUDE_CONFIG_DIR=/dev/null/nowhere")
	w.run("x").want(t, 0, map[string]string{"result": "ok"})
	w.env = append(w.env, "CLAUDE_CONFIG_DIR="+filepath.Join(w.home, "c"))
	w.run("x", "--no-session-persistence").want(t, 0, map[string]string{"result": "ok"})
	if files, err := filepath.Glob(filepath.Join(w.home, "*")); err != nil || len(files) != 0 {
		t.Errorf("files %v, %v", files, err)
	}
}
