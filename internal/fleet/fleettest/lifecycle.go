package fleettest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/errand-bot/errand/internal/fleet"
)

func testCreateTwice(t *testing.T, w World) {
	p := w.Provider(t)
	first := create(t, p, "twice")
	if first.State != fleet.StateRunning {
		t.Errorf("state is %s", first.State)
	}
	second, err := p.Create(deadline(t), spec("twice"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Get(deadline(t), "twice")
	if err != nil {
		t.Fatal(err)
	}
	for what, vm := range map[string]fleet.VM{"second Create": second, "Get": got} {
		if diff := cmp.Diff(first, vm, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s gives another VM (-first +now):\n%s", what, diff)
		}
	}
	if got := names(t, p); got != "twice" {
		t.Errorf("listed: %q", got)
	}
}

func testCreateAtOnce(t *testing.T, w World) {
	const callers = 4
	keys := make([]string, callers)
	cleanUp(t, w.Provider(t), "at-once")
	var wg sync.WaitGroup
	for i := range callers {
		p := w.Provider(t)
		wg.Go(func() {
			vm, err := p.Create(deadline(t), spec("at-once"))
			if err != nil {
				t.Error(err)
				return
			}
			keys[i] = strings.Join(vm.Endpoint.HostKeys, " ")
		})
	}
	wg.Wait()
	for _, key := range keys[1:] {
		if key == "" || key != keys[0] {
			t.Errorf("callers got different VMs: %q", keys)
		}
	}
	if got := names(t, w.Provider(t)); got != "at-once" {
		t.Errorf("listed: %q", got)
	}
}

// testLostAnswer gives up Create at various moments and asks again: the same VM,
// or a whole new one, but never two and never half a one.
func testLostAnswer(t *testing.T, w World) {
	cleanUp(t, w.Provider(t), "lost")
	for _, patience := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 40 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, _ = w.Provider(t).Create(ctx, spec("lost"))
		cancel()
	}
	p := w.Provider(t)
	vm := create(t, p, "lost")
	if got := sh(t, dial(t, w, vm), "echo up"); got != "up" {
		t.Errorf("VM says %q", got)
	}
	if got := names(t, p); got != "lost" {
		t.Errorf("listed: %q", got)
	}
}

func testNameTaken(t *testing.T, w World) {
	p := w.Provider(t)
	create(t, p, "taken")
	other := spec("taken")
	other.Labels[fleet.LabelOwner] = "somebody else"
	_, err := p.Create(deadline(t), other)
	wantErr(t, "Create with another owner", err, fleet.ErrNameTaken)
	_, err = w.Stranger(t).Create(deadline(t), spec("taken"))
	wantErr(t, "Create by another deployment", err, fleet.ErrNameTaken)
}

func testOddNames(t *testing.T, w World) {
	p := w.Provider(t)
	for _, name := range []string{"", ".", "..", "a/b", "-a", "a-", "A", "a b", strings.Repeat("a", 64)} {
		if _, err := p.Create(deadline(t), spec(name)); err == nil {
			t.Errorf("Create accepts %q", name)
		}
		if err := p.Delete(deadline(t), name, fleet.ReasonDone); err == nil {
			t.Errorf("Delete accepts %q", name)
		}
	}
	if got := names(t, p); got != "" {
		t.Errorf("listed: %q", got)
	}
}

func testList(t *testing.T, w World) {
	p, stranger := w.Provider(t), w.Stranger(t)
	create(t, p, "ours-1")
	create(t, p, "ours-2")
	create(t, stranger, "theirs")
	if got := names(t, p); got != "ours-1 ours-2" && got != "ours-2 ours-1" {
		t.Errorf("listed: %q", got)
	}
	if got := names(t, stranger); got != "theirs" {
		t.Errorf("stranger listed: %q", got)
	}
	_, err := p.Get(deadline(t), "theirs")
	wantErr(t, "Get of a stranger's", err, fleet.ErrNotFound)
	if err := p.Delete(deadline(t), "theirs", fleet.ReasonDone); err != nil {
		t.Error(err)
	}
	if got := names(t, stranger); got != "theirs" {
		t.Errorf("after we deleted it, stranger listed: %q", got)
	}
	vm, err := p.Get(deadline(t), "ours-1")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range spec("ours-1").Labels {
		if vm.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, vm.Labels[key], want)
		}
	}
}

func testDelete(t *testing.T, w World) {
	p := w.Provider(t)
	vm := create(t, p, "gone")
	c := dial(t, w, vm)
	for range 2 {
		if err := p.Delete(deadline(t), "gone", fleet.ReasonCancelled); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-c.Done():
	case <-deadline(t).Done():
		t.Error("the connection outlives the VM")
	}
	_, err := p.Get(deadline(t), "gone")
	wantErr(t, "Get", err, fleet.ErrNotFound)
	if got := names(t, p); got != "" {
		t.Errorf("listed: %q", got)
	}
	if err := p.Delete(deadline(t), "never-was", fleet.ReasonDone); err != nil {
		t.Errorf("delete what never was: %v", err)
	}
}

func testReuse(t *testing.T, w World) {
	p := w.Provider(t)
	old := create(t, p, "again")
	sh(t, dial(t, w, old), "echo old > trace")
	if err := p.Delete(deadline(t), "again", fleet.ReasonFresh); err != nil {
		t.Fatal(err)
	}
	fresh := create(t, p, "again")
	if cmp.Equal(old.Endpoint.HostKeys, fresh.Endpoint.HostKeys) {
		t.Error("the new VM has the old one's host key")
	}
	if got := sh(t, dial(t, w, fresh), "ls"); got != "" {
		t.Errorf("the new VM has files: %q", got)
	}
}

func testDescribed(t *testing.T, w World) {
	p := w.Provider(t)
	about, err := p.Describe(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	vm := create(t, p, "described")
	if about.Provider != p.Name() || about.Isolation != vm.Isolation || about.Isolation == "" {
		t.Errorf("described as %+v, VM is %s %s", about, vm.Kind, vm.Isolation)
	}
	if vm.TetherPort <= 0 || vm.TetherPort > 65535 {
		t.Errorf("tether port is %d", vm.TetherPort)
	}
}
