package runner_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
)

// hastyCommand makes the test binary an agent program that does not wait for its output, as Node.js programs do on a
// pipe: it writes a line of the given number of bytes, drops bytes that are not accepted immediately, and exits.
const hastyCommand = "hasty-writer"

func writeHastily(size string) {
	n, err := strconv.Atoi(size)
	if err != nil {
		os.Exit(2)
	}
	if err := unix.SetNonblock(1, true); err != nil {
		os.Exit(3)
	}
	for line := []byte(strings.Repeat("x", n-4) + "end\n"); len(line) > 0; {
		n, err := unix.Write(1, line)
		if err != nil {
			os.Exit(0) // the rest is lost, and nothing says so
		}
		line = line[n:]
	}
	os.Exit(0)
}

// TestLastLineOfANonWaitingProgramIsKept: the output of a program that exits without waiting for its reader is complete.
func TestLastLineOfANonWaitingProgramIsKept(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]func(size string) []string{
		"writes without blocking": func(size string) []string { return []string{self, hastyCommand, size} },
		"node": func(size string) []string {
			return []string{"node", "-e", `process.stdout.write("x".repeat(` + size + `-4)+"end\n"); process.exit(0)`}
		},
	}
	for name, program := range programs {
		if _, err := exec.LookPath(program("0")[0]); err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		for answer, size := range map[string]int{"39 KB": 39 << 10, "1 MB": 1 << 20, "6 MB": 6 << 20} {
			for user, spec := range map[string]runner.Spec{
				"as the runner": {},
				"as another":    {Become: become(), Home: t.TempDir()},
			} {
				t.Run(name+"/"+answer+"/"+user, func(t *testing.T) {
					t.Parallel()
					spec.ID, spec.Argv = "a", program(strconv.Itoa(size))
					spec.MaxLine = 8 << 20
					lines, exit := follow(t, start(t, spec), "a", 0)
					if exit.Cause != runlog.CauseExited || exit.Code != 0 {
						t.Errorf("exit %+v", exit)
					}
					if len(lines) != 1 || len(lines[0].Text) != size-1 || !strings.HasSuffix(lines[0].Text, "end") || lines[0].Cut != 0 {
						t.Errorf("%d lines, of %d bytes, want one of %d", len(lines), length(lines), size-1)
					}
				})
			}
		}
	}
}

// length is the number of bytes in all lines.
func length(lines []runlog.Line) (n int) {
	for _, line := range lines {
		n += len(line.Text)
	}
	return n
}

// TestCommandMisusesItsOutput: the log contains the first and last output of a command that manipulates its output
// file.
func TestCommandMisusesItsOutput(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script string
		lines  []string
	}{
		"opens it by name":             {`echo one >/dev/stdout; echo two >>/dev/stdout; echo last`, []string{"stdout: one", "stdout: two", "stdout: last"}},
		"opens standard error by name": {`echo one >&2; echo two >/dev/stderr; echo last`, []string{"stderr: one", "stderr: two", "stdout: last"}},
		"truncates it by its name":     {`echo one; (echo two >/dev/stdout) 2>/dev/null || echo refused; echo last`, []string{"stdout: one", "stdout: refused", "stdout: last"}},
		"truncates it":                 {`echo one; truncate -s 0 /dev/stdout 2>/dev/null; echo last`, []string{"stdout: one", "stdout: last"}},
		"prints in the background":     {`echo one; (while :; do echo more; sleep 0.01; done) >&2 & echo last`, []string{"stdout: one", "stdout: last"}},
	} {
		for user, spec := range map[string]runner.Spec{
			"as the runner": {},
			"as another":    {Become: become(), Home: t.TempDir()},
		} {
			t.Run(name+"/"+user, func(t *testing.T) {
				t.Parallel()
				spec.ID, spec.Argv = "a", []string{"sh", "-c", test.script}
				lines, exit := follow(t, start(t, spec), "a", 0)
				got := byStream(texts(lines))
				if name == "prints in the background" {
					delete(got, "stderr") // as much as there was time for
				}
				if diff := cmp.Diff(byStream(test.lines), got); diff != "" || exit.Cause != runlog.CauseExited || exit.Code != 0 {
					t.Errorf("exit %+v, lines (-want +got):\n%.2000s", exit, diff)
				}
			})
		}
	}
}

// TestLastOutputOfAStoppedCommandIsKept: the output of an interrupted command is read to its end, however long it is.
func TestLastOutputOfAStoppedCommandIsKept(t *testing.T) {
	t.Parallel()
	root := start(t, shell("a", `trap 'head -c 3000000 /dev/zero | tr "\0" x; echo last; exit 9' INT; echo ready; while :; do sleep 0.05; done`))
	until(t, "it is ready", func() bool {
		data, err := os.ReadFile(filepath.Join(root.RunDir("a"), "events.jsonl"))
		return err == nil && strings.Contains(string(data), "ready")
	})
	if _, err := runner.Stop(testContext(t), root, "a", "enough"); err != nil {
		t.Fatal(err)
	}
	lines, exit := follow(t, root, "a", 0)
	if last := lines[len(lines)-1].Text; exit.Code != 9 || len(last) != 3_000_004 || !strings.HasSuffix(last, "last") {
		t.Errorf("exit %+v, and the last of %d lines has %d bytes", exit, len(lines), len(last))
	}
}

// TestHoleInTheOutput: a command that extends its output by a terabyte without writing causes no work, and its later
// output is in the log.
func TestHoleInTheOutput(t *testing.T) {
	t.Parallel()
	lines, exit := follow(t, start(t, shell("a", `echo first; truncate -s 1T /dev/stdout; echo; echo last`)), "a", 0)
	all := strings.Join(texts(lines), "\n")
	if exit.Cause != runlog.CauseExited || len(lines) > 10 || !strings.Contains(all, "bytes of the output were left out here") || !strings.HasSuffix(all, "\nstdout: last") {
		t.Errorf("exit %+v after %d lines:\n%.300s", exit, len(lines), all)
	}
}
