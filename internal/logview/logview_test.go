package logview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
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
		runlog.Entry{End: &runlog.End{Cause: runlog.CauseExited, Code: 1, Class: "fatal", Error: "max_turns", Message: "Its turns were used up.",
			Ended: noon.Add(2 * time.Hour), Duration: time.Hour, InputTokens: 10, OutputTokens: 2, CostMicroUSD: 1500}})
	write(t, dir, "7-1-1", "acme/shop#1", noon,
		said(noon, runlog.KindText, "two\nlines\x1b[31m"), said(noon, runlog.KindThinking, "hm"),
		runlog.Entry{Line: &runlog.Line{Time: noon, Stream: runlog.StreamRunner, Text: "set-up took long"}})
	write(t, dir, "7-2-1", "acme/shop#2", noon, said(noon, runlog.KindText, "of another task"))
	return dir
}

// A program's result that repeats the agent's last text is not printed twice, unless the text was not shown.
func TestResultAsAbove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	later := noon.Add(time.Minute)
	entries := []runlog.Entry{said(noon, runlog.KindText, "the plan"), said(later, runlog.KindResult, "the plan"), said(later, runlog.KindResult, "another")}
	for i := range entries {
		entries[i].Line.Seq = int64(i + 1)
	}
	write(t, dir, "7-1-1", "acme/shop#1", noon, entries...)
	for name, tt := range map[string]struct {
		q            Query
		want, absent string
	}{
		"all":       {Query{Level: Info}, "result: as above", "result: the plan"},
		"differs":   {Query{Level: Info}, "result: another", ""},
		"the end":   {Query{Level: Info, Since: later}, "result: the plan", "as above"},
		"as events": {Query{Level: Info, Events: true}, `"text":"another"`, "as above"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.q.Dir, tt.q.Task = dir, "acme/shop#1"
			var out bytes.Buffer
			if err := Show(t.Context(), &out, tt.q); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); !strings.Contains(got, tt.want) || tt.absent != "" && strings.Contains(got, tt.absent) {
				t.Errorf("not %q, or %q:\n%s", tt.want, tt.absent, got)
			}
		})
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	dir := sample(t)
	for name, c := range map[string]struct {
		q    Query
		want []string
	}{
		"a task": {q: Query{Level: Info}, want: []string{
			"2026-11-21 12:00:00  run 1  began: preliminary plan, claude, sonnet, withheld: 1",
			"2026-11-21 12:00:00  run 1  text: two", "    lines[31m",
			"2026-11-21 12:00:00  run 1  runner: set-up took long",
			"2026-11-21 13:00:00  run 2  began: preliminary plan, claude, sonnet, withheld: 1",
			"2026-11-21 13:00:00  run 2  tool use: Bash go test",
			"2026-11-21 13:00:00  run 2  tool result: failed: no such file",
			"2026-11-21 14:00:00  run 2  ended: fatal, max turns, exited with code 1, after 1h0m0s, 10 tokens in, 2 out, $0.0015", "    Its turns were used up.",
		}},
		"a run, what matters": {q: Query{Level: Warn, Run: 1}, want: []string{
			"2026-11-21 12:00:00  run 1  began: preliminary plan, claude, sonnet, withheld: 1",
			"2026-11-21 12:00:00  run 1  runner: set-up took long",
		}},
		"lately": {q: Query{Since: noon.Add(90 * time.Minute)}, want: []string{
			"2026-11-21 14:00:00  run 2  ended: fatal, max turns, exited with code 1, after 1h0m0s, 10 tokens in, 2 out, $0.0015", "    Its turns were used up.",
		}},
		"an end, for programs": {q: Query{Events: true, Run: 2, Level: Error}, want: []string{
			`{"run":"7-1-2","kind":"end","end":{"task":"","run":"","step":"","iteration":0,"end":"2026-11-21T14:00:00Z","duration_ns":3600000000000,"input_tokens":10,"output_tokens":2,"cost_micro_usd":1500,"exit_cause":"exited","exit_code":1,"exit_class":"fatal","error_class":"max_turns","message":"Its turns were used up."}}`,
		}},
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

// TestNoSuchRun: for a run that a task does not have, its runs are named; nobody waits for it, unless it is the next one of a task that goes on.
func TestNoSuchRun(t *testing.T) {
	t.Parallel()
	dir := sample(t)
	for _, follow := range []bool{false, true} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := Show(ctx, io.Discard, Query{Dir: dir, Task: "acme/shop#1", Run: 9, Follow: follow, Every: time.Millisecond})
		cancel()
		if err == nil || err.Error() != "acme/shop#1 has no run 9; its runs are: 1, 2" {
			t.Errorf("follow %v: got %v", follow, err)
		}
	}
	for _, q := range []Query{{Task: "acme/shop#77", Run: 1}, {Task: "acme/shop#1", Run: 3}} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		q.Dir, q.Follow, q.Every = dir, true, time.Millisecond
		if err := Show(ctx, io.Discard, q); err != nil || ctx.Err() == nil {
			t.Errorf("run %d of %s, which may begin: got %v", q.Run, q.Task, err)
		}
		cancel()
	}
	end, err := json.Marshal(state.Summary{Phase: state.PhaseCancelled})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "transcripts", "7-1-life-1"+summarySuffix), end, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Show(t.Context(), io.Discard, Query{Dir: dir, Task: "acme/shop#1", Run: 3, Follow: true, Every: time.Millisecond}); err == nil {
		t.Error("the next run of an ended task is awaited")
	}
}

