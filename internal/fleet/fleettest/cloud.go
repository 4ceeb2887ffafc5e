package fleettest

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
)

// Cloud is a provider with a remote API and all optional capabilities.
type Cloud interface {
	fleet.Market
	fleet.Imager
	fleet.Rebuilder
	fleet.Auditor
}

// RunCloud tests the contract of a [Cloud], in addition to [Run]. The providers of world must be Clouds.
func RunCloud(t *testing.T, world func(t *testing.T) World) {
	run(t, world, map[string]func(*testing.T, World){
		"offers have prices":           testOffers,
		"power goes off and on":        testPower,
		"an image outlives its vm":     testImage,
		"a rebuilt vm is another one":  testRebuild,
		"unmanaged resources are kept": testUnmanaged,
		"lost answers make no seconds": testLostAnswers,
	})
}

func cloud(t *testing.T, p fleet.Provider) Cloud {
	t.Helper()
	c, ok := p.(Cloud)
	if !ok {
		t.Fatalf("%T is no Cloud", p)
	}
	return c
}

func testOffers(t *testing.T, w World) {
	p := cloud(t, w.Provider(t))
	offers, err := p.Offers(deadline(t))
	if err != nil || len(offers) == 0 {
		t.Fatalf("%d offers, %v", len(offers), err)
	}
	seen := map[string]fleet.Offer{}
	for _, o := range offers {
		key := o.Type + " " + o.Location
		if _, twice := seen[key]; twice || o.MicroHour <= 0 || o.MicroMonth < o.MicroHour || o.Currency == "" ||
			o.VCPU <= 0 || o.MemoryMB <= 0 || o.DiskGB <= 0 {
			t.Errorf("offer %+v, twice: %v", o, twice)
		}
		seen[key] = o
	}
	if price, err := p.ImageMicroGBMonth(deadline(t)); err != nil || price <= 0 {
		t.Errorf("got price %d of a GB of image, error %v", price, err)
	}
	vm := create(t, w, p, "priced")
	if o := seen[vm.Kind+" "+vm.Location]; o.MicroHour != vm.MicroHour || o.Currency != vm.Currency {
		t.Errorf("offered for %d, it costs %d %s", o.MicroHour, vm.MicroHour, vm.Currency)
	}
}

func testPower(t *testing.T, w World) {
	p := cloud(t, w.Provider(t))
	vm := create(t, w, p, "power")
	c := dial(t, w, vm)
	sh(t, c, "echo kept > work")
	for range 2 {
		insist(t, w, "power off", func() error { return p.PowerOff(deadline(t), vm.ID) })
	}
	select {
	case <-c.Done():
	case <-deadline(t).Done():
		t.Error("the connection outlives the power")
	}
	await(t, w, w.Provider(t), "power", fleet.StateOff)
	for range 2 {
		insist(t, w, "power on", func() error { return p.PowerOn(deadline(t), vm.ID) })
	}
	up := await(t, w, p, "power", fleet.StateRunning)
	if up.ID != vm.ID || !up.CreatedAt.Equal(vm.CreatedAt) {
		t.Errorf("it was %+v, it is %+v", vm, up)
	}
	if got := sh(t, dial(t, w, up), "cat work"); got != "kept" {
		t.Errorf("its file says %q", got)
	}
}

func testImage(t *testing.T, w World) {
	p := cloud(t, w.Provider(t))
	vm := create(t, w, p, "asleep")
	sh(t, dial(t, w, vm), "echo kept > work; sync")
	labels := map[string]string{fleet.LabelOwner: "owner-of-asleep", fleet.LabelKind: fleet.ImageSnapshot}
	insist(t, w, "power off", func() error { return p.PowerOff(deadline(t), vm.ID) })
	await(t, w, p, "asleep", fleet.StateOff)
	var made fleet.Image
	insist(t, w, "image", func() (err error) {
		made, err = p.Image(deadline(t), fleet.ImageSpec{VM: vm.ID, Labels: labels})
		return err
	})
	t.Cleanup(func() { _ = p.DeleteImage(context.Background(), made.ID) })
	if again, err := w.Provider(t).(Cloud).Image(deadline(t), fleet.ImageSpec{VM: vm.ID, Labels: labels}); err != nil ||
		again.ID != made.ID {
		t.Errorf("again: got %+v, %v", again, err)
	}
	img := awaitImage(t, w, p, made.ID)
	for key, value := range labels {
		if img.Labels[key] != value {
			t.Errorf("got label %s is %q", key, img.Labels[key])
		}
	}
	if err := remove(deadline(t), p, "asleep", fleet.ReasonAsleep); err != nil {
		t.Fatal(err)
	}
	if theirs, err := w.Stranger(t).(Cloud).Images(deadline(t)); err != nil || len(theirs) != 0 {
		t.Errorf("a stranger sees %+v, %v", theirs, err)
	}
	wake := spec(t, w, "awake")
	wake.Image = img.ID
	if got := sh(t, dial(t, w, createAs(t, w, p, wake)), "cat work"); got != "kept" {
		t.Errorf("after the restore, its file contains %q", got)
	}
	for range 2 {
		insist(t, w, "delete image", func() error { return p.DeleteImage(deadline(t), img.ID) })
	}
	if left, err := p.Images(deadline(t)); err != nil || len(left) != 0 {
		t.Errorf("got remaining VMs %+v, error %v", left, err)
	}
}

