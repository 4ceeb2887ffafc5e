package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/setup/setuptest"
)

// TestTrialCleansUp starts the simulators for errand setup, and stops them while errand runs, and while it does not.
func TestTrialCleansUp(t *testing.T) {
	for name, running := range map[string]bool{"errand was stopped": false, "errand runs": true} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			program(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			screen := &setuptest.Screen{}
			done := make(chan error, 1)
			go func() { done <- run(ctx, []string{"-setup"}, screen) }()
			answers := screen.Await(ctx, regexp.MustCompile(`setup --dir \S+ --answers (\S+)`))
			text, err := os.ReadFile(answers)
			if err != nil {
				t.Fatal(err)
			}
			listen := regexp.MustCompile(`listen: "(\S+)"`).FindSubmatch(text)
			if listen == nil {
				t.Fatalf("no address in:\n%s", text)
			}
			if running {
				ln, err := net.Listen("tcp", string(listen[1]))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = ln.Close() }() // the test is over
			}
			dir := filepath.Dir(answers)
			screen.Await(ctx, regexp.MustCompile(`(deletes) `+regexp.QuoteMeta(dir)))
			stop()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			_, err = os.Stat(dir)
			if kept := err == nil; kept != running || running != strings.Contains(screen.String(), "Stop it, and delete "+dir) {
				t.Errorf("kept: %v, %v\n%s", kept, err, screen)
			}
		})
	}
}

// TestTrialNeedsErrand refuses to start without the program that is to be tried.
func TestTrialNeedsErrand(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-setup"}, &out); err == nil || !strings.Contains(err.Error(), "make build") || out.Len() > 0 {
		t.Errorf("got %v, and printed %q", err, out.String())
	}
}

func TestTrialHasNoOtherModes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-setup", "-interactive"}, {"-setup", "-keep", "here"}} {
		if _, err := parse(args, io.Discard); err == nil || !strings.Contains(err.Error(), "no other flag") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// program creates errand's program next to the test program; it is not started.
func program(t *testing.T) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(exe), "errand")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	})
}
