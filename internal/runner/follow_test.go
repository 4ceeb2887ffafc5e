package runner_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/tetherd"
)

func TestFollowContinuesAfterACut(t *testing.T) {
	t.Parallel()
	root := start(t, shell("a", "for i in 1 2 3 4 5 6; do echo $i; sleep 0.05; done; until [ -e ../go ]; do sleep 0.01; done; echo 7"))
	ctx, cancel := context.WithCancel(testContext(t))
	r, w := io.Pipe()
	go func() { w.CloseWithError(runner.Follow(ctx, root, "a", 0, w)) }()
	reader := runlog.NewReader(r, 0)
	for reader.Last() < 3 {
		if _, err := reader.Next(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	_ = r.Close()
	if err := os.WriteFile(filepath.Join(string(root), "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	lines, exit := follow(t, root, "a", reader.Last())
	if diff := cmp.Diff([]string{"stdout: 4", "stdout: 5", "stdout: 6", "stdout: 7"}, texts(lines)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if exit.Cause != runlog.CauseExited || exit.LastSeq != 7 {
		t.Errorf("exit %+v", exit)
	}
}

func TestOpenRequestCountsAsActivity(t *testing.T) {
	t.Parallel()
	root := runner.Root(t.TempDir())
	ctx := testContext(t)
	status, err := tetherd.ServeDetached(ctx, string(root), tetherd.Config{Dir: root.TetherDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := tetherd.Stop(context.Background(), root.TetherDir()); err != nil {
			t.Error(err)
		}
	})
	conn, err := net.Dial("tcp", status.Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	spec := shell("a", "exec sleep 1000")
	spec.Stall, spec.Duration = 200*time.Millisecond, 1200*time.Millisecond
	startIn(t, root, spec)
	if _, exit := follow(t, root, "a", 0); exit.Cause != runlog.CauseDuration {
		t.Errorf("with an open request the run ended as %+v", exit)
	}
}

// TestLinesBeforeTheExitAreFollowed: a line that is logged between a follower's last read of the log and its read of
// the exit is reported before the exit.
func TestLinesBeforeTheExitAreFollowed(t *testing.T) {
	t.Parallel()
	root := runner.Root(t.TempDir())
	dir := root.RunDir("a")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "events.jsonl")
	for name, text := range map[string]string{"spec.json": "{}", "events.jsonl": `{"seq":1,"stream":"stdout","text":"first"}` + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The follower waits at this exit until somebody writes it.
	exit := filepath.Join(dir, "exit.json")
	if err := unix.Mkfifo(exit, 0o600); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() {
		writer, err := os.OpenFile(exit, os.O_WRONLY, 0) // returns once the follower looks for the exit
		if err == nil {
			err = appendTo(log, `{"seq":2,"stream":"stdout","text":"last"}`+"\n")
		}
		if err == nil {
			_, err = writer.WriteString(`{"cause":"exited","last_seq":2}`)
		}
		wrote <- errors.Join(err, writer.Close())
	}()
	lines, ended := follow(t, root, "a", 0)
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"stdout: first", "stdout: last"}, texts(lines)); diff != "" || ended.Cause != runlog.CauseExited {
		t.Errorf("exit %+v, lines (-want +got):\n%s", ended, diff)
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
