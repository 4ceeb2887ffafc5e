package summary

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/store"
)

// TestSummaries: a task's summary is written after a change of phase, and at startup if that was missed. A task whose
// last change is older than the retention of transcripts gets none.
func TestSummaries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files, err := archive.Open(dir, func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") })
	if err != nil {
		t.Fatal(err)
	}
	db, err := boltkv.Open(filepath.Join(dir, "errand.db"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	now := time.Now()
	const keep = 30 * 24 * time.Hour
	var w *Writer
	st, err := store.Open(t.Context(), db, store.Options{
		Now: time.Now, Policy: machine.DefaultPolicy(), PhaseChanged: func(ctx context.Context, key state.TaskKey) { w.Write(ctx, key) },
	})
	if err != nil {
		t.Fatal(err)
	}
	w = NewWriter(Config{
		Store: st, Archive: files, Follows: func(string) bool { return false }, Keep: keep, Now: func() time.Time { return now }, Log: zerolog.Nop(),
	})
	by := state.Person{ID: 1, Login: "hunter2"}
	_, err = st.Apply(t.Context(), event.Event{
		Task:       state.TaskKey{Repo: 7, Issue: 3},
		By:         by,
		Permission: state.PermissionWrite,
		Via:        "assigned",
		Repo:       &state.Repo{ID: 7, Owner: "acme", Name: "shop"},
		At:         now,
		Payload:    event.Triggered{Issue: &state.Issue{Title: "x"}},
	}, store.Ack{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "transcripts", "7-3-life-1.summary.json")
	look := func() {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var got state.Summary
		if err := json.Unmarshal(data, &got); err != nil || got.Task != "acme/shop#3" || got.Phase != state.PhaseQueued || strings.Contains(string(data), "hunter2") {
			t.Errorf("%v, %s", err, data)
		}
	}
	look()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.WriteMissed(t.Context())
	look()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	now = now.Add(keep + time.Hour)
	w.WriteMissed(t.Context())
	if !files.SummaryTime("7-3-life-1").IsZero() {
		t.Error("there is a summary of a task whose transcripts are gone")
	}
}

// TestTranscriptsOfStoppedRunsEnd: the transcript of a run that was stopped while its VM was gone, or whose end was not
// read before errand was killed, still gets one end. A run without a transcript gets none.
func TestTranscriptsOfStoppedRunsEnd(t *testing.T) {
	t.Parallel()
	files, err := archive.Open(t.TempDir(), func(s string) string { return s })
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"7-3-1", "7-3-2"} {
		if err := files.BeginTranscript(run, runlog.Header{Run: run}); err != nil {
			t.Fatal(err)
		}
	}
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	task := &state.Task{Key: state.TaskKey{Repo: 7, Issue: 3}, TaskIssue: state.TaskIssue{Repo: state.Repo{Owner: "acme", Name: "shop"}}, TaskRuns: state.TaskRuns{Runs: []state.Run{
		{ID: "7-3-1", Seq: 1, Kind: state.RunPlan, State: state.RunEnded, RunVerdict: state.RunVerdict{Status: state.StatusOK, Class: state.RunSucceeded, Reported: true}},
		{ID: "7-3-2", Seq: 2, Kind: state.RunImplement, State: state.RunEnded, RunLaunch: state.RunLaunch{VM: "vm-1"}, Started: noon, Ended: noon.Add(time.Minute), RunVerdict: state.RunVerdict{Status: state.StatusInterrupted, Class: state.RunRetryable, Message: "stopped by @ada"}},
		{ID: "7-3-3", Seq: 3, Kind: state.RunImplement, State: state.RunEnded, RunVerdict: state.RunVerdict{Status: state.StatusInterrupted, Class: state.RunRetryable}}, // was never launched
	}}}
	for range 3 { // also by another process
		w := NewWriter(Config{Archive: files, Follows: func(string) bool { return false }, Log: zerolog.Nop()})
		for range 2 {
			if err := w.closeTranscripts(task); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := map[string][]runlog.End{"7-3-1": nil, "7-3-2": {{
		Task: "acme/shop#3", Run: "7-3-2", VM: "vm-1", Step: "implement", Iteration: 1, Start: noon, Ended: noon.Add(time.Minute), Duration: time.Minute,
		Cause: runlog.CauseLost, Class: runlog.ClassRetryable, Error: "interrupted", Message: "stopped by @ada; its end could not be read from its VM",
	}}}
	for run, want := range want {
		f, err := files.OpenTranscript(run)
		if err != nil {
			t.Fatal(err)
		}
		var got []runlog.End
		_, err = runlog.ReadTranscript(f, func(e runlog.Entry) error {
			if e.End != nil {
				got = append(got, *e.End)
			}
			return nil
		})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", run, err, diff)
		}
		_ = f.Close()
	}
	if _, err := files.OpenTranscript("7-3-3"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a run that was never launched: %v", err)
	}
}
