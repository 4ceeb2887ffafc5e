package demo_test

import (
	"os"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/state"
)

// TestTheLifeOnHetzner plays the whole life on servers of the stand-in for Hetzner. Between pull request and
// review the paid hour ends and the VM sleeps; the demo itself checks that the agent's session goes on.
func TestTheLifeOnHetzner(t *testing.T) {
	t.Parallel()
	for _, sleep := range []state.SleepMode{state.SleepArchive, state.SleepSnapshot} {
		t.Run(string(sleep), func(t *testing.T) {
			t.Parallel()
			exe, err := os.Executable()
			check(t, err)
			if _, err := demo.NewMachines(t.Context(), local.Config{Dir: t.TempDir(), Kind: local.KindAuto, Runner: exe}); err != nil {
				t.Skipf("skipped: %v", err)
			}
			if sleep == state.SleepSnapshot && os.Getenv("ERRAND_TEST_FULL") == "" {
				t.Skip("skipped: the second life is for full tests")
			}
			p := playWith(t, func(c *demo.Config) {
				c.Kind, c.Provider, c.Sleep = local.KindAuto, demo.ProviderHetzner, string(sleep)
			})
			p.wantNoSecrets(t)
			if n := len(p.task.VMs); n < 2 || p.task.VM != nil {
				t.Errorf("%d VMs, and now %+v", n, p.task.VM)
			}
			for i, vm := range p.task.VMs {
				if want := map[bool]string{true: "done", false: "asleep"}[i+1 == len(p.task.VMs)]; vm.Why != want || vm.MicroHour == 0 || vm.Currency != "EUR" {
					t.Errorf("VM %d: %+v, want that it ended as %s and had a price", i, vm, want)
				}
			}
			last := p.bot[len(p.bot)-1].Body
			if !strings.Contains(last, "EUR") && !strings.Contains(last, "€") {
				t.Errorf("the last comment does not say what the VMs have cost:\n%s", last)
			}
			servers := 0
			for _, l := range p.world.Cloud.Bill().Lines {
				if l.Kind == "server" {
					servers++
				}
			}
			counts, all := p.world.Cloud.Counts()
			t.Logf("%d servers, %d requests: %v", servers, all, counts)
			if most := 25*servers + 25; all > most { // the second 25: set-up, prices, and the looks of a demo in a hurry
				t.Errorf("%d requests of %d servers, at most %d", all, servers, most)
			}
		})
	}
}
