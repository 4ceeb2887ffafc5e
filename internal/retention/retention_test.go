package retention

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/store"
)

// TestTranscriptsAreKeptAsLongAsConfigured: keep.transcripts applies to whole files and to the temporary file of a
// process that was killed while it shortened one.
func TestTranscriptsAreKeptAsLongAsConfigured(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	files, err := archive.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	db, err := boltkv.Open(filepath.Join(dir, "errand.db"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	st, err := store.Open(t.Context(), db, store.Options{Now: time.Now, Policy: machine.DefaultPolicy()})
	if err != nil {
		t.Fatal(err)
	}
	reached, err := egress.OpenLog(filepath.Join(dir, "egress"))
	if err != nil {
		t.Fatal(err)
	}
	for run, days := range map[string]int{"7-1-1": 8, "7-1-2": 6} {
		if err := files.BeginTranscript(run, runlog.Header{Run: run}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "transcripts", run+".jsonl")
		if err := os.WriteFile(path+".new", []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		at := now.Add(-time.Duration(days) * 24 * time.Hour)
		for _, file := range []string{path, path + ".new"} {
			if err := os.Chtimes(file, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := NewCleaner(Config{
		Archive: files, Store: st, Egress: reached, AfterEnd: 24 * time.Hour, Transcripts: 90 * 24 * time.Hour,
		Now: func() time.Time { return now }, Log: zerolog.Nop(),
	})
	left := func() []string {
		entries, err := os.ReadDir(filepath.Join(dir, "transcripts"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	c.Clean(t.Context())
	if got := left(); len(got) != 4 {
		t.Errorf("with the default: got remaining %q", got)
	}
	c.cfg.Transcripts = 7 * 24 * time.Hour
	c.Clean(t.Context())
	if got := left(); len(got) != 2 || slices.ContainsFunc(got, func(name string) bool { return !strings.HasPrefix(name, "7-1-2") }) {
		t.Errorf("after seven days: got remaining %q", got)
	}
}
