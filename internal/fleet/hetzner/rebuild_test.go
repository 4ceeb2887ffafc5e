package hetzner_test

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

func TestRebuild(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	ctx := t.Context()
	old := p.running(provider, "vm-1")
	for name, change := range map[string]func(*fleet.Spec){
		"no user data": func(s *fleet.Spec) { s.UserData = nil },
		"same name":    func(s *fleet.Spec) { s.Name = "vm-1" },
		"odd label":    func(s *fleet.Spec) { s.Labels["a"] = "b c" },
	} {
		s := spec("vm-2")
		change(&s)
		_, err := provider.Rebuild(ctx, "vm-1", s)
		wantErr(t, name, err, fleet.ErrInvalid)
	}
	p.clock.Advance(20 * time.Minute)
	vm, err := provider.Rebuild(ctx, "vm-1", spec("vm-2"))
	noErr(t, "rebuild", err)
	if vm.ID != old.ID || vm.Name != "vm-2" || vm.State != fleet.StateCreating || !vm.CreatedAt.Equal(old.CreatedAt) {
		t.Errorf("rebuilt: got %+v", vm)
	}
	_, err = provider.Get(ctx, "vm-1")
	wantErr(t, "the old name", err, fleet.ErrNotFound)
	adopted, err := provider.Create(ctx, spec("vm-2"))
	if err != nil || adopted.ID != old.ID {
		t.Errorf("created again: got %+v, %v", adopted, err)
	}
	p.clock.Advance(30 * time.Second)
	p.state(provider, "vm-2", fleet.StateRunning)
	_, err = provider.Rebuild(ctx, "vm-1", spec("vm-2"))
	noErr(t, "rebuild again", err)
	if n := p.actions(p.sim.Objects("server")[0].ID)["rebuild_server"]; n != 1 {
		t.Errorf("got %d rebuilds", n)
	}
	// Repeat it from a new process.
	again := p.provider(nil)
	vm, err = again.Rebuild(ctx, "vm-2", spec("vm-3"))
	noErr(t, "rebuild as a third", err)
	if vm.State != fleet.StateCreating || vm.ID != old.ID {
		t.Errorf("rebuilt: got %+v", vm)
	}
	p.clock.Advance(30 * time.Second)
	p.state(again, "vm-3", fleet.StateRunning)
	noErr(t, "delete", again.Delete(ctx, "vm-3", fleet.ReasonDone))
	p.wantCount("primary_ip", 0)
	if lines := p.sim.Bill(); lines.Of("server") == 0 {
		t.Errorf("bill: got %+v", lines)
	}
}

// TestBetweenRenameAndRebuild: the process died after the first call. The server has the new name and the old disk, and
// must not be used as the new VM.
func TestBetweenRenameAndRebuild(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	ctx := t.Context()
	p.running(provider, "vm-1")
	p.fault(simhetzner.Fault{Path: "/actions/rebuild$", Code: "locked", Count: 1})
	_, err := provider.Rebuild(ctx, "vm-1", spec("vm-2"))
	wantErr(t, "rebuild", err, fleet.ErrBusy)
	p.state(provider, "vm-2", fleet.StateCreating)
	if vms, err := p.provider(nil).List(ctx); err != nil || len(vms) != 1 || vms[0].State != fleet.StateCreating {
		t.Errorf("got list %+v, error %v", vms, err)
	}
	p.clock.Advance(10 * time.Minute)
	p.state(provider, "vm-2", fleet.StateCreating)
	_, err = provider.Rebuild(ctx, "vm-1", spec("vm-2"))
	noErr(t, "rebuild again", err)
	p.clock.Advance(time.Minute)
	p.state(provider, "vm-2", fleet.StateRunning)
}

func TestRebuildThatFails(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	ctx := t.Context()
	p.running(provider, "vm-1")
	p.fault(simhetzner.Fault{Path: "/actions/rebuild$", ActionCode: "action_failed", Count: 1})
	_, err := provider.Rebuild(ctx, "vm-1", spec("vm-2"))
	noErr(t, "rebuild", err)
	p.clock.Advance(time.Minute)
	if vm := p.state(provider, "vm-2", fleet.StateEnded); vm.Ended != fleet.ReasonCreateFailed {
		t.Errorf("got state %s at the end", vm.Ended)
	}
	_, err = provider.Rebuild(ctx, "vm-1", spec("vm-2"))
	wantErr(t, "rebuild again", err, fleet.ErrEnded)
	_, err = provider.Create(ctx, spec("vm-2"))
	wantErr(t, "create", err, fleet.ErrEnded)
	noErr(t, "delete", provider.Delete(ctx, "vm-2", fleet.ReasonCreateFailed))
	p.wantCount("server", 0)
}

func TestBootThatFails(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	p.fault(simhetzner.Fault{Method: "POST", Path: "^/servers$", ActionCode: "action_failed", Count: 1})
	vm, err := provider.Create(t.Context(), spec("vm-1"))
	noErr(t, "create", err)
	if vm.State != fleet.StateCreating {
		t.Errorf("got %+v", vm)
	}
	p.clock.Advance(2 * time.Minute)
	if vm := p.state(provider, "vm-1", fleet.StateEnded); vm.Ended != fleet.ReasonCreateFailed || vm.Detail == "" {
		t.Errorf("got state %s at the end: %s", vm.Ended, vm.Detail)
	}
	noErr(t, "delete", provider.Delete(t.Context(), "vm-1", fleet.ReasonCreateFailed))
	p.wantCount("server", 0)
	p.wantCount("primary_ip", 0)
}
