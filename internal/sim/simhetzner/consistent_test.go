package simhetzner_test

import (
	"testing"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
)

// TestInconsistentImages: an image is marked unless the server was off, after a shutdown or a sync.
func TestInconsistentImages(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		acts []string
		want bool
	}{
		"running":                    {nil, true},
		"running, after a sync":      {[]string{"sync"}, true},
		"shut down":                  {[]string{"shutdown"}, false},
		"cut off":                    {[]string{"poweroff"}, true},
		"synced, then powered off":   {[]string{"sync", "poweroff"}, false},
		"synced before a start":      {[]string{"sync", "poweroff", "poweron", "poweroff"}, true},
		"synced before a reset":      {[]string{"sync", "reset", "poweroff"}, true},
		"shut down before a start":   {[]string{"shutdown", "poweron", "poweroff"}, true},
		"shut down by its own timer": {[]string{"itself"}, false},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			sv := w.create(t, "vm-1")
			w.clock.Advance(time.Hour)
			acts := map[string]func() error{
				"sync":     func() error { w.Synced(sv.ID); return nil },
				"itself":   func() error { w.WentOff(sv.ID); return nil },
				"shutdown": func() error { _, _, err := w.client.Server.Shutdown(t.Context(), sv); return err },
				"poweroff": func() error { _, _, err := w.client.Server.Poweroff(t.Context(), sv); return err },
				"poweron":  func() error { _, _, err := w.client.Server.Poweron(t.Context(), sv); return err },
				"reset":    func() error { _, _, err := w.client.Server.Reset(t.Context(), sv); return err },
			}
			for _, act := range test.acts {
				if err := acts[act](); err != nil {
					t.Fatalf("%s: %v", act, err)
				}
				w.clock.Advance(10 * time.Minute)
			}
			if _, _, err := w.client.Server.CreateImage(t.Context(), sv, &hcloud.ServerCreateImageOpts{Type: hcloud.ImageTypeSnapshot}); err != nil {
				t.Fatal(err)
			}
			images := w.Objects("image")
			if len(images) != 1 || images[0].Inconsistent != test.want {
				t.Errorf("got images %+v, want inconsistent: %t", images, test.want)
			}
		})
	}
	w := newWorld(t)
	if w.Synced(1 << 40) {
		t.Error("got true for the sync of a missing server")
	}
}
