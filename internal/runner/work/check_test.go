package work_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/runner/maven"
	"github.com/errand-bot/errand/internal/runner/proc"
	"github.com/errand-bot/errand/internal/runner/work"
)

// checked runs checks and returns their output.
func checked(t *testing.T, root string, spec work.CheckSpec) (results []work.CheckResult, done work.ChecksDone, log string, err error) {
	t.Helper()
	var out, logged bytes.Buffer
	err = work.Check(testContext(t), root, spec, &out, &logged)
	decoder := json.NewDecoder(&out)
	for {
		var raw json.RawMessage
		if e := decoder.Decode(&raw); errors.Is(e, io.EOF) {
			return results, done, logged.String(), err
		} else if e != nil {
			t.Fatal(e)
		}
		var result work.CheckResult
		if e := json.Unmarshal(raw, &result); e != nil {
			t.Fatal(e)
		}
		switch result.Type {
		case work.TypeCheckResult:
			results = append(results, result)
		case work.TypeChecksDone:
			if e := json.Unmarshal(raw, &done); e != nil {
				t.Fatal(e)
			}
		default:
			t.Fatalf("unknown line %s", raw)
		}
	}
}

// The checks of one program run one after the other: hence one test.
func TestCheck(t *testing.T) {
	o := newOrigin(t)
	dir := preparedPlace(t, o)
	script(t, dir, `echo committed > new; git add new; git commit -qm Work; echo dirty > new; echo u > untracked
		git config core.hooksPath /nowhere; git config alias.st '!echo pwned'`)
	head, tree := git(t, dir, "rev-parse", "HEAD"), git(t, dir, "rev-parse", "HEAD^{tree}")
	mark := "1000." + strconv.FormatInt(time.Now().UnixNano(), 10)
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, isolation := range []proc.Isolation{"", proc.Subreaper} {
		root := t.TempDir()
		results, done, log, err := checked(t, root, work.CheckSpec{
			Dir: dir, Head: head, Base: o.head, Isolation: isolation,
			Env: map[string]string{"GREETING": "hello", "HOME": "/never", "HTTPS_PROXY": "http://run:x@127.0.0.1:9413", maven.PasswordVariable: "x"},
			Commands: []work.CheckCommand{
				{Name: "content", Command: "cat new; ls; git config --get-all alias.st"},
				{Name: "home", Command: `echo $GREETING; ls -A "$HOME" "$TMPDIR"; test "$HOME" != /never`},
				{Name: "changed", Command: `printf '[%s]' {changed_files}; echo; echo "$ERRAND_CHANGED_FILES"`},
				{Name: "history", Command: "git log --format=%s; git rev-parse --abbrev-ref HEAD; git diff --stat origin/main HEAD | tail -1"},
				{Name: "tail", Command: "seq 1 500; exit 3"},
				{Name: "slow", Command: "trap '' INT TERM; setsid sleep " + mark + " & echo begun; sleep " + mark, Timeout: 5 * time.Second},
				{Name: "leftover", Command: "setsid sleep " + mark + " & echo left"},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []work.CheckResult{
			{Name: "content", Code: 1, Tail: "committed\nREADME\na name with spaces\nbinary\ndir\nlink\nnew\nrun.sh\nünïcödé"},
			{Name: "home", Tail: "hello\nHOME:\n\nTMP:"},
			{Name: "changed", Tail: "[new]\nnew"},
			{Name: "history", Tail: "Work\nSecond\nFirst\nHEAD\n 1 file changed, 1 insertion(+)"},
			{Name: "tail", Code: 3, Tail: numbers(401, 500)},
			{Name: "slow", Code: 137, Tail: "begun", TimedOut: true},
			{Name: "leftover", Tail: "left"},
		}
		for i := range results {
			results[i].Tail = placeholders(results[i].Tail)
		}
		if diff := cmp.Diff(want, results, cmpopts.IgnoreFields(work.CheckResult{}, "Type", "Duration")); diff != "" {
			t.Errorf("%s: results (-want +got):\n%s", isolation, diff)
		}
		if diff := cmp.Diff(work.ChecksDone{Type: work.TypeChecksDone, Head: head, Tree: tree}, done); diff != "" {
			t.Errorf("%s: done (-want +got):\n%s", isolation, diff)
		}
		if !strings.Contains(log, "committed\n") {
			t.Errorf("%s: the log is %q", isolation, log)
		}
		if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", isolation, left, err)
		}
		if _, err := os.Stat(filepath.Join(home, maven.Path)); err != nil { // Java does not read HOME
			t.Errorf("%s: Maven gets no proxy: %v", isolation, err)
		}
		if commands := sleeping(t, mark); len(commands) > 0 {
			t.Errorf("%s: still running: %q", isolation, commands)
		}
	}
}

// placeholders replaces the names of fresh directories.
func placeholders(tail string) string {
	lines := strings.Split(tail, "\n")
	for i, line := range lines {
		switch {
		case strings.HasSuffix(line, "/home:"):
			lines[i] = "HOME:"
		case strings.HasSuffix(line, "/tmp:"):
			lines[i] = "TMP:"
		}
	}
	return strings.Join(lines, "\n")
}

func numbers(from, to int) string {
	var all []string
	for i := from; i <= to; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return strings.Join(all, "\n")
}

func sleeping(t *testing.T, mark string) (commands []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), mark) {
			commands = append(commands, string(data))
		}
	}
	return commands
}

func TestChecksPass(t *testing.T) {
	o := newOrigin(t)
	dir := preparedPlace(t, o)
	results, done, _, err := checked(t, t.TempDir(), work.CheckSpec{
		Dir: dir, Head: o.head, Commands: []work.CheckCommand{{Name: "a", Command: "true"}, {Name: "b", Command: "./run.sh"}},
	})
	if err != nil || !done.OK || len(results) != 2 {
		t.Errorf("done %+v, results %+v, %v", done, results, err)
	}
}

func TestCheckCannotBegin(t *testing.T) {
	o := newOrigin(t)
	dir := preparedPlace(t, o)
	root := t.TempDir()
	_, done, _, err := checked(t, root, work.CheckSpec{
		Dir: dir, Head: strings.Repeat("a", 40), Commands: []work.CheckCommand{{Name: "a", Command: "true"}},
	})
	if err == nil || done.OK || done.Error == "" {
		t.Errorf("done %+v, %v", done, err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// burst is a program that does not wait for a full pipe and loses the rest of its output at exit.
func burst() {
	_ = unix.SetNonblock(1, true)
	data := append(bytes.Repeat([]byte("."), 900<<10), "\nthe reason\n"...)
	for len(data) > 0 {
		n, err := unix.Write(1, data)
		if err != nil {
			break
		}
		data = data[n:]
	}
	os.Exit(1)
}

// TestCheckThatDoesNotWait: the end of a check's output is complete even if the program leaves a full pipe behind.
func TestCheckThatDoesNotWait(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIP: pipes have one size here")
	}
	o := newOrigin(t)
	dir := preparedPlace(t, o)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	results, _, _, err := checked(t, t.TempDir(), work.CheckSpec{
		Dir: dir, Head: git(t, dir, "rev-parse", "HEAD"), Base: o.head, Commands: []work.CheckCommand{{Name: "burst", Command: exe + " burst"}},
	})
	if err != nil || len(results) != 1 || results[0].Code != 1 || !strings.HasSuffix(results[0].Tail, "the reason") {
		t.Errorf("%v: code and end of %.300v", err, results)
	}
}
