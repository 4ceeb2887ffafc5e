package proc

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// What is left holds the other end of the pipe, so that there is no end to read while it lives.
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
				cmd.Stdout = &out // a pipe, which whatever is left would hold
				cmd.WaitDelay = 20 * time.Second
				return cmd
			})
			if (err == nil) != tt.ends {
				t.Errorf("%v", err)
			}
		})
	}
}

// testWriter is no file, so that os/exec makes a pipe for it.
type testWriter struct{}

func (testWriter) Write(p []byte) (int, error) { return len(p), nil }