// TestFollow: later entries are printed once, complete and in order; so are runs that start later.
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

// TestFollowAcrossTruncationOfTheBeginning: entries that were printed before a transcript was shortened are not repeated, and no later
// ones are missing; a new reader is informed about the dropped records.
func TestFollowAcrossTruncationOfTheBeginning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files, err := archive.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.BeginTranscript("7-1-1", runlog.Header{Run: "7-1-1", Task: "acme/shop#1", Step: "implement", Started: noon}); err != nil {
		t.Fatal(err)
	}
	tr, err := files.WithTranscripts(5_000).Transcript("7-1-1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tr.Close() }()
	var out bytes.Buffer
	v := view{q: Query{Dir: dir, Task: "acme/shop#1", Level: Info}, out: &out, files: map[string]*file{}}
	var want []string
	for n := range int64(100) {
		text := fmt.Sprintf("line %d", n+1)
		want = append(want, "2026-11-21 12:00:00  run 1  text: "+text)
		l := runlog.Line{Seq: n + 1, Time: noon, Stream: runlog.StreamStdout, Text: strings.Repeat("x", 200)}
		if err := tr.Add(l, []runlog.Event{{Seq: n + 1, Time: noon, Kind: runlog.KindText, Text: text}}); err != nil {
			t.Fatal(err)
		}
		if n%3 != 0 && n < 99 {
			continue
		}
		if err := v.poll(); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.End(runlog.End{Run: "7-1-1", Ended: noon, Class: runlog.ClassSuccess, Cause: runlog.CauseExited}); err != nil {
		t.Fatal(err)
	}
	if err := v.poll(); err != nil {
		t.Fatal(err)
	}
	want = append([]string{"2026-11-21 12:00:00  run 1  began: implement"}, append(want, "2026-11-21 12:00:00  run 1  ended: success, exited with code 0")...)
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(out.String()), "\n")); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	out.Reset()
	if err := Show(t.Context(), &out, Query{Dir: dir, Task: "acme/shop#1", Level: Info}); err != nil {
		t.Fatal(err)
	}
	if shown := strings.Split(out.String(), "\n"); len(shown) > 40 || !strings.Contains(shown[1], "oldest") {
		t.Errorf("a late reader is shown %d lines, the second is %q", len(shown), shown[1])
	}
}

// TestWordsAreAttributed: the program's text is attributed to the program, the runner's to the runner, and errand's own
// sentence to neither.
func TestWordsAreAttributed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, e := range []runlog.End{{ProgramError: "zorp"}, {RunnerNote: "no space"}, {ProgramError: "zorp", RunnerNote: "no space"}, {}} {
		e.Cause, e.Class, e.Error, e.Message, e.Ended = runlog.CauseExited, "fatal", "crashed", "It fell over.", noon
		write(t, dir, fmt.Sprintf("7-1-%d", i+1), "acme/shop#1", noon, runlog.Entry{End: &e})
	}
	for i, want := range [][]string{{"the agent's program reported: zorp"}, {"the runner reported: no space"}, {"the agent's program reported: zorp", "the runner reported: no space"}, nil} {
		var out bytes.Buffer
		if err := Show(t.Context(), &out, Query{Dir: dir, Task: "acme/shop#1", Run: i + 1}); err != nil {
			t.Fatal(err)
		}
		got := out.String()
		if n := strings.Count(got, " reported: "); n != len(want) || strings.Contains(got, "reported: It fell over") || !strings.Contains(got, "It fell over.") {
			t.Errorf("run %d: %s", i, got)
		}
		for _, words := range want {
			if !strings.Contains(got, words) {
				t.Errorf("run %d lacks %q: %s", i, words, got)
			}
		}
	}
}

// TestTerminalsAreNotControlled: no text of a transcript, as text or as JSON, contains a character that a terminal interprets, and JSON keeps
// its value.
func TestTerminalsAreNotControlled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	evil := "a\x1b]0;title\x07\x1b[2J\u009b31m\x7f\r\u202eb\u2066c\u200f\x00"
	write(t, dir, "7-1-1", "acme/shop#1", noon, said(noon, runlog.KindText, evil),
		runlog.Entry{Events: []runlog.Event{{Seq: 2, Time: noon, Kind: runlog.KindToolUse, ToolName: evil, Input: `{"command":"x` + "\u009b" + `"}`}}},
		runlog.Entry{End: &runlog.End{Ended: noon, Class: runlog.ClassSuccess, Cause: runlog.CauseExited, ProgramError: evil}})
	for _, events := range []bool{false, true} {
		var out bytes.Buffer
		if err := Show(t.Context(), &out, Query{Dir: dir, Task: "acme/shop#1", Events: events}); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(out.String(), func(r rune) bool { return r != '\n' && (isControl(r) || unicode.Is(unicode.Bidi_Control, r)) }); i >= 0 {
			t.Errorf("events %v: %q has a control character at %d", events, out.String(), i)
		}
		if !events {
			continue
		}
		var first struct{ Text string }
		if line, _, _ := strings.Cut(out.String(), "\n"); json.Unmarshal([]byte(line), &first) != nil || first.Text != evil {
			t.Errorf("JSON has changed the text to %q", first.Text)
		}
	}
}
