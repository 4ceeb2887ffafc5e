package logview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/runlog"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// write makes a transcript.
func write(t *testing.T, dir, run, task string, at time.Time, entries ...runlog.Entry) *os.File {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "transcripts"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "transcripts", run+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	out, err := runlog.NewTranscript(f, runlog.Header{Run: run, Task: task, Step: "preliminary_plan", Agent: "claude", Model: "sonnet", Started: at, Withheld: []string{"comment 1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := out.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func said(at time.Time, kind runlog.Kind, text string) runlog.Entry {
	return runlog.Entry{Line: &runlog.Line{Seq: 1, Time: at, Stream: runlog.StreamStdout, Text: "raw"}, Events: []runlog.Event{{Seq: 1, Time: at, Kind: kind, Text: text}}}
}

// sample has two runs of one task, and one of another.
func sample(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "7-1-2", "acme/Shop#1", noon.Add(time.Hour),
		runlog.Entry{Events: []runlog.Event{{Time: noon.Add(time.Hour), Kind: runlog.KindToolUse, ToolName: "Bash", Input: `{"command":"go test"}`}}},
		runlog.Entry{Events: []runlog.Event{{Time: noon.Add(time.Hour), Kind: runlog.KindToolResult, Text: "no such file", IsError: true}}},
		runlog.Entry{Exit: &runlog.Exit{Cause: runlog.CauseExited, EndedAt: noon.Add(2 * time.Hour)}})
	write(t, dir, "7-1-1", "acme/shop#1", noon,
		said(noon, runlog.KindText, "two\nlines\x1b[31m"), said(noon, runlog.KindThinking, "hm"),
		runlog.Entry{Line: &runlog.Line{Time: noon, Stream: runlog.StreamRunner, Text: "set-up took long"}})
	write(t, dir, "7-2-1", "acme/shop#2", noon, said(noon, runlog.KindText, "of another task"))
	return dir
}

func TestShow(t *testing.T) {
	t.Parallel()
	dir := sample(t)
	for name, c := range map[string]struct {
		q    Query
		want []string
	}{
		"a task": {q: Query{Level: Info}, want: []string{
			"2026-11-21 12:00:00  run 1  began: preliminary plan, claude, sonnet, withheld from it: 1",
			"2026-11-21 12:00:00  run 1  text: two", "    lines[31m",
			"2026-11-21 12:00:00  run 1  runner: set-up took long",
			"2026-11-21 13:00:00  run 2  began: preliminary plan, claude, sonnet, withheld from it: 1",
			"2026-11-21 13:00:00  run 2  tool use: Bash go test",
			"2026-11-21 13:00:00  run 2  tool result: failed: no such file",
			"2026-11-21 14:00:00  run 2  notice: ended: exited, exit code 0",
		}},
		"a run, what matters": {q: Query{Level: Warn, Run: 1}, want: []string{
			"2026-11-21 12:00:00  run 1  began: preliminary plan, claude, sonnet, withheld from it: 1",
			"2026-11-21 12:00:00  run 1  runner: set-up took long",
		}},
		"lately": {q: Query{Since: noon.Add(90 * time.Minute)}, want: []string{"2026-11-21 14:00:00  run 2  notice: ended: exited, exit code 0"}},
		"for programs": {q: Query{Events: true, Run: 1, Level: Info}, want: []string{
			`{"run":"7-1-1","seq":1,"time":"2026-11-21T12:00:00Z","kind":"text","text":"two\nlines\u001b[31m"}`,
			`{"run":"7-1-1","seq":0,"time":"2026-11-21T12:00:00Z","kind":"runner","text":"set-up took long"}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			c.q.Dir, c.q.Task = dir, "ACME/shop#1"
			if err := Show(t.Context(), &out, c.q); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Join(c.want, "\n")+"\n", out.String()); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
		})
	}
	if err := Show(t.Context(), io.Discard, Query{Dir: dir, Task: "acme/shop#3"}); !errors.Is(err, ErrNone) {
		t.Errorf("a task without a transcript: %v", err)
	}
	if err := Show(t.Context(), io.Discard, Query{Dir: filepath.Join(dir, "none"), Task: "acme/shop#1"}); !errors.Is(err, ErrNone) {
		t.Errorf("no data folder: %v", err)
	}
}

// TestFollow: what is written later is shown once, whole, and in order; so are runs that begin later.
func TestFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := write(t, dir, "7-1-1", "acme/shop#1", noon, said(noon, runlog.KindText, "first"))
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		err := Show(ctx, w, Query{Dir: dir, Task: "acme/shop#1", Follow: true, Level: Info, Every: time.Millisecond})
		_ = w.Close()
		done <- err
	}()
	lines := make(chan string)
	go func() {
		defer close(lines)
		var line []byte
		one := make([]byte, 1)
		for {
			if _, err := r.Read(one); err != nil {
				return
			}
			if line = append(line, one[0]); one[0] == '\n' {
				lines <- string(line)
				line = nil
			}
		}
	}()
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-lines:
			if !strings.Contains(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("nothing came; want %q", want)
		}
	}
	expect("began")
	expect("first")
	torn := fmt.Sprintf(`{"events":[{"time":%q,"kind":"text","text":"second"}]}`, noon.Format(time.RFC3339))
	for _, part := range []string{torn[:20], torn[20:] + "\n"} {
		if _, err := f.WriteString(part); err != nil {
			t.Fatal(err)
		}
	}
	expect("second")
	write(t, dir, "7-1-2", "acme/shop#1", noon, said(noon, runlog.KindText, "third"))
	expect("run 2  began")
	expect("third")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if rest, ok := <-lines; ok {
		t.Errorf("also shown: %q", rest)
	}
}
