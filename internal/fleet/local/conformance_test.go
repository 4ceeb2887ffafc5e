package local_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/fleettest"
	"github.com/errand-bot/errand/internal/fleet/local"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			fleettest.Run(t, func(t *testing.T) fleettest.World {
				var cfg local.Config
				_, signer := newProvider(t, kind, func(c *local.Config) { cfg = *c })
				again := func(deployment string) func(*testing.T) fleet.Provider {
					return func(t *testing.T) fleet.Provider {
						cfg := cfg
						cfg.Deployment = deployment
						p, err := local.New(cfg)
						if err != nil {
							t.Fatal(err)
						}
						return p
					}
				}
				return fleettest.World{
					Provider: again("test"), Stranger: again("stranger"), Signer: signer, Processes: processes,
				}
			})
		})
	}
}

// processes counts those on this host with mark in their arguments. A box's
// processes are seen here even if they have a process namespace of their own.
func processes(t *testing.T, mark string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("SKIP: no /proc here")
	}
	n := 0
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && bytes.Contains(data, []byte(mark)) && !strings.Contains(string(data), "kill -0") {
			n++
		}
	}
	return n
}