// awaitImage waits until the only image is ready.
func awaitImage(t *testing.T, w World, p Cloud, id string) (img fleet.Image) {
	t.Helper()
	eventually(t, "image is ready", func() bool {
		settle(t, w)
		all, err := p.Images(deadline(t))
		if err != nil || len(all) != 1 || all[0].ID != id || all[0].Failed {
			t.Fatalf("got images %+v, error %v", all, err)
		}
		img = all[0]
		return img.Ready
	})
	return img
}

func testRebuild(t *testing.T, w World) {
	p := cloud(t, w.Provider(t))
	old := create(t, w, p, "before")
	sh(t, dial(t, w, old), "echo old > trace; (sleep 600 </dev/null >/dev/null 2>&1 &)")
	next := spec(t, w, "after")
	cleanUp(t, w, p, "after")
	var vm fleet.VM
	insist(t, w, "rebuild", func() (err error) {
		vm, err = p.Rebuild(deadline(t), "before", next)
		return err
	})
	if vm.ID != old.ID || vm.Name != "after" || vm.State == fleet.StateEnded || !vm.CreatedAt.Equal(old.CreatedAt) ||
		vm.Labels[fleet.LabelOwner] != "owner-of-after" {
		t.Errorf("rebuilt as %+v", vm)
	}
	_, err := p.Get(deadline(t), "before")
	wantErr(t, "Get of the old name", err, fleet.ErrNotFound)
	vm = await(t, w, w.Provider(t), "after", fleet.StateRunning)
	if got := sh(t, dial(t, w, vm), "ls"); got != "" {
		t.Errorf("got files %q", got)
	}
	if w.Endpoint != nil { // the old VM's key is no longer accepted
		ep := w.Endpoint(t, vm)
		ep.HostKeys = w.Endpoint(t, old).HostKeys
		if _, err := dialAs(t, w, ep, w.Signer); err == nil {
			t.Error("it has the old host key")
		}
	}
	if again, err := p.Rebuild(deadline(t), "before", next); err != nil || again.ID != old.ID {
		t.Errorf("again: got %+v, %v", again, err)
	}
	if got := names(t, p); got != "after" {
		t.Errorf("listed: got %q", got)
	}
}

func testUnmanaged(t *testing.T, w World) {
	p, stranger := cloud(t, w.Provider(t)), cloud(t, w.Stranger(t))
	create(t, w, stranger, "theirs")
	create(t, w, p, "ours")
	if err := remove(deadline(t), p, "ours", fleet.ReasonDone); err != nil {
		t.Fatal(err)
	}
	settle(t, w)
	found, err := p.ListUnmanaged(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	server := false
	for _, s := range found {
		if s.HasOwnLabel {
			t.Errorf("got remaining resource of this deployment %+v", s)
		}
		server = server || s.Kind == "server" && s.Name == "theirs"
		if err := p.DeleteUnmanaged(deadline(t), s); err == nil {
			t.Errorf("deletes %+v", s)
		}
	}
	if !server {
		t.Errorf("does not see the stranger's VM: got %+v", found)
	}
	if got := names(t, stranger); got != "theirs" {
		t.Errorf("stranger listed: got %q", got)
	}
}

// testLostAnswers: each mutating call loses its response once and is repeated.
func testLostAnswers(t *testing.T, w World) {
	if w.Lose == nil {
		return
	}
	p := cloud(t, w.Provider(t))
	first, next := spec(t, w, "answer"), spec(t, w, "answer-2")
	labels := map[string]string{fleet.LabelOwner: "owner-of-answer"}
	image, id := "", ""
	cleanUp(t, w, p, "answer", "answer-2")
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"create", func() error { _, err := w.Provider(t).Create(deadline(t), first); return err }},
		{"power off", func() error { return w.Provider(t).(Cloud).PowerOff(deadline(t), id) }},
		{"image", func() error {
			img, err := w.Provider(t).(Cloud).Image(deadline(t), fleet.ImageSpec{VM: id, Labels: maps.Clone(labels)})
			image = img.ID
			return err
		}},
		{"rebuild", func() error { _, err := w.Provider(t).(Cloud).Rebuild(deadline(t), "answer", next); return err }},
		{"delete", func() error { return w.Provider(t).Delete(deadline(t), "answer-2", fleet.ReasonDone) }},
		{"delete image", func() error { return w.Provider(t).(Cloud).DeleteImage(deadline(t), image) }},
	} {
		w.Lose(t)
		insist(t, w, step.name, step.do)
		switch step.name {
		case "create":
			id = await(t, w, p, "answer", fleet.StateRunning).ID
		case "image":
			awaitImage(t, w, p, image)
		case "rebuild":
			await(t, w, p, "answer-2", fleet.StateRunning)
		}
		if got := names(t, p); strings.Contains(got, " ") {
			t.Errorf("after %s: %q", step.name, got)
		}
	}
	if left, err := p.Images(deadline(t)); err != nil || len(left) != 0 {
		t.Errorf("got remaining VMs %+v, error %v", left, err)
	}
}

// insist repeats a call until it succeeds.
func insist(t *testing.T, w World, what string, do func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx := deadline(t); ; {
		err := do()
		if err == nil {
			return
		}
		if !errors.Is(err, fleet.ErrUnknownOutcome) && !errors.Is(err, fleet.ErrBusy) {
			t.Fatalf("%s: %v", what, err)
		}
		settle(t, w)
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: never succeeds: %v", what, err)
		}
	}
}
