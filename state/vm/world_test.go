package vm

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/blob"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// began is the initial time of each test's clock.
var began = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// testRows are rows in their own database file, with a clock that the test moves. They are checked when the test ends.
type testRows struct {
	*Rows
	db   kv.DB
	path string

	mu    sync.Mutex
	clock time.Time
}

func newTestRows(t *testing.T) *testRows {
	t.Helper()
	s := &testRows{clock: began, path: filepath.Join(t.TempDir(), "errand.db")}
	s.reopen(t)
	t.Cleanup(func() {
		if problems := s.problems(t); len(problems) > 0 {
			t.Errorf("got inconsistent rows: %q", problems)
		}
		if err := s.db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// reopen closes the file, if it is open, and opens it again.
func (s *testRows) reopen(t *testing.T) {
	t.Helper()
	if s.db != nil {
		if err := s.db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	db, err := boltkv.Open(s.path, boltkv.Options{CheckRepeatable: true})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := blob.New(blob.NewCloner())
	if err != nil {
		t.Fatal(err)
	}
	s.db, s.Rows = db, New(db, codec, s.time)
}

func (s *testRows) time() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

func (s *testRows) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = s.clock.Add(d)
}

// problems returns the inconsistencies that Check finds, and the missing keys.
func (s *testRows) problems(t *testing.T) (found []string) {
	t.Helper()
	err := s.db.View(context.Background(), func(r kv.Reader) error {
		pairs, err := r.Range("", "", 0)
		if err != nil {
			return err
		}
		var keys []string
		exists := map[string]bool{}
		for _, p := range pairs {
			keys = append(keys, p.Key)
			exists[p.Key] = true
		}
		want := func(key, owner string) {
			if !exists[key] {
				found = append(found, owner+": "+key+" is missing")
			}
		}
		s.Check(r, keys, want, func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
