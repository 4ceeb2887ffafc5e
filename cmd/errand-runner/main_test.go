package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/yamux"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/tetherd"
	"github.com/errand-bot/errand/internal/runner/work"
)

// TestMain makes the test binary act as errand-runner, for the tests and for its own child processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// vm is a root directory, and errand-runner as it is called over SSH.
type vm struct {
	t    *testing.T
	root string
}

func newVM(t *testing.T) *vm { return &vm{t: t, root: t.TempDir()} }

func (v *vm) command(args ...string) *exec.Cmd {
	v.t.Helper()
	self, err := os.Executable()
	if err != nil {
		v.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	v.t.Cleanup(cancel)
	return exec.CommandContext(ctx, self, append(args, "--root", v.root)...)
}

// call runs a subcommand with JSON on its standard input and decodes its answer.
func (v *vm) call(in, out any, args ...string) error {
	v.t.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		v.t.Fatal(err)
	}
	cmd := v.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(data), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return errors.New(strings.TrimSpace(stderr.String()))
	}
	if err := json.Unmarshal(stdout.Bytes(), out); err != nil {
		v.t.Fatalf("%v answered %q: %v", args, stdout.String(), err)
	}
	return nil
}

func (v *vm) must(in, out any, args ...string) {
	v.t.Helper()
	if err := v.call(in, out, args...); err != nil {
		v.t.Fatalf("%v: %v", args, err)
	}
}

// follow reads a run to its end.
func (v *vm) follow(id string) (stdout []string, exit runlog.Exit) {
	v.t.Helper()
	out, err := v.command("follow", "--run", id, "--from", "0").Output()
	if err != nil {
		v.t.Fatal(err)
	}
	for reader := runlog.NewReader(bytes.NewReader(out), 0); ; {
		record, err := reader.Next()
		switch {
		case err != nil:
			v.t.Fatal(err)
		case record.Exit != nil:
			return stdout, *record.Exit
		case record.Line != nil && record.Line.Stream == runlog.StreamStdout:
			stdout = append(stdout, record.Line.Text)
		}
	}
}

// newOrigin makes a repository with one commit.
func newOrigin(t *testing.T) (url, head string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("sh", "-ec", `git init -q -b main; git config user.name a; git config user.email a@example.org
		echo one > file; git add file; git commit -qm First; git rev-parse HEAD`)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return "file://" + filepath.ToSlash(dir), strings.TrimSpace(string(out))
}

