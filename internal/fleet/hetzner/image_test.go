package hetzner_test

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

func sleepLabels() map[string]string {
	return map[string]string{fleet.LabelOwner: "1", fleet.LabelKind: fleet.ImageSnapshot, fleet.LabelGeneration: "1"}
}

func TestImage(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	ctx := t.Context()
	p.running(provider, "vm-1")
	_, err := provider.Image(ctx, fleet.ImageSpec{VM: p.id("vm-1"), Labels: sleepLabels()})
	wantErr(t, "image of a VM that runs", err, fleet.ErrBusy)
	noErr(t, "power off", provider.PowerOff(ctx, p.id("vm-1")))
	noErr(t, "power off again", provider.PowerOff(ctx, p.id("vm-1")))
	p.state(provider, "vm-1", fleet.StateOff)
	img, err := provider.Image(ctx, fleet.ImageSpec{VM: p.id("vm-1"), Labels: sleepLabels()})
	noErr(t, "image", err)
	if img.Ready || img.Failed || img.ID == "" || img.Location != "fsn1" || img.DiskGB != 160 || img.Arch != "amd64" {
		t.Errorf("started: got %+v", img)
	}
	again, err := provider.Image(ctx, fleet.ImageSpec{VM: p.id("vm-1"), Labels: sleepLabels()})
	if err != nil || again.ID != img.ID {
		t.Errorf("again: got %+v, %v", again, err)
	}
	more := sleepLabels()
	more["extra"] = "x" // makes the labels differ
	delete(more, fleet.LabelKind)
	p.clock.Advance(time.Hour)
	other, err := provider.Image(ctx, fleet.ImageSpec{VM: p.id("vm-1"), Labels: more})
	if err != nil || other.ID == img.ID {
		t.Errorf("with other labels: got %+v, %v", other, err)
	}
	wantErr(t, "delete what is being made", provider.DeleteImage(ctx, other.ID), fleet.ErrBusy)
	p.clock.Advance(time.Hour)
	noErr(t, "delete", provider.DeleteImage(ctx, other.ID))
	noErr(t, "delete again", provider.DeleteImage(ctx, other.ID))
	p.clock.Advance(time.Hour)
	noErr(t, "delete VM", provider.Delete(ctx, "vm-1", fleet.ReasonAsleep))
	images, err := provider.Images(ctx)
	if err != nil || len(images) != 1 || !images[0].Ready || images[0].StoredMB <= 0 || images[0].ID != img.ID {
		t.Fatalf("got images %+v, error %v", images, err)
	}
	want := sleepLabels()
	want[fleet.LabelDeployment] = "test"
	if !maps.Equal(images[0].Labels, want) {
		t.Errorf("labels: %v", images[0].Labels)
	}
	wake := spec("vm-2")
	wake.Image = images[0].ID
	_, err = provider.Create(ctx, wake)
	noErr(t, "wake", err)
	wake.Name, wake.Offer.Type = "vm-3", "cx23"
	_, err = provider.Create(ctx, wake)
	wantErr(t, "wake on a disk that is too small", err, fleet.ErrInvalid)
}

func TestImageThatFails(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	ctx := t.Context()
	p.running(provider, "vm-1")
	noErr(t, "power off", provider.PowerOff(ctx, p.id("vm-1")))
	p.fault(simhetzner.Fault{Path: "/actions/create_image$", Unreadable: true, Count: 1})
	_, err := provider.Image(ctx, fleet.ImageSpec{VM: p.id("vm-1"), Labels: sleepLabels()})
	noErr(t, "image", err)
	p.clock.Advance(time.Hour)
	bad, err := provider.Image(ctx, fleet.ImageSpec{VM: p.id("vm-1"), Labels: sleepLabels()})
	if err != nil || !bad.Failed || bad.Ready {
		t.Fatalf("after it failed: got %+v, %v", bad, err)
	}
	noErr(t, "delete", provider.DeleteImage(ctx, bad.ID))
	_, err = provider.Image(ctx, fleet.ImageSpec{VM: p.id("vm-1"), Labels: sleepLabels()})
	noErr(t, "image again", err)
	p.clock.Advance(time.Hour)
	images, err := provider.Images(ctx)
	if err != nil || len(images) != 1 || !images[0].Ready {
		t.Errorf("got images %+v, error %v", images, err)
	}
}

