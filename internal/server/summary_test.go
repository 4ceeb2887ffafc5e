package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// TestSummaries: what a task has come to is written when it turns, and at the start if that was missed; a task that
// turned longer ago than transcripts are kept gets none.
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
	s := &Server{archive: files, opts: Options{Log: zerolog.Nop(), Now: func() time.Time { return now }}, cfg: config.Default()}
	s.store, err = state.Open(t.Context(), db, state.Options{Now: time.Now, Policy: state.DefaultPolicy(), Turned: s.summarise})
	if err != nil {
		t.Fatal(err)
	}
	by := state.Person{ID: 1, Login: "hunter2"}
	_, err = s.store.Apply(t.Context(), state.Event{
		Kind: state.EventTriggered, Task: state.TaskKey{Repo: 7, Issue: 3}, By: by, Permission: state.PermissionWrite, Via: "assigned",
		Repo: &state.Repo{ID: 7, Owner: "acme", Name: "shop"}, Issue: &state.Issue{Title: "x"}, At: now,
	}, state.Ack{})
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
	s.summariseMissed(t.Context())
	look()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	now = now.Add(s.cfg.Keep.Transcripts + time.Hour)
	s.summariseMissed(t.Context())
	if !files.SummaryTime("7-3-life-1").IsZero() {
		t.Error("there is a summary of a task whose transcripts are gone")
	}
}