// TestLifeOnAVM plays the orchestrator's sequence once: prepare, run, collect, check.
func TestLifeOnAVM(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	url, head := newOrigin(t)
	dir := filepath.Join(v.root, "work")
	var place work.Place
	v.must(work.PrepareSpec{Dir: dir, Source: work.Source{URL: url, Ref: "refs/heads/main"}, Branch: "b", Base: head}, &place,
		"workspace", "prepare")
	if place.Head != head {
		t.Fatalf("place %+v", place)
	}
	var started runner.Started
	v.must(runner.Spec{
		ID: "agent", Dir: dir, Argv: []string{"sh", "-c", "cat; echo two >> file; git commit -qam Second; echo left > new"}, Stdin: "do it",
	}, &started, "start")
	if stdout, exit := v.follow("agent"); !started.Started || exit.Code != 0 || !cmp.Equal(stdout, []string{"do it"}) {
		t.Fatalf("started %+v, output %q, exit %+v", started, stdout, exit)
	}
	out, err := v.command("changeset", "--dir", dir, "--base", head, "--message", "Rest").Output()
	if err != nil {
		t.Fatal(err)
	}
	set, err := changeset.Decode(bytes.NewReader(out), changeset.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, commit := range set.Commits {
		for _, change := range commit.Changes {
			paths = append(paths, change.Path)
		}
	}
	if diff := cmp.Diff([]string{"file", "new"}, paths); diff != "" || len(set.Commits) != 2 {
		t.Errorf("%d commits, paths (-want +got):\n%s", len(set.Commits), diff)
	}
	spec, err := json.Marshal(work.CheckSpec{Dir: dir, Head: set.Head(), Commands: []work.CheckCommand{
		{Name: "test", Command: "grep two file && cat new"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	v.must(runner.Spec{ID: "check", Dir: dir, Argv: []string{"{runner}", "check", "--root", "{root}"}, Stdin: string(spec)}, &started, "start")
	stdout, exit := v.follow("check")
	if exit.Code != 0 || len(stdout) != 2 {
		t.Fatalf("output %q, exit %+v", stdout, exit)
	}
	var result work.CheckResult
	var done work.ChecksDone
	if err := errors.Join(json.Unmarshal([]byte(stdout[0]), &result), json.Unmarshal([]byte(stdout[1]), &done)); err != nil {
		t.Fatal(err)
	}
	if result.Tail != "two\nleft" || !done.OK || done.Tree != set.Commits[1].Tree {
		t.Errorf("result %+v, done %+v", result, done)
	}
}

func TestStopAndStatus(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	var started runner.Started
	v.must(runner.Spec{ID: "a", Dir: v.root, Argv: []string{"sleep", "1000"}}, &started, "start")
	var status runner.Status
	v.must(nil, &status, "status", "--run", "a")
	if status.State != runner.StateRunning || status.Isolation != started.Isolation {
		t.Errorf("status %+v, started %+v", status, started)
	}
	var exit runlog.Exit
	v.must(nil, &exit, "stop", "--run", "a", "--reason", "enough")
	if exit.Cause != runlog.CauseStopped || exit.Message != "enough" {
		t.Errorf("exit %+v", exit)
	}
	v.must(nil, &status, "status", "--run", "a")
	if status.State != runner.StateExited {
		t.Errorf("status %+v", status)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	tests := map[string]struct {
		in   any
		args []string
		want string
	}{
		"unknown command":        {nil, []string{"dance"}, "unknown command"},
		"unknown subcommand":     {nil, []string{"workspace", "dance"}, "unknown command"},
		"bare parent":            {nil, []string{"workspace"}, "a subcommand is required"},
		"unknown field":          {map[string]string{"idd": "x"}, []string{"start"}, `unknown field "idd"`},
		"invalid spec":           {runner.Spec{ID: "x"}, []string{"start"}, "argv: no command given"},
		"unknown run":            {nil, []string{"stop", "--run", "x"}, "no such run"},
		"run is not named":       {nil, []string{"follow"}, `"run"`},
		"no workspace":           {nil, []string{"changeset", "--dir", v.root, "--base", strings.Repeat("a", 40)}, "not in the workspace"},
		"invalid workspace spec": {work.PrepareSpec{}, []string{"workspace", "prepare"}, "not absolute"},
		"no tether":              {nil, []string{"tether", "attach"}, "no tether is being served"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := v.call(test.in, new(any), test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line about %q", err, test.want)
			}
		})
	}
}

// pipes is a command's standard input and output as one stream.
type pipes struct {
	io.Reader
	io.WriteCloser
}

func TestTether(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	var status tetherd.Status
	v.must(nil, &status, "tether", "serve", "--detach", "--listen", "127.0.0.1:0")
	t.Cleanup(func() { v.must(nil, &status, "tether", "stop") })
	var again tetherd.Status
	v.must(nil, &again, "tether", "serve", "--detach", "--listen", status.Listen)
	if !again.Already || again.Listen != status.Listen {
		t.Errorf("served again: %+v, at first %+v", again, status)
	}
	if err := v.call(nil, &again, "tether", "serve", "--detach", "--listen", "127.0.0.1:1"); err == nil {
		t.Error("served on two ports")
	}
	cmd := v.command("tether", "attach")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	session, err := yamux.Server(pipes{out, in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })}
	go func() { _ = server.Serve(session) }()
	response, err := webtest.Client().Get("http://" + status.Listen + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "hello" {
		t.Errorf("answer %q, %v", body, err)
	}
	_, _ = session.Close(), in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("attach ended with %v", err)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	out, err := newVM(t).command("version").Output()
	if err != nil || string(out) != "dev\n" {
		t.Errorf("%q, %v", out, err)
	}
}
