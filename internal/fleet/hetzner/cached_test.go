package hetzner_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
)

// TestDeleteUsesCachedServers: a server that was recently listed as this deployment's, with addresses that are deleted
// with it, is deleted by one call and looked up once. Older or invalidated entries are read again.
func TestDeleteUsesCachedServers(t *testing.T) {
	t.Parallel()
	look := func(p *project, provider *hetzner.Provider) {
		p.t.Helper()
		_, err := provider.List(p.t.Context())
		noErr(p.t, "list", err)
		_, err = provider.ListUnmanaged(p.t.Context())
		noErr(p.t, "list unmanaged resources", err)
	}
	for name, test := range map[string]struct {
		before     func(p *project, provider *hetzner.Provider, id string)
		reads      int // of the server
		changes    int // of addresses
		left, ours int // servers, and addresses that are known as this deployment's
	}{
		"listed":       {before: func(p *project, provider *hetzner.Provider, _ string) { look(p, provider) }, reads: 1},
		"never listed": {before: func(*project, *hetzner.Provider, string) {}, reads: 2, changes: 2},
		"listed a quarter hour ago": {before: func(p *project, provider *hetzner.Provider, _ string) {
			look(p, provider)
			p.clock.Advance(15 * time.Minute)
		}, reads: 2, changes: 2},
		"listed, then not any more": {before: func(p *project, provider *hetzner.Provider, id string) {
			look(p, provider)
			p.change("/servers/"+id, `{"labels":{}}`)
			look(p, provider)
		}, reads: 1, left: 1},
		"a person keeps its addresses": {before: func(p *project, provider *hetzner.Provider, _ string) {
			look(p, provider)
			for _, o := range p.sim.Objects("primary_ip") {
				p.change(fmt.Sprintf("/primary_ips/%d", o.ID), `{"auto_delete":false}`)
			}
		}, reads: 1, ours: 2},
		"and it was listed since": {before: func(p *project, provider *hetzner.Provider, _ string) {
			for _, o := range p.sim.Objects("primary_ip") {
				p.change(fmt.Sprintf("/primary_ips/%d", o.ID), `{"auto_delete":false}`)
			}
			look(p, provider)
		}, reads: 2, changes: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, nil)
			provider, ctx := p.provider(nil), t.Context()
			p.running(provider, "vm-1")
			id := p.id("vm-1")
			provider = p.provider(nil) // a provider that did not create it
			test.before(p, provider, id)
			before, _ := p.sim.Counts()
			noErr(t, "delete", provider.DeleteByID(ctx, id, fleet.ReasonDone))
			after, _ := p.sim.Counts()
			for route, want := range map[string]int{"GET /servers/{id}": test.reads, "PUT /primary_ips/{id}": test.changes} {
				if got := after[route] - before[route]; got != want {
					t.Errorf("%s: %d calls, want %d", route, got, want)
				}
			}
			p.wantCount("server", test.left)
			all, err := provider.ListUnmanaged(ctx)
			noErr(t, "list unmanaged resources", err)
			ours := 0
			for _, s := range all {
				if s.Kind == "primary_ip" && s.HasOwnLabel {
					ours++
					noErr(t, "delete "+s.Name, provider.DeleteUnmanaged(ctx, s))
				}
			}
			if ours != test.ours {
				t.Errorf("got %d unclaimed addresses: %+v", ours, all)
			}
			p.wantCount("primary_ip", 2*test.left)
		})
	}
}

// TestDeleteImageChecksItsOwner: the owner is read from the API, unless the image was recently listed.
func TestDeleteImageChecksItsOwner(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		late, taken bool
		reads, left int
	}{
		"listed":                    {},
		"listed a quarter hour ago": {late: true, reads: 1},
		"listed, then not any more": {taken: true, reads: 1, left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, nil)
			provider, ctx := p.provider(nil), t.Context()
			p.running(provider, "vm-1")
			noErr(t, "power off", provider.PowerOff(ctx, p.id("vm-1")))
			img, err := provider.Image(ctx, fleet.ImageSpec{VM: p.id("vm-1"), Labels: sleepLabels()})
			noErr(t, "image", err)
			p.clock.Advance(10 * time.Minute)
			if test.taken {
				p.change("/images/"+img.ID, `{"labels":{}}`)
			}
			_, err = provider.Images(ctx)
			noErr(t, "list", err)
			if test.late {
				p.clock.Advance(15 * time.Minute)
			}
			before, _ := p.sim.Counts()
			if err := provider.DeleteImage(ctx, img.ID); (err != nil) != test.taken {
				t.Errorf("delete: %v", err)
			}
			after, _ := p.sim.Counts()
			if got := after["GET /images/{id}"] - before["GET /images/{id}"]; got != test.reads {
				t.Errorf("it was asked for %d times, want %d", got, test.reads)
			}
			p.wantCount("image", test.left)
		})
	}
}

// change applies a change made by a person.
func (p *project) change(path, body string) {
	p.t.Helper()
	p.request(http.MethodPut, path, body, http.StatusOK)
}
