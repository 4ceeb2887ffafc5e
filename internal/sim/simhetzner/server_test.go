package simhetzner_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
)

// TestLife plays a server's complete life with the real client.
func TestLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	res, _, err := w.client.Server.Create(ctx, w.opts("vm-1"))
	if err != nil {
		t.Fatal(err)
	}
	if res.Server.Status != hcloud.ServerStatusInitializing || !res.Server.Locked || res.RootPassword == "" || len(res.NextActions) != 1 {
		t.Errorf("new server: got status %s, locked %v, password %q, %d next actions", res.Server.Status, res.Server.Locked, res.RootPassword, len(res.NextActions))
	}
	if _, _, err := w.client.Server.Poweroff(ctx, res.Server); !hcloud.IsError(err, hcloud.ErrorCodeLocked) {
		t.Errorf("power off during creation: got %v, want locked", err)
	}
	w.wait(t, res.Action, res.NextActions...)
	if took := w.clock.Now().Sub(start); took < 20*time.Second || took > 30*time.Second {
		t.Errorf("got a start time of %v", took)
	}
	sv := w.get(t, res.Server.ID)
	if sv.Status != hcloud.ServerStatusRunning || sv.Locked || sv.PublicNet.IPv4.IP.String() != "198.18.0.2" || sv.ServerType.Name != "cx43" || sv.Location.Name != "fsn1" {
		t.Errorf("got server %+v", sv)
	}
	if sv, _, err = w.client.Server.Update(ctx, sv, hcloud.ServerUpdateOpts{Name: "vm-2", Labels: map[string]string{"a": "b"}}); err != nil || sv.Name != "vm-2" {
		t.Fatalf("rename: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "b"}, sv.Labels); diff != "" {
		t.Error("labels are replaced completely:", diff)
	}
	image := w.sleep(t, sv)
	woken := w.create(t, "vm-3", func(o *hcloud.ServerCreateOpts) { o.Image = image })
	if woken.Image == nil || woken.Image.ID != image.ID || woken.PublicNet.IPv4.IP.String() != "198.18.0.2" {
		t.Errorf("got image %v and address %v, want the snapshot and the address that had become free", woken.Image, woken.PublicNet.IPv4.IP)
	}
	rebuilt, _, err := w.client.Server.RebuildWithResult(ctx, woken, hcloud.ServerRebuildOpts{Image: &hcloud.Image{Name: "debian-13"}, UserData: hcloud.Ptr("#cloud-config")})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.get(t, woken.ID); got.Status != hcloud.ServerStatusRebuilding {
		t.Errorf("during the rebuild: got status %s", got.Status)
	}
	w.wait(t, rebuilt.Action)
	if got := w.get(t, woken.ID); got.Status != hcloud.ServerStatusRunning || got.Image.Name != "debian-13" || !got.Created.Equal(woken.Created) {
		t.Errorf("after the rebuild: got %+v", got)
	}
	w.delete(t, woken)
	if _, err := w.client.Image.Delete(ctx, image); err != nil {
		t.Error(err)
	}
	if left := w.Objects(""); len(left) != 0 {
		t.Errorf("got remaining objects: %+v", left)
	}
}

// sleep shuts a server down, creates a snapshot of it and deletes it.
func (w *world) sleep(t *testing.T, sv *hcloud.Server) *hcloud.Image {
	t.Helper()
	ctx := t.Context()
	action, _, err := w.client.Server.Shutdown(ctx, sv)
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, action)
	if got := w.get(t, sv.ID).Status; got != hcloud.ServerStatusRunning {
		t.Errorf("right after the shutdown request: got status %s", got)
	}
	w.clock.Advance(10 * time.Second)
	if got := w.get(t, sv.ID).Status; got != hcloud.ServerStatusOff {
		t.Errorf("some seconds after the shutdown: got status %s", got)
	}
	made, _, err := w.client.Server.CreateImage(ctx, sv, &hcloud.ServerCreateImageOpts{Type: hcloud.ImageTypeSnapshot, Description: hcloud.Ptr("asleep"), Labels: map[string]string{"k": "v"}})
	if err != nil {
		t.Fatal(err)
	}
	if made.Image.Status != hcloud.ImageStatusCreating || made.Image.ImageSize != 0 {
		t.Errorf("new image: got %+v", made.Image)
	}
	if _, _, err := w.client.Server.DeleteWithResult(ctx, sv); !hcloud.IsError(err, hcloud.ErrorCodeLocked) {
		t.Errorf("deletion during creation of the image: got %v, want locked", err)
	}
	w.wait(t, made.Action)
	image, _, err := w.client.Image.GetByID(ctx, made.Image.ID)
	if err != nil || image.Status != hcloud.ImageStatusAvailable || image.ImageSize != 4 || image.DiskSize != 160 {
		t.Fatalf("got image %+v, %v", image, err)
	}
	w.delete(t, sv)
	if got := w.get(t, sv.ID); got != nil {
		t.Errorf("the server still exists after its deletion: got %+v", got)
	}
	return image
}
