package server

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// TestPausedBakeIsNotUnderWay: a bake counts as work that begins until it has its VM, and one that a pause keeps from beginning does not.
func TestPausedBakeIsNotUnderWay(t *testing.T) {
	t.Parallel()
	s := &Server{cfg: config.Config{Data: filepath.Join(t.TempDir(), "data")}, opts: Options{}.withDefaults()}
	if err := s.openStore(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.file.Close() })
	begun, err := s.beginBake(t.Context())
	if err != nil || s.bakesBeginning.Load() != 1 {
		t.Fatalf("%v, %d bakes begin", err, s.bakesBeginning.Load())
	}
	if _, err := s.store.Pauses.Set(t.Context(), state.Pause{By: "token"}, store.Action{ID: "1", Command: "pause"}); err != nil {
		t.Fatal(err)
	}
	if n := s.bakesBeginning.Load(); n != 1 {
		t.Errorf("%d bakes begin, want the one from before the pause", n)
	}
	begun()
	begun()
	if _, err := s.beginBake(t.Context()); err == nil || !strings.Contains(err.Error(), "so no VM is created") || s.bakesBeginning.Load() != 0 {
		t.Errorf("while paused: %v, %d bakes begin", err, s.bakesBeginning.Load())
	}
}
