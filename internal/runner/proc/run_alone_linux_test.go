package proc

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEndOrphans: leftover processes hold the other end of the pipe, so that it has no end while they live.
func TestEndOrphans(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], tidyCommand)
	cmd.WaitDelay = 20 * time.Second // when the program has ended and its output has not
	if out, err := cmd.Output(); err != nil || string(out) != "here\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestRunAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		ends   bool
	}{
		"leaves a session": {"setsid sleep 1000 & exit 0", true},
		"fails":            {"exit 3", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if Probe() != PIDNamespace {
				t.Skip("SKIP: no PID namespaces here")
			}
			var out testWriter
			err := RunAlone(func() *exec.Cmd {
				cmd := exec.CommandContext(t.Context(), "sh", "-c", tt.script)
				cmd.Stdout = &out // a pipe, which leftover processes would hold
				cmd.WaitDelay = 20 * time.Second
				return cmd
			})
			if (err == nil) != tt.ends {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestRunAloneWithinRunAlone runs as an unprivileged user in every environment, because only such a user needs a user
// namespace, whose maps are written through /proc. It runs repeatedly, because the assignment of process ids in the
// outer /proc depends on the host.
func TestRunAloneWithinRunAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		levels, times int
		script, want  string
	}{
		"once":             {1, 1, "echo here", "here\n"},
		"often":            {1, 300, ":", ""},
		"deep":             {3, 10, ":", ""},
		"leaves a session": {1, 1, "setsid sleep 1000 & echo here", "here\n"},
		"fails":            {1, 1, "exit 3", "level 0: exit status 3\nlevel 1: exit status 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "leaves a session" && Probe() != PIDNamespace {
				t.Skip("SKIP: no PID namespaces here")
			}
			cmd := exec.CommandContext(t.Context(), selfPath, nestCommand, strconv.Itoa(tt.levels), strconv.Itoa(tt.times), tt.script)
			cmd.SysProcAttr = &syscall.SysProcAttr{}
			if os.Geteuid() == 0 {
				cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
			}
			cmd.WaitDelay = 20 * time.Second // when the program has ended and its output has not
			out, err := cmd.Output()
			if string(out) != tt.want || errors.Is(err, exec.ErrWaitDelay) {
				t.Errorf("%q, %v, want %q", out, err, tt.want)
			}
		})
	}
}

// TestAdoptRefusesWithinRunAlone: EndOrphans must only run where process ids refer to its own processes.
func TestAdoptRefusesWithinRunAlone(t *testing.T) {
	t.Parallel()
	if Probe() != PIDNamespace {
		t.Skip("SKIP: no PID namespaces here")
	}
	var out bytes.Buffer
	err := RunAlone(func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), selfPath, tidyCommand)
		cmd.Stdout = &out
		return cmd
	})
	if err == nil || !strings.Contains(out.String(), "another PID namespace") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

const nobody = 65534

// testWriter is no file, so that os/exec makes a pipe for it.
type testWriter struct{}

func (testWriter) Write(p []byte) (int, error) { return len(p), nil }
