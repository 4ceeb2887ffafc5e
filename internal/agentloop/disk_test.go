package agentloop_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/agentloop/wire"
	"github.com/errand-bot/errand/internal/disktest"
	"github.com/errand-bot/errand/internal/sim/simmodel"
)

// TestSessionWithoutPower: the session of a successful run, including its last message, survives a power cut.
func TestSessionWithoutPower(t *testing.T) {
	t.Parallel()
	disktest.Run(t, disktest.Disk{
		Play: func(t *testing.T, dir string) {
			w := newWorld(t, simmodel.Turn{Text: "the last word"})
			set := w.settings()
			set.Home, set.Session = dir, idA
			_, r := w.run(t.Context(), set, "begin")
			w.need(r, wire.CauseOK)
			disktest.Say("ended")
		},
		Check: func(t *testing.T, dir string, said []string) {
			data, err := os.ReadFile(filepath.Join(dir, wire.SessionDir, idA+".jsonl"))
			if len(said) > 0 && (err != nil || !strings.Contains(string(data), "the last word")) {
				t.Errorf("the session has %d bytes: %v", len(data), err)
			}
		},
	})
}

// TestSessionOnABrokenDisk: a run whose session cannot be written, synced or closed fails.
func TestSessionOnABrokenDisk(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]disktest.Kind{"create": disktest.Create, "write": disktest.Write, "a later write": disktest.Write, "sync": disktest.Sync, "close": disktest.Close} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			disktest.Run(t, disktest.Disk{
				Play: func(t *testing.T, dir string) {
					w := newWorld(t, simmodel.Turn{Text: "the last word"})
					set := w.settings()
					set.Home, set.Session = dir, idA
					if _, r := w.run(t.Context(), set, "begin"); r.Cause == wire.CauseOK {
						t.Errorf("it ended well: %+v", r)
					}
				},
				Fail: func(c disktest.Call, _ []string) syscall.Errno {
					if c.Kind != kind || !strings.HasSuffix(c.Path, ".jsonl") {
						return 0
					}
					if calls++; calls < 3 && name == "a later write" {
						return 0
					}
					return syscall.ENOSPC
				},
			})
		})
	}
}
