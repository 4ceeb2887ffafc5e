package hetzner_test

import (
	"net"
	"testing"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// firewalls returns the names of a server's firewalls.
func (p *project) firewalls(id string) map[string]bool {
	p.t.Helper()
	client := hcloud.NewClient(hcloud.WithEndpoint(p.config().Endpoint), hcloud.WithToken(p.config().Token))
	s, _, err := client.Server.Get(p.t.Context(), id)
	noErr(p.t, "get server", err)
	names := map[string]bool{}
	for _, on := range s.PublicNet.Firewalls {
		f, _, err := client.Firewall.GetByID(p.t.Context(), on.Firewall.ID)
		noErr(p.t, "get firewall", err)
		names[f.Name] = true
	}
	return names
}

// TestNetworkIsOpenForTheFirstBootOnly: a server is created with the open firewall if its first boot downloads
// something, and has only the other one once CloseNetwork has succeeded.
func TestNetworkIsOpenForTheFirstBootOnly(t *testing.T) {
	t.Parallel()
	const open, usual = "errand-test-baking", "errand-test"
	for name, test := range map[string]struct {
		change        func(*hetzner.Config)
		image, kind   string
		before, after string
	}{
		"tether":            {nil, "", "", open, usual},
		"a baked image":     {nil, "debian-13", "", usual, usual},
		"baking":            {nil, "", fleet.ImageBaking, open, open},
		"open":              {func(c *hetzner.Config) { c.Egress = hetzner.EgressOpen }, "", "", usual, usual},
		"no public address": {func(c *hetzner.Config) { c.IPv4, c.IPv6, c.Network, c.Private = false, false, 1, true }, "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, nil)
			provider := p.provider(func(c *hetzner.Config) {
				c.Egress = hetzner.EgressTether
				if test.change != nil {
					test.change(c)
				}
				if c.Network != 0 {
					client := hcloud.NewClient(hcloud.WithEndpoint(p.config().Endpoint), hcloud.WithToken(p.config().Token))
					_, cidr, err := net.ParseCIDR("10.0.0.0/16")
					noErr(t, "parse", err)
					made, _, err := client.Network.Create(t.Context(), hcloud.NetworkCreateOpts{Name: "inner", IPRange: cidr})
					noErr(t, "create network", err)
					c.Network = made.ID
				}
			})
			s := spec("vm")
			s.Image = test.image
			if test.kind != "" {
				s.Labels[fleet.LabelKind] = test.kind
			}
			_, err := provider.Create(t.Context(), s)
			noErr(t, "create", err)
			p.clock.Advance(30 * time.Second)
			id := p.id("vm")
			only := func(when, want string) {
				t.Helper()
				if got := p.firewalls(id); want == "" && len(got) != 0 || want != "" && (len(got) != 1 || !got[want]) {
					t.Errorf("%s: got firewalls %v, want %q", when, got, want)
				}
			}
			only("before", test.before)
			err = provider.CloseNetwork(t.Context(), id)
			noErr(t, "close", err)
			noErr(t, "close again", provider.CloseNetwork(t.Context(), id))
			only("after", test.after)
			unmanaged, err := provider.ListUnmanaged(t.Context())
			noErr(t, "list unmanaged resources", err)
			for _, u := range unmanaged {
				t.Errorf("got unmanaged resource %+v", u)
			}
		})
	}
}

// TestNetworkIsClosedOnlyWhenTheAPISaysSo: refusals, lost answers, failing actions and answers that are not true make
// no server count as closed whose open firewall still applies, and the next attempts close it.
func TestNetworkIsClosedOnlyWhenTheAPISaysSo(t *testing.T) {
	t.Parallel()
	const apply, remove = `/actions/apply_to_resources$`, `/actions/remove_from_resources$`
	for name, fault := range map[string]simhetzner.Fault{
		"the usual firewall is refused":    {Path: apply, Code: "conflict", Count: 2},
		"the answer is lost":               {Path: apply, Cut: true, After: true, Count: 1},
		"the order is lost":                {Path: apply, Cut: true, Count: 1},
		"the removal is refused":           {Path: remove, Code: "locked", Count: 2},
		"the removal fails later":          {Path: remove, ActionCode: "action_failed", Count: 1},
		"the removal is slow":              {Path: remove, Slow: 20 * time.Second, Count: 3},
		"the removal is accepted and lost": {Path: remove, Status: 201, Count: 2},
		"the server cannot be read":        {Method: "GET", Path: `^/servers/\d+$`, Status: 500, Count: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, nil)
			provider := p.provider(func(c *hetzner.Config) { c.Egress = hetzner.EgressTether })
			id := p.running(provider, "vm").ID
			p.fault(fault)
			var err error
			for range 20 {
				if err = provider.CloseNetwork(t.Context(), id); err == nil {
					break
				}
				p.clock.Advance(5 * time.Second)
			}
			noErr(t, "close", err)
			if got := p.firewalls(id); len(got) != 1 || !got["errand-test"] {
				t.Errorf("got firewalls %v", got)
			}
		})
	}
}
