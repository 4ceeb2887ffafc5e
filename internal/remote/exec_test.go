package remote_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/remote"
)

type runTest struct {
	cmd     remote.Cmd
	want    remote.Result
	wantErr error
}

func runTests() map[string]runTest {
	return map[string]runTest{
		"output": {
			cmd:  remote.Cmd{Argv: []string{"sh", "-c", "echo out; echo err >&2"}},
			want: remote.Result{Stdout: []byte("out\n"), Stderr: []byte("err\n")},
		},
		"status": {
			cmd:  remote.Cmd{Argv: []string{"sh", "-c", "exit 7"}},
			want: remote.Result{Code: 7},
		},
		"killed": {
			cmd:  remote.Cmd{Argv: []string{"sh", "-c", "kill -KILL $$"}},
			want: remote.Result{Code: 137, Signal: "KILL"},
		},
		"odd arguments": {
			cmd:  remote.Cmd{Argv: []string{"printf", "%s|", "a b", "$HOME", "it's", "", "`id`", "ä\n", "*", "-n", "\\", "!x", "a=b", "~"}},
			want: remote.Result{Stdout: []byte("a b|$HOME|it's||`id`|ä\n|*|-n|\\|!x|a=b|~|")},
		},
		"first argument with an equals sign": {
			cmd:  remote.Cmd{Argv: []string{"X=1"}, Env: map[string]string{"PATH": "/usr/bin:/bin"}}, // 126 where one may not be entered
			want: remote.Result{Code: 127},
		},
		"environment": {
			cmd:  remote.Cmd{Argv: []string{"sh", "-c", `printf %s "$A$B"`}, Env: map[string]string{"A": "1 '2", "B": "$C\n"}},
			want: remote.Result{Stdout: []byte("1 '2$C\n")},
		},
		"directory": {
			cmd:  remote.Cmd{Argv: []string{"pwd"}, Dir: "/"},
			want: remote.Result{Stdout: []byte("/\n")},
		},
		"no directory": {
			cmd:  remote.Cmd{Argv: []string{"pwd"}, Dir: "/no such"},
			want: remote.Result{Code: 2},
		},
		"input": {
			cmd:  remote.Cmd{Argv: []string{"cat"}, Stdin: strings.NewReader("hello")},
			want: remote.Result{Stdout: []byte("hello")},
		},
		"input that is never read": {
			cmd: remote.Cmd{Argv: []string{"true"}, Stdin: iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 1<<16)))},
		},
		"as much output as allowed": {
			cmd:  remote.Cmd{Argv: []string{"printf", "12345"}, MaxOutput: 5},
			want: remote.Result{Stdout: []byte("12345")},
		},
		"too much output": {
			cmd:     remote.Cmd{Argv: []string{"yes"}, MaxOutput: 4},
			want:    remote.Result{Stdout: []byte("y\ny\n")},
			wantErr: remote.ErrTooMuchOutput,
		},
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	c := newVM(t).dial(t, remote.Config{})
	for name, test := range runTests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.Run(deadline(t), test.cmd)
			if test.wantErr != nil || err != nil {
				wantErr(t, "Run", err, test.wantErr)
			}
			if test.want.Code != 0 && test.want.Signal == "" || test.wantErr != nil {
				got.Stderr, got.Signal = nil, "" // the shell's own words
				if test.wantErr != nil {
					got.Code = 0
				}
			}
			if diff := cmp.Diff(describe(test.want), describe(got)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func describe(r remote.Result) string {
	return fmt.Sprintf("code %d, signal %q, stdout %q, stderr %q", r.Code, r.Signal, r.Stdout, r.Stderr)
}

func TestRunRejectsInvalidCommands(t *testing.T) {
	t.Parallel()
	c := newVM(t).dial(t, remote.Config{})
	for name, cmd := range map[string]remote.Cmd{
		"empty":         {},
		"NUL":           {Argv: []string{"echo", "a\x00b"}},
		"variable name": {Argv: []string{"true"}, Env: map[string]string{"A;reboot": "1"}},
	} {
		if _, err := c.Run(deadline(t), cmd); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := (remote.Result{}).Check("x"); err != nil {
		t.Error(err)
	}
	err := remote.Result{Code: 3, Stderr: []byte(" why\n")}.Check("git fetch")
	if got, want := fmt.Sprint(err), "git fetch: exit status 3: why"; got != want {
		t.Errorf("error is %q, want %q", got, want)
	}
}

func TestContextEndsCommand(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	c := v.dial(t, remote.Config{})
	ctx, cancel := context.WithCancel(deadline(t))
	out, wait, err := c.Stream(ctx, remote.Cmd{Argv: []string{"sh", "-c", "trap 'echo bye > end; exit' TERM; echo up; while :; do sleep 0.01; done"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err = wait()
	wantErr(t, "wait", err, context.Canceled)
	_, err = io.ReadAll(out)
	wantErr(t, "read", err, context.Canceled)
	eventually(t, "the command gets a signal", func() bool {
		_, err := os.Stat(filepath.Join(v.home, "end"))
		return err == nil
	})
}

func TestStreamComesAsItIsWritten(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	c := v.dial(t, remote.Config{})
	out, wait, err := c.Stream(deadline(t), remote.Cmd{Argv: []string{"sh", "-c", "echo one; while ! test -e go; do sleep 0.01; done; echo two; exit 3"}})
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(out)
	if line, err := in.ReadString('\n'); err != nil || line != "one\n" {
		t.Fatalf("first line %q, %v", line, err)
	}
	if err := c.Copy(deadline(t), strings.NewReader(""), 0, "go", 0o600); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(in)
	if err != nil || string(rest) != "two\n" {
		t.Errorf("rest %q, %v", rest, err)
	}
	for range 2 {
		if res, err := wait(); err != nil || res.Code != 3 {
			t.Errorf("ended with %d, %v", res.Code, err)
		}
	}
}

func TestStreamOfMuchKeepsEveryByte(t *testing.T) {
	t.Parallel()
	c := newVM(t).dial(t, remote.Config{})
	const size = 8 << 20
	out, wait, err := c.Stream(deadline(t), remote.Cmd{Argv: []string{"head", "-c", fmt.Sprint(size), "/dev/zero"}})
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, out)
	if err != nil || n != size {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if _, err := wait(); err != nil {
		t.Error(err)
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	c := newVM(t).dial(t, remote.Config{})
	s, err := c.Attach(deadline(t), remote.Cmd{Argv: []string{"cat"}})
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4)
	for _, word := range []string{"ping", "pong"} {
		if _, err := io.WriteString(s, word); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(s, buf); err != nil || string(buf) != word {
			t.Fatalf("echo %q, %v", buf, err)
		}
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := io.ReadAll(s); err == nil {
		t.Error("reading after Close: no error")
	}
}

func TestAttachEndsWithTheCommand(t *testing.T) {
	t.Parallel()
	c := newVM(t).dial(t, remote.Config{})
	s, err := c.Attach(deadline(t), remote.Cmd{Argv: []string{"echo", "last words"}})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := io.ReadAll(s); err != nil || string(all) != "last words\n" {
		t.Errorf("read %q, %v", all, err)
	}
}

func TestCopyAndGet(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	c := v.dial(t, remote.Config{})
	want := bytes.Repeat([]byte{0, 1, 2, 255, '\n'}, 1<<18)
	const name = "new dir/it's"
	if err := c.Copy(deadline(t), bytes.NewReader(want), int64(len(want)), name, 0o750); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(v.home, name))
	if err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode %v, %v", info, err)
	}
	r, err := c.Get(deadline(t), name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d of %d bytes, %v", len(got), len(want), err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Copy(deadline(t), strings.NewReader("short"), 10, name, 0o600); err == nil {
		t.Error("a reader that ends early: no error")
	}
	now, err := os.ReadFile(filepath.Join(v.home, name))
	if err != nil || !bytes.Equal(now, want) {
		t.Errorf("the old file is gone: %d bytes, %v", len(now), err)
	}
	if entries, _ := os.ReadDir(filepath.Join(v.home, "new dir")); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestGetOfAMissingFileFails(t *testing.T) {
	t.Parallel()
	c := newVM(t).dial(t, remote.Config{})
	r, err := c.Get(deadline(t), "none")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadAll(r); err == nil {
		t.Error("no error")
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not in time", what)
		}
	}
}
