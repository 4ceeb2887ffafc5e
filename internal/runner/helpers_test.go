package runner_test

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
)

// patience is the timeout of a test for short operations.
const patience = 4 * time.Minute

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