func TestForeignImagesAreNotDeleted(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	theirs := p.provider(func(c *hetzner.Config) { c.Deployment, c.ClientKey = "theirs", publicKey(t, 2) })
	p.running(theirs, "vm-1")
	noErr(t, "power off", theirs.PowerOff(t.Context(), p.id("vm-1")))
	img, err := theirs.Image(t.Context(), fleet.ImageSpec{VM: p.id("vm-1"), Labels: sleepLabels()})
	noErr(t, "image", err)
	p.clock.Advance(time.Hour)
	ours := p.provider(nil)
	wantErr(t, "delete", ours.DeleteImage(t.Context(), img.ID), fleet.ErrInvalid)
	wantErr(t, "delete a stray", ours.DeleteUnmanaged(t.Context(), fleet.UnmanagedResource{Kind: "image", ID: img.ID, HasOwnLabel: true}), fleet.ErrInvalid)
	if images, err := ours.Images(t.Context()); err != nil || len(images) != 0 {
		t.Errorf("got images %+v, error %v", images, err)
	}
	p.wantCount("image", 1)
}

func TestPowerOffCutsAnUnresponsiveServer(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	p.running(provider, "vm-1")
	p.fault(simhetzner.Fault{Path: "/actions/shutdown$", Deaf: true})
	before := p.clock.Now()
	noErr(t, "power off", provider.PowerOff(t.Context(), p.id("vm-1")))
	p.state(provider, "vm-1", fleet.StateOff)
	if took := p.clock.Now().Sub(before); took < time.Minute || took > 90*time.Second {
		t.Errorf("got %s to shut down", took)
	}
	noErr(t, "power on", provider.PowerOn(t.Context(), p.id("vm-1")))
	noErr(t, "power on again", provider.PowerOn(t.Context(), p.id("vm-1")))
	p.state(provider, "vm-1", fleet.StateCreating)
	p.clock.Advance(time.Minute)
	p.state(provider, "vm-1", fleet.StateRunning)
	if n := p.actions(p.sim.Objects("server")[0].ID); n["start_server"] != 2 || n["stop_server"] != 1 {
		t.Errorf("actions: %v", n)
	}
}

// outdated is a transport whose lists report every server as off.
type outdated struct{}

func (outdated) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := webtest.Transport().RoundTrip(r)
	if err != nil || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/servers") {
		return res, err
	}
	text, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	res.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(text), `"status":"running"`, `"status":"off"`)))
	res.ContentLength = -1
	res.Header.Del("Content-Length")
	return res, err
}

// TestImageOfARunningServerIsRefused: before an image is created, the server must be off by its own record, not only by
// a list.
func TestImageOfARunningServerIsRefused(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	id := p.running(provider, "vm-1").ID
	blind := p.provider(func(c *hetzner.Config) { c.HTTP = &http.Client{Transport: outdated{}} })
	if vm, err := blind.Get(t.Context(), "vm-1"); err != nil || vm.State == fleet.StateRunning {
		t.Fatalf("got %+v in the list, error %v", vm, err)
	}
	_, err := blind.Image(t.Context(), fleet.ImageSpec{VM: id, Labels: sleepLabels()})
	wantErr(t, "image", err, fleet.ErrBusy)
	p.wantCount("image", 0)
	noErr(t, "power off", provider.PowerOff(t.Context(), id))
	_, err = blind.Image(t.Context(), fleet.ImageSpec{VM: id, Labels: sleepLabels()})
	noErr(t, "image when it is off", err)
	for _, o := range p.sim.Objects("image") {
		if o.Inconsistent {
			t.Errorf("got image %+v", o)
		}
	}
}

// TestImageBelongsToItsServer: an image of another server is not adopted, even with the same labels.
func TestImageBelongsToItsServer(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	ids := map[string]bool{}
	for _, name := range []string{"vm-1", "vm-2"} {
		p.running(provider, name)
		noErr(t, "power off", provider.PowerOff(t.Context(), p.id(name)))
		img, err := provider.Image(t.Context(), fleet.ImageSpec{VM: p.id(name), Labels: sleepLabels()})
		noErr(t, "image", err)
		ids[img.ID] = true
		p.clock.Advance(time.Hour)
	}
	if len(ids) != 2 || p.count("image") != 2 {
		t.Errorf("got images %v of two servers", ids)
	}
}
