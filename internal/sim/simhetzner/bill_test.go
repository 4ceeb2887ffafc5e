package simhetzner_test

import (
	"testing"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// Gross prices of an hour in millionths: cx43 and its address.
const (
	cx43 = 30_464 // 25600 net
	ipv4 = 952    // 800 net
)

// TestBill compares the meter with bills calculated by hand. Times are from the order to the deletion; a server takes
// 20 s to start, which is charged.
func TestBill(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		config func(*simhetzner.Config)
		play   func(*testing.T, *world)
		micro  int64
	}{
		"nothing":         {play: func(*testing.T, *world) {}},
		"some minutes":    {play: lives(10 * time.Minute), micro: cx43 + ipv4},
		"to the boundary": {play: lives(59*time.Minute + 58*time.Second), micro: cx43 + ipv4},
		"past it":         {play: lives(time.Hour + time.Second), micro: 2 * (cx43 + ipv4)},
		"twice in an hour": {play: func(t *testing.T, w *world) {
			lives(10*time.Minute)(t, w)
			lives(10*time.Minute)(t, w)
		}, micro: 2 * (cx43 + ipv4)},
		"a server that is off costs the same": {play: func(t *testing.T, w *world) {
			sv := w.create(t, "vm")
			a, _, err := w.client.Server.Poweroff(t.Context(), sv)
			if err != nil {
				t.Fatal(err)
			}
			w.wait(t, a)
			w.clock.Advance(90 * time.Minute)
		}, micro: 2 * (cx43 + ipv4)},
		"no address": {play: func(t *testing.T, w *world) {
			w.create(t, "vm", func(o *hcloud.ServerCreateOpts) { o.PublicNet = &hcloud.ServerCreatePublicNet{EnableIPv6: true} })
		}, micro: cx43},
		"a month is capped": {play: func(t *testing.T, w *world) { // from the 2nd of November to the 1st of December
			w.create(t, "vm")
			w.clock.Advance(28*24*time.Hour + 14*time.Hour)
		}, micro: 19_028_100 + 595_000}, // 15.99 and 0.50 net
		"a rebuild continues the hour": {play: func(t *testing.T, w *world) {
			sv := w.create(t, "vm")
			w.clock.Advance(30 * time.Minute)
			res, _, err := w.client.Server.RebuildWithResult(t.Context(), sv, hcloud.ServerRebuildOpts{Image: &hcloud.Image{Name: "debian-13"}})
			if err != nil {
				t.Fatal(err)
			}
			w.wait(t, res.Action)
			w.delete(t, sv)
		}, micro: cx43 + ipv4},
		"a period of ten seconds": {config: func(c *simhetzner.Config) { c.Period = 10 * time.Second }, play: lives(25 * time.Second), micro: 3 * (cx43 + ipv4)},
		"an image": {play: func(t *testing.T, w *world) { // 4 GB for 730 hours, and a server for one
			sv := w.create(t, "vm")
			res, _, err := w.client.Server.CreateImage(t.Context(), sv, &hcloud.ServerCreateImageOpts{Type: hcloud.ImageTypeSnapshot})
			if err != nil {
				t.Fatal(err)
			}
			w.wait(t, res.Action)
			w.delete(t, sv)
			w.clock.Advance(729 * time.Hour)
			if _, err := w.client.Image.Delete(t.Context(), res.Image); err != nil {
				t.Fatal(err)
			}
			w.clock.Advance(1000 * time.Hour)
		}, micro: cx43 + ipv4 + 68_068}, // 57200 net
		"resized": {play: func(t *testing.T, w *world) { // an hour of each type
			sv := w.create(t, "vm")
			a, _, err := w.client.Server.Poweroff(t.Context(), sv)
			if err != nil {
				t.Fatal(err)
			}
			w.wait(t, a)
			a, _, err = w.client.Server.ChangeType(t.Context(), sv, hcloud.ServerChangeTypeOpts{ServerType: &hcloud.ServerType{Name: "cpx42"}})
			if err != nil {
				t.Fatal(err)
			}
			w.wait(t, a)
		}, micro: cx43 + ipv4 + 132_566},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.config != nil {
				w = newWorld(t, c.config)
			}
			c.play(t, w)
			bill := w.Bill()
			if bill.Micro != c.micro {
				t.Errorf("got %d, want %d: %+v", bill.Micro, c.micro, bill.Lines)
			}
			var sum int64
			for _, l := range bill.Lines {
				sum += l.Micro
			}
			if sum != bill.Micro {
				t.Errorf("sum of the lines: got %d", sum)
			}
		})
	}
}

// lives creates a server, and deletes it after a time.
func lives(d time.Duration) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		begin := w.clock.Now()
		sv := w.create(t, "vm")
		w.clock.Set(begin.Add(d - time.Second)) // the last one is the deletion
		w.delete(t, sv)
	}
}

func TestBillOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(t, "vm-1")
	b := w.Bill()
	if b.Of("server") != cx43 || b.Of("primary_ip") != ipv4 || b.Of("image") != 0 || b.MicroNet != 26_400 {
		t.Errorf("got %+v", b)
	}
}
