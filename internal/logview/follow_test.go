package logview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
)

// summarize writes the summary of a life of the task 7-1.
func summarize(t *testing.T, dir string, life int, phase state.Phase) {
	t.Helper()
	data, err := json.Marshal(state.Summary{Task: "acme/renamed#1", Life: life, Phase: phase})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "transcripts", fmt.Sprintf("7-1-life-%d.summary.json", life)), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFollowEnds: follow ends with the task, or with the run that was asked for, and not before everything was written.
func TestFollowEnds(t *testing.T) {
	t.Parallel()
	ended := []runlog.Entry{said(noon, runlog.KindText, "the text"), {End: &runlog.End{Run: "7-1-1", Ended: noon, Class: runlog.ClassSuccess, Cause: runlog.CauseExited}}}
	for name, c := range map[string]struct {
		run     int
		entries []runlog.Entry
		age     time.Duration // of the transcript
		lives   []state.Phase
		other   state.Phase // of a task whose number begins in the same way
		want    string
	}{
		"task ended":                {entries: ended, lives: []state.Phase{state.PhaseDone}, want: "The task acme/shop#1 has ended."},
		"task was canceled":         {entries: ended, lives: []state.Phase{state.PhaseDone, state.PhaseCancelled}, want: "The task acme/shop#1 has ended."},
		"task waits":                {entries: ended, lives: []state.Phase{state.PhaseAwaitingPlanApproval}},
		"task failed":               {entries: ended, lives: []state.Phase{state.PhaseFailed}},
		"task began again":          {entries: ended, lives: []state.Phase{state.PhaseCancelled, state.PhaseImplementing}},
		"tenth life":                {entries: ended, lives: append(make([]state.Phase, 8), state.PhaseDone, state.PhaseImplementing)},
		"another task ended":        {entries: ended, other: state.PhaseDone},
		"run ended":                 {run: 1, entries: ended, lives: []state.Phase{state.PhaseImplementing}, want: "Run 1 has ended."},
		"run works":                 {run: 1, entries: ended[:1], lives: []state.Phase{state.PhaseImplementing}},
		"run is stopping":           {entries: ended[:1], lives: []state.Phase{state.PhaseCancelled}},
		"run that nobody will end":  {entries: ended[:1], age: 2 * silence, lives: []state.Phase{state.PhaseCancelled}, want: "The task acme/shop#1 has ended."},
		"no summary":                {entries: ended},
		"run of an unfinished task": {run: 1, entries: ended, want: "Run 1 has ended."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			f := write(t, dir, "7-1-1", "acme/shop#1", noon, c.entries...)
			for i, phase := range c.lives {
				summarize(t, dir, i+1, phase)
			}
			if c.other != "" {
				summarize(t, dir, 1, c.other)
				if err := os.Rename(filepath.Join(dir, "transcripts", "7-1-life-1.summary.json"), filepath.Join(dir, "transcripts", "7-11-life-1.summary.json")); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chtimes(f.Name(), time.Time{}, time.Now().Add(-c.age)); err != nil {
				t.Fatal(err)
			}
			var out, notes bytes.Buffer
			q := Query{Dir: dir, Task: "acme/shop#1", Run: c.run, Level: Info, Follow: true, Notes: &notes, Every: time.Millisecond}
			v := view{q: q, out: &out, files: map[string]*file{}}
			if err := v.poll(); err != nil {
				t.Fatal(err)
			}
			if got := v.over(time.Now()); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if c.want == "" {
				return
			}
			out.Reset()
			if err := Show(t.Context(), &out, q); err != nil || notes.String() != c.want+"\n" || strings.Count(out.String(), "the text") != 1 {
				t.Errorf("got %v, note %q, output\n%s", err, notes.String(), out.String())
			}
		})
	}
}

// TestFollowAcrossRestart: errand is killed in the middle of a record and at the end of one; after each restart it repeats the lines of the
// run's log that it is not sure to have stored. A follower prints each line once, in order.
func TestFollowAcrossRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out bytes.Buffer
	v := view{q: Query{Dir: dir, Task: "acme/shop#1", Level: Info}, out: &out, files: map[string]*file{}}
	var want []string
	line := func(n int64) (runlog.Line, []runlog.Event) {
		text := fmt.Sprintf("line %d", n)
		return runlog.Line{Seq: n, Time: noon, Stream: runlog.StreamStdout, Text: text}, []runlog.Event{{Seq: n, Time: noon, Kind: runlog.KindText, Text: text}}
	}
	next := int64(1)
	for life := range 4 {
		files, err := archive.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if life == 0 {
			if err := files.BeginTranscript("7-1-1", runlog.Header{Run: "7-1-1", Task: "acme/shop#1", Started: noon}); err != nil {
				t.Fatal(err)
			}
		}
		tr, err := files.Transcript("7-1-1")
		if err != nil {
			t.Fatal(err)
		}
		for n := max(1, next-3); n < next+4; n++ { // the last three lines are repeated
			if err := tr.Add(line(n)); err != nil {
				t.Fatal(err)
			}
			if err := v.poll(); err != nil {
				t.Fatal(err)
			}
			if n >= next {
				want = append(want, fmt.Sprintf("2026-11-21 12:00:00  run 1  text: line %d", n))
			}
		}
		next += 4
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
		if life%2 == 0 {
			torn(t, filepath.Join(dir, "transcripts", "7-1-1.jsonl"), fmt.Sprintf(`{"line":{"seq":%d,"tex`, next))
			if err := v.poll(); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if diff := cmp.Diff(want, got[1:]); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

// torn appends the beginning of a record to a transcript.
func torn(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}
