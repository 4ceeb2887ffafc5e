package demo_test

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// TestLifeOnHetzner plays the complete life on servers of the Hetzner simulator. Between pull request and review the
// paid hour ends and the VM is suspended; the demo itself checks that the agent's session continues.
func TestLifeOnHetzner(t *testing.T) {
	t.Parallel()
	lifeOnHetzner(t, settings.SleepArchive)
}

// TestHeavyLifeOnHetzner is TestLifeOnHetzner with snapshots instead of archives.
func TestHeavyLifeOnHetzner(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	lifeOnHetzner(t, settings.SleepSnapshot)
}

func lifeOnHetzner(t *testing.T, sleep settings.SleepMode) {
	t.Helper()
	exe, err := os.Executable()
	check(t, err)
	if _, err := demo.NewMachines(t.Context(), local.Config{Dir: t.TempDir(), Kind: local.KindAuto, Runner: exe}); err != nil {
		t.Skipf("skipped: %v", err)
	}
	p := playWith(t, func(c *demo.Config) {
		c.Kind, c.Provider, c.Sleep = local.KindAuto, demo.ProviderHetzner, string(sleep)
	})
	p.wantNoSecrets(t)
	if n := len(p.task.VMs); n < 2 || p.task.VM != nil {
		t.Errorf("got %d VMs, current VM %+v", n, p.task.VM)
	}
	for i, vm := range p.task.VMs {
		ended := vm.EndReason == "asleep" || vm.EndReason == "done" && i+1 == len(p.task.VMs) // on a slow machine, the last one is suspended, too
		if !ended || vm.MicroHour == 0 || vm.Currency != "EUR" {
			t.Errorf("VM %d: got %+v, want its end and a price", i, vm)
		}
	}
	last := slices.MaxFunc(p.bot, func(a, b *simgithub.Comment) int { return cmp.Compare(a.ID, b.ID) }).Body
	if !strings.Contains(last, "EUR") && !strings.Contains(last, "€") {
		t.Errorf("the last comment lacks the cost of the VMs:\n%s", last)
	}
	servers := 0
	for _, l := range p.world.Cloud.Bill().Lines {
		if l.Kind == "server" {
			servers++
		}
	}
	counts, all := p.world.Cloud.Counts()
	t.Logf("got %d servers, %d requests: %v", servers, all, counts)
	if most := 25*servers + 25; all > most { // the second 25: set-up, prices, and the frequent checks of the fast demo
		t.Errorf("got %d requests for %d servers, want at most %d", all, servers, most)
	}
}

// TestRefusedToken: while Hetzner refuses errand's token, a task waits, states that the operator must act, and
// continues automatically when the token is valid again.
func TestRefusedToken(t *testing.T) {
	t.Parallel()
	w := onCloud(t)
	check(t, w.Cloud.Fault(simhetzner.Fault{Code: "unauthorized"}))
	ada := w.GitHub.As(demo.Maintainer)
	i, err := ada.OpenIssue(demo.Full, simgithub.NewIssue{Title: "Slugs end in a hyphen", Body: "See `Slug`."})
	check(t, err)
	check(t, ada.Assign(demo.Full, i.Number, demo.Machine))
	waits := func(task *state.Task) bool { return task.Waiting != nil && task.Waiting.Kind == state.WaitVM }
	task := await(t, w, "the task to wait", waits)
	if !strings.Contains(task.Waiting.Detail, "the operator has to correct `hetzner.token`") {
		t.Errorf("got the next step: %s", task.Waiting.Detail)
	}
	w.Cloud.ClearFaults()
	await(t, w, "a VM", func(task *state.Task) bool { return task.VM != nil })
}

// onCloud returns a world with VMs of the Hetzner simulator; it skips the test where the simulator cannot run servers.
func onCloud(t *testing.T) *demo.World {
	t.Helper()
	exe, err := os.Executable()
	check(t, err)
	if _, err := demo.NewMachines(t.Context(), local.Config{Dir: t.TempDir(), Kind: local.KindAuto, Runner: exe}); err != nil {
		t.Skipf("skipped: %v", err)
	}
	w, err := demo.New(t.Context(), demo.Config{
		Dir: t.TempDir(), BinDir: runner(t), Agent: []string{exe, "simagent"}, StandIn: true, Fast: true, Kind: local.KindAuto, Key: rsatest.Key(), Log: zerolog.Nop(),
		Version: "test", Provider: demo.ProviderHetzner,
	})
	check(t, err)
	t.Cleanup(func() { check(t, w.Close()) })
	return w
}

// await waits until the only open task meets a condition.
func await(t *testing.T, w *demo.World, what string, ok func(*state.Task) bool) *state.Task {
	t.Helper()
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for end := time.Now().Add(2 * time.Minute); ; <-pause.C {
		list, err := w.Server.Store().AllTasks(t.Context(), state.TaskKey{}, 0)
		check(t, err)
		if len(list) == 1 && ok(list[0]) {
			return list[0]
		}
		if time.Now().After(end) {
			t.Fatalf("timeout while waiting for %s: %+v", what, list)
		}
	}
}
