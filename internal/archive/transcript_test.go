package archive_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/runlog"
)

// entries reads a transcript's records.
func entries(t *testing.T, d *archive.Dir, run string) (list []runlog.Entry) {
	t.Helper()
	f, err := d.OpenTranscript(run)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	h, err := runlog.ReadTranscript(f, func(e runlog.Entry) error {
		if e.Line != nil || e.End != nil || e.Dropped != nil {
			list = append(list, e)
		}
		return nil
	})
	if err != nil || h.Run != run {
		t.Fatalf("header %+v: %v", h, err)
	}
	return list
}

func finish(t *testing.T, tr *archive.Transcript, e runlog.End) {
	t.Helper()
	if err := tr.End(e); err != nil {
		t.Fatal(err)
	}
}

// TestEndIsTheLastRecord: the end is the last record and is redacted; repeating it has no effect, also after a restart; a different
// outcome is another record.
func TestEndIsTheLastRecord(t *testing.T) {
	t.Parallel()
	d, _ := open(t, func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") })
	end := runlog.End{
		Task: "acme/shop#1", Run: "7-1-1", VM: "vm-1", Step: "implement", Iteration: 2, Start: noon, Ended: noon.Add(time.Minute), Duration: time.Minute,
		InputTokens: 100, OutputTokens: 5, CostMicroUSD: 1200, Metered: true, Cause: runlog.CauseExited, Code: 1,
		Class: runlog.ClassFatal, Error: "auth", Message: "the key hunter2 was refused",
	}
	tr := begin(t, d, "7-1-1")
	add(t, tr, line(1, "one"))
	finish(t, tr, end)
	end.OutputTokens++ // counted meanwhile
	finish(t, tr, end)
	tr = reopen(t, d, "7-1-1")
	add(t, tr, line(1, "one"))
	finish(t, tr, end)
	want := end
	want.Message, want.OutputTokens = "the key *** was refused", 5
	got := entries(t, d, "7-1-1")
	if len(got) != 2 || got[1].End == nil {
		t.Fatalf("records %+v, want a line and one end", got)
	}
	if diff := cmp.Diff(want, *got[1].End); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
	end.Error = "lost"
	finish(t, tr, end)
	if got := entries(t, d, "7-1-1"); len(got) != 3 || got[2].End.Error != "lost" {
		t.Errorf("records %+v, want the other end last", got)
	}
}

// TestLongTranscripts: a transcript beyond its limit keeps the header and the newest records, contains the number of
// dropped ones, and continues after a restart.
func TestLongTranscripts(t *testing.T) {
	t.Parallel()
	const most, lines = 20_000, 500
	all, path := open(t, nil)
	d := all.WithTranscripts(most)
	tr := begin(t, d, "r")
	file := filepath.Join(path, "transcripts", "r.jsonl")
	for n := range int64(lines) {
		if n == lines/2 {
			if err := os.WriteFile(file+".new", []byte("of a process that died"), 0o600); err != nil {
				t.Fatal(err)
			}
			tr = reopen(t, d, "r")
		}
		add(t, tr, line(n+1, fmt.Sprintf("line %d %s", n+1, strings.Repeat("x", 100))), runlog.Event{Kind: runlog.KindText, Text: "hm"})
		if info, err := os.Stat(file); err != nil || info.Size() > most+500 {
			t.Fatalf("after line %d: %v, %d bytes", n+1, err, info.Size())
		}
	}
	finish(t, tr, runlog.End{Run: "r", Class: runlog.ClassSuccess})
	got := entries(t, d, "r")
	gone := got[0].Dropped
	if gone == nil || len(got[0].Events) != 1 || !strings.Contains(got[0].Events[0].Text, fmt.Sprintf("oldest %d records", gone.Records)) {
		t.Fatalf("the first record is %+v", got[0])
	}
	kept := got[1 : len(got)-1]
	if gone.Records+int64(len(kept)) != lines || gone.Last+int64(len(kept)) != lines {
		t.Errorf("%d records are gone, the last of them line %d, and %d are left of %d", gone.Records, gone.Last, len(kept), lines)
	}
	if first := kept[0].Line.Seq; first != gone.Last+1 || kept[len(kept)-1].Line.Seq != lines || got[len(got)-1].End == nil {
		t.Errorf("kept from line %d to %d", first, kept[len(kept)-1].Line.Seq)
	}
	if left := names(t, path); len(left) != 1 {
		t.Errorf("files %v", left)
	}
}

// TestTranscriptThatCannotBeShortened: such a transcript is continued, and not copied for each line.
func TestTranscriptThatCannotBeShortened(t *testing.T) {
	t.Parallel()
	all, path := open(t, nil)
	d := all.WithTranscripts(10)
	tr := begin(t, d, "r")
	add(t, tr, line(1, "one"))
	first, err := os.Stat(filepath.Join(path, "transcripts", "r.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	add(t, tr, line(2, ""))
	second, err := os.Stat(filepath.Join(path, "transcripts", "r.jsonl"))
	if err != nil || !os.SameFile(first, second) {
		t.Errorf("%v, the file was copied at the next line again", err)
	}
	add(t, tr, line(3, strings.Repeat("long ", 100)))
	got := entries(t, d, "r")
	if last := got[len(got)-1]; got[0].Dropped == nil || got[0].Dropped.Last == 0 || last.Line != nil && last.Line.Seq != 3 {
		t.Errorf("records %+v", got)
	}
}

// TestReadersOfAShortenedTranscript: readers can finish reading the file that they opened.
func TestReadersOfAShortenedTranscript(t *testing.T) {
	t.Parallel()
	all, _ := open(t, nil)
	d := all.WithTranscripts(2_000)
	tr := begin(t, d, "r")
	add(t, tr, line(1, "the first line"))
	f, err := d.OpenTranscript("r")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for n := range int64(50) {
		add(t, tr, line(n+2, strings.Repeat("x", 100)))
	}
	data, err := io.ReadAll(f)
	if err != nil || !strings.Contains(string(data), "the first line") {
		t.Errorf("%v, the file that was open lost its beginning", err)
	}
	if got := entries(t, d, "r"); got[0].Dropped == nil {
		t.Error("nothing was dropped: this proves nothing")
	}
}

// TestSummary: a summary replaces the earlier one, is redacted, and is pruned with the transcripts.
func TestSummary(t *testing.T) {
	t.Parallel()
	d, path := open(t, func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") })
	if at := d.SummaryTime("7-1-life-1"); !at.IsZero() {
		t.Errorf("written at %s", at)
	}
	for _, text := range []string{`{"a":"hunter2"}`, `{"b":"hunter2"}`} {
		if err := d.SaveSummary("7-1-life-1", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(path, "transcripts", "7-1-life-1.summary.json")
	if data, err := os.ReadFile(file); err != nil || string(data) != `{"b":"***"}` {
		t.Errorf("%s, %v", data, err)
	}
	if at := d.SummaryTime("7-1-life-1"); time.Since(at) > time.Hour {
		t.Errorf("written at %s", at)
	}
	if err := d.SaveSummary("../x", nil); err == nil {
		t.Error("a name that leads elsewhere was taken")
	}
	if n, err := d.Prune(time.Now(), time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("%d files pruned, %v", n, err)
	}
}
