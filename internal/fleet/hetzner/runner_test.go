package hetzner_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
)

// TestRunnerUser: a server says for good whether its user data made a user for the runner: one that an older version
// ordered did not, and gets one when its disk is rebuilt.
func TestRunnerUser(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	ctx := t.Context()
	one := map[string]string{fleet.FactHome: hetzner.Home}
	two := map[string]string{fleet.FactHome: hetzner.Home, fleet.FactRunnerLogin: "errand-runner", fleet.FactRunnerDir: "/usr/local/lib/errand"}
	before := p.provider(func(c *hetzner.Config) { c.OneUser = true })
	now := p.provider(nil)
	for name, of := range map[string]*hetzner.Provider{"vm-old": before, "vm-new": now} {
		_, err := of.Create(ctx, spec(name))
		noErr(t, "create", err)
	}
	p.clock.Advance(time.Minute)
	facts := func(name string) map[string]string {
		t.Helper()
		vm, err := now.Create(ctx, spec(name)) // adopts it, although the other provider created it
		noErr(t, "adopt", err)
		return vm.Facts
	}
	if diff := cmp.Diff(one, facts("vm-old")); diff != "" {
		t.Errorf("one that was made before (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(two, facts("vm-new")); diff != "" {
		t.Errorf("one that is made now (-want +got):\n%s", diff)
	}
	p.state(now, "vm-old", fleet.StateRunning)
	_, err := now.Rebuild(ctx, "vm-old", spec("vm-again"))
	noErr(t, "rebuild", err)
	if diff := cmp.Diff(two, facts("vm-again")); diff != "" {
		t.Errorf("one with a fresh disk (-want +got):\n%s", diff)
	}
}
