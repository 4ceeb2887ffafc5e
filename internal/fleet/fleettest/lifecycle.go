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
	first := create(t, w, p, "twice")
	second, err := p.Create(deadline(t), spec(t, w, "twice"))
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
		t.Errorf("listed: got %q", got)
	}
}

func testCreateAtOnce(t *testing.T, w World) {
	const callers = 4
	made := make([]string, callers)
	cleanUp(t, w, w.Provider(t), "at-once")
	var wg sync.WaitGroup
	for i := range callers {
		p, s := w.Provider(t), spec(t, w, "at-once")
		wg.Go(func() {
			vm, err := p.Create(deadline(t), s)
			if err != nil {
				t.Error(err)
				return
			}
			made[i] = vm.ID + strings.Join(vm.Endpoint.HostKeys, " ")
		})
	}
	wg.Wait()
	for _, vm := range made[1:] {
		if vm == "" || vm != made[0] {
			t.Errorf("callers got different VMs: %q", made)
		}
	}
	if got := names(t, w.Provider(t)); got != "at-once" {
		t.Errorf("listed: got %q", got)
	}
}

// testLostAnswer cancels Create at various moments and repeats it: the result is the same VM or a complete new one,
// never two and never a partial one.
func testLostAnswer(t *testing.T, w World) {
	cleanUp(t, w, w.Provider(t), "lost")
	once := spec(t, w, "lost")
	for _, patience := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 40 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, _ = w.Provider(t).Create(ctx, once)
		cancel()
	}
	p := w.Provider(t)
	vm := create(t, w, p, "lost")
	if got := sh(t, dial(t, w, vm), "echo up"); got != "up" {
		t.Errorf("VM says %q", got)
	}
	if got := names(t, p); got != "lost" {
		t.Errorf("listed: got %q", got)
	}
}

func testNameTaken(t *testing.T, w World) {
	p := w.Provider(t)
	create(t, w, p, "taken")
	other := spec(t, w, "taken")
	other.Labels[fleet.LabelOwner] = "somebody else"
	_, err := p.Create(deadline(t), other)
	wantErr(t, "Create with another owner", err, fleet.ErrNameTaken)
	_, err = w.Stranger(t).Create(deadline(t), spec(t, w, "taken"))
	wantErr(t, "Create by another deployment", err, fleet.ErrNameTaken)
}

func testOddNames(t *testing.T, w World) {
	p := w.Provider(t)
	for _, name := range []string{"", ".", "..", "a/b", "-a", "a-", "A", "a b", strings.Repeat("a", 64)} {
		odd := spec(t, w, "odd")
		odd.Name = name
		if _, err := p.Create(deadline(t), odd); err == nil {
			t.Errorf("Create accepts %q", name)
		}
		if err := remove(deadline(t), p, name, fleet.ReasonDone); err == nil {
			t.Errorf("Delete accepts %q", name)
		}
	}
	if got := names(t, p); got != "" {
		t.Errorf("listed: got %q", got)
	}
}

func testList(t *testing.T, w World) {
	p, stranger := w.Provider(t), w.Stranger(t)
	create(t, w, p, "ours-1")
	create(t, w, p, "ours-2")
	create(t, w, stranger, "theirs")
	if got := names(t, p); got != "ours-1 ours-2" && got != "ours-2 ours-1" {
		t.Errorf("listed: got %q", got)
	}
	if got := names(t, stranger); got != "theirs" {
		t.Errorf("stranger listed: got %q", got)
	}
	_, err := p.Get(deadline(t), "theirs")
	wantErr(t, "Get of a stranger's", err, fleet.ErrNotFound)
	if err := remove(deadline(t), p, "theirs", fleet.ReasonDone); err != nil {
		t.Error(err)
	}
	if got := names(t, stranger); got != "theirs" {
		t.Errorf("after this deployment deleted it, the other one: got list %q", got)
	}
	vm, err := p.Get(deadline(t), "ours-1")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range spec(t, w, "ours-1").Labels {
		if vm.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, vm.Labels[key], want)
		}
	}
}

func testDelete(t *testing.T, w World) {
	p := w.Provider(t)
	vm := create(t, w, p, "gone")
	c := dial(t, w, vm)
	for range 2 {
		if err := remove(deadline(t), p, "gone", fleet.ReasonCancelled); err != nil {
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
		t.Errorf("listed: got %q", got)
	}
	if err := remove(deadline(t), p, "never-was", fleet.ReasonDone); err != nil {
		t.Errorf("delete a VM that never existed: %v", err)
	}
}

func testReuse(t *testing.T, w World) {
	p := w.Provider(t)
	old := create(t, w, p, "again")
	sh(t, dial(t, w, old), "echo old > trace")
	if err := remove(deadline(t), p, "again", fleet.ReasonFresh); err != nil {
		t.Fatal(err)
	}
	fresh := create(t, w, p, "again")
	if w.Endpoint == nil && cmp.Equal(old.Endpoint.HostKeys, fresh.Endpoint.HostKeys) {
		t.Error("the new VM has the old one's host key")
	}
	if got := sh(t, dial(t, w, fresh), "ls"); got != "" {
		t.Errorf("the new VM has files: got %q", got)
	}
}

func testDescribed(t *testing.T, w World) {
	p := w.Provider(t)
	about, err := p.Describe(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	vm := create(t, w, p, "described")
	if about.Provider != p.Name() || about.Isolation != vm.Isolation || about.Isolation == "" {
		t.Errorf("described as %+v, VM is %s %s", about, vm.Kind, vm.Isolation)
	}
	if vm.TetherPort <= 0 || vm.TetherPort > 65535 {
		t.Errorf("tether port is %d", vm.TetherPort)
	}
}
