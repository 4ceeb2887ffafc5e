package hetzner_test

import (
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// person makes a request as a person would in the console.
func (p *project) person(path, body string) {
	p.t.Helper()
	p.request(http.MethodPost, path, body, http.StatusCreated)
}

// request makes a request that does not come from the provider.
func (p *project) request(method, path, body string, want int) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	noErr(p.t, "ask", err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := webtest.Client().Do(req)
	noErr(p.t, "ask", err)
	_ = resp.Body.Close()
	if resp.StatusCode != want {
		p.t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
}

func listUnmanaged(t *testing.T, provider *hetzner.Provider) map[string]fleet.UnmanagedResource {
	t.Helper()
	all, err := provider.ListUnmanaged(t.Context())
	noErr(t, "list unmanaged resources", err)
	out := map[string]fleet.UnmanagedResource{}
	for _, s := range all {
		key := s.Kind + " theirs"
		if s.HasOwnLabel {
			key = s.Kind + " ours"
		}
		out[key] = s
	}
	if len(out) != len(all) {
		t.Errorf("got more than one of a kind: %+v", all)
	}
	return out
}

func TestUnmanagedResourcesAreListed(t *testing.T) {
	t.Parallel()
	p := newProject(t, func(c *simhetzner.Config) { c.KeepAddresses = true })
	provider := p.provider(nil)
	ctx := t.Context()
	p.running(provider, "vm-1")
	if found := listUnmanaged(t, provider); len(found) != 0 {
		t.Errorf("got unmanaged resources %+v, want none", found)
	}
	before := p.provider(func(c *hetzner.Config) { c.ClientKey = publicKey(t, 9) }) // the deployment had another key
	noErr(t, "setup", before.Setup(ctx))
	p.person("/servers", `{"name":"mine","server_type":"cx23","image":"debian-13","location":"fsn1","public_net":{"enable_ipv4":false,"enable_ipv6":true}}`)
	p.person("/volumes", `{"name":"mine","size":10,"location":"fsn1"}`)
	p.person("/volumes", `{"name":"ours","size":10,"location":"fsn1","labels":{"`+fleet.LabelDeployment+`":"test"}}`)
	p.person("/firewalls", `{"name":"mine"}`)
	p.person("/firewalls", `{"name":"old","labels":{"`+fleet.LabelDeployment+`":"test"}}`)
	p.person("/ssh_keys", `{"name":"mine","public_key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAp40f4tHXTW3eFCZf43w84Y+L3pwY+VAoH0rX2xd1sr"}`)
	found := listUnmanaged(t, provider)
	for _, key := range []string{"server theirs", "volume theirs", "volume ours", "firewall theirs", "firewall ours", "ssh_key theirs", "ssh_key ours"} {
		if _, ok := found[key]; !ok {
			t.Errorf("no %s in %+v", key, found)
		}
	}
	if len(found) != 7 {
		t.Errorf("got %+v", found)
	}
	for key, s := range found {
		err := provider.DeleteUnmanaged(ctx, s)
		if s.HasOwnLabel {
			noErr(t, "delete "+key, err)
			noErr(t, "delete again "+key, provider.DeleteUnmanaged(ctx, s))
			continue
		}
		wantErr(t, "delete "+key, err, fleet.ErrInvalid)
		s.HasOwnLabel = true // even if the caller claims it
		wantErr(t, "delete again "+key, provider.DeleteUnmanaged(ctx, s), fleet.ErrInvalid)
	}
	p.wantCount("volume", 1)
	p.wantCount("firewall", 2)
	p.wantCount("ssh_key", 2)
	p.wantCount("server", 2)
	p.running(provider, "vm-2")
}

// TestRemainingAddressesAreUnmanaged: with this API, addresses always survive their server.
func TestRemainingAddressesAreUnmanaged(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	ctx := t.Context()
	p.running(provider, "vm-1")
	// A person deletes the server and keeps the addresses: they are unmanaged.
	noErr(t, "delete", provider.Delete(ctx, "vm-1", fleet.ReasonDone))
	p.wantCount("primary_ip", 0)

	q := newProject(t, func(c *simhetzner.Config) { c.KeepAddresses = true })
	provider = q.provider(nil)
	q.running(provider, "vm-1")
	noErr(t, "delete", provider.Delete(ctx, "vm-1", fleet.ReasonDone))
	all, err := provider.ListUnmanaged(ctx)
	noErr(t, "list unmanaged resources", err)
	for _, s := range all {
		if s.Kind != "primary_ip" || !s.HasOwnLabel || s.Labels[fleet.LabelOwner] != "owner-of-vm-1" {
			t.Errorf("got unmanaged resource %+v", s)
		}
		noErr(t, "delete", provider.DeleteUnmanaged(ctx, s))
	}
	q.wantCount("primary_ip", 0)
}

func TestSetup(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	ctx := t.Context()
	provider := p.provider(nil)
	for range 2 {
		noErr(t, "setup", provider.Setup(ctx))
	}
	routes, _ := p.sim.Counts()
	if routes["POST /ssh_keys"] != 1 || routes["POST /firewalls"] != 1 {
		t.Errorf("got requests %v", routes)
	}
	narrow := p.provider(func(c *hetzner.Config) {
		c.SSHFrom, c.Egress = []string{"203.0.113.7/32"}, hetzner.EgressTether
	})
	for range 2 {
		noErr(t, "setup with other rules", narrow.Setup(ctx))
	}
	p.wantCount("firewall", 2) // the second is for servers on which images are baked
	set := 0
	for _, r := range p.sim.Requests() {
		if strings.HasSuffix(r.Path, "/actions/set_rules") {
			set++
		}
	}
	if set != 1 {
		t.Errorf("got %d updates of the rules", set)
	}
	for _, o := range append(p.sim.Objects("ssh_key"), p.sim.Objects("firewall")...) {
		if o.Labels[fleet.LabelDeployment] != "test" {
			t.Errorf("%s %s: got labels %v", o.Kind, o.Name, o.Labels)
		}
	}
	stolen := newProject(t, nil)
	stolen.person("/firewalls", `{"name":"errand-test"}`)
	wantErr(t, "setup with a firewall of a person's", stolen.provider(nil).Setup(ctx), fleet.ErrInvalid)
}

// TestDeletedKeyIsCreatedAgain: an SSH key that a person deleted is registered again.
func TestDeletedKeyIsCreatedAgain(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	ctx := t.Context()
	noErr(t, "setup", provider.Setup(ctx))
	cleaner := p.provider(func(c *hetzner.Config) { c.ClientKey = publicKey(t, 8) })
	all, err := cleaner.ListUnmanaged(ctx)
	if err != nil || len(all) != 1 || all[0].Kind != "ssh_key" {
		t.Fatalf("got unmanaged resources %+v, error %v", all, err)
	}
	noErr(t, "delete", cleaner.DeleteUnmanaged(ctx, all[0]))
	p.wantCount("ssh_key", 0)
	p.running(provider, "vm-1")
	p.wantCount("ssh_key", 1)
}

// TestAddressOfAVM: the IPv6 address is the first of its network. A VM with only a private address has neither a public
// address nor a firewall.
func TestAddressOfAVM(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	v6 := p.running(p.provider(func(c *hetzner.Config) { c.IPv4 = false }), "vm-6")
	if host, port, err := net.SplitHostPort(v6.Endpoint.Address); err != nil || port != "22" || !strings.HasSuffix(host, "::1") {
		t.Errorf("by IPv6: got %+v", v6.Endpoint)
	}
	p.wantCount("primary_ip", 1)
	p.person("/networks", `{"name":"inner","ip_range":"10.0.0.0/16","subnets":[{"type":"cloud","ip_range":"10.0.1.0/24","network_zone":"eu-central"}]}`)
	inner := p.sim.Objects("network")[0].ID
	q := p.provider(func(c *hetzner.Config) {
		c.Deployment, c.IPv4, c.IPv6, c.Network, c.Private = "inner", false, false, inner, true
	})
	vm := p.running(q, "vm-inner")
	if !strings.HasPrefix(vm.Endpoint.Address, "10.0.") || !strings.HasSuffix(vm.Endpoint.Address, ":22") {
		t.Errorf("by a private address: got %+v", vm.Endpoint)
	}
	p.wantCount("firewall", 1)
	p.wantCount("primary_ip", 1)
	noErr(t, "delete", q.Delete(t.Context(), "vm-inner", fleet.ReasonDone))
	if vm.MicroHour >= v6.MicroHour+1 || vm.MicroHour <= 0 {
		t.Errorf("got a price of %d, %d with IPv6", vm.MicroHour, v6.MicroHour)
	}
}

// TestIncompleteListKeepsOtherKinds: a failing list, also on its second page, only omits its own kind.
func TestIncompleteListKeepsOtherKinds(t *testing.T) {
	t.Parallel()
	paths := map[string]string{
		"server": "^/servers$", "foreign_image": "^/images$", "primary_ip": "^/primary_ips$", "volume": "^/volumes$", "ssh_key": "^/ssh_keys$", "firewall": "^/firewalls$",
	}
	answers := map[string]simhetzner.Fault{
		"500": {Status: http.StatusInternalServerError}, "forbidden": {Code: "forbidden"}, "unknown path": {Status: http.StatusNotFound}, "cut": {Cut: true},
	}
	for kind, path := range paths {
		for how, fault := range answers {
			t.Run(kind+"/"+how, func(t *testing.T) {
				t.Parallel()
				p := newProject(t, nil)
				provider := p.provider(nil)
				p.person("/servers", `{"name":"mine","server_type":"cx23","image":"debian-13","location":"fsn1","public_net":{"enable_ipv4":false,"enable_ipv6":true}}`)
				p.person("/primary_ips", `{"name":"mine","type":"ipv4","assignee_type":"server","location":"fsn1"}`)
				p.person("/volumes", `{"name":"mine","size":10,"location":"fsn1"}`)
				p.person("/firewalls", `{"name":"mine"}`)
				p.person("/ssh_keys", `{"name":"mine","public_key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAp40f4tHXTW3eFCZf43w84Y+L3pwY+VAoH0rX2xd1sr"}`)
				p.clock.Advance(time.Minute)
				p.person("/servers/"+strconv.FormatInt(p.sim.Objects("server")[0].ID, 10)+"/actions/create_image", `{"type":"snapshot","description":"mine"}`)
				fault.Method, fault.Path = http.MethodGet, path
				p.fault(fault)
				found, err := provider.ListUnmanaged(t.Context())
				var unlisted *fleet.UnlistedError
				if !errors.As(err, &unlisted) || len(unlisted.Kinds) != 1 || unlisted.Kinds[kind] == nil {
					t.Errorf("got error %v", err)
				}
				want := slices.DeleteFunc(slices.Sorted(maps.Keys(paths)), func(k string) bool { return k == kind })
				var got []string
				for _, s := range found {
					got = append(got, s.Kind)
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("listed %v, want %v", got, want)
				}
			})
		}
	}
}
