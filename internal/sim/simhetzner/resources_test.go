package simhetzner_test

import (
	"crypto/ed25519"
	"net"
	"testing"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

func publicKey(t *testing.T, seed byte) string {
	t.Helper()
	raw := make([]byte, ed25519.SeedSize)
	raw[0] = seed
	key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(raw).Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(ssh.MarshalAuthorizedKey(key))
}

func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	key, _, err := w.client.SSHKey.Create(ctx, hcloud.SSHKeyCreateOpts{Name: "ours", PublicKey: publicKey(t, 1), Labels: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]hcloud.SSHKeyCreateOpts{
		"name": {Name: "ours", PublicKey: publicKey(t, 2)}, "key": {Name: "theirs", PublicKey: publicKey(t, 1)},
	} {
		if _, _, err := w.client.SSHKey.Create(ctx, o); !hcloud.IsError(err, hcloud.ErrorCodeUniquenessError) {
			t.Errorf("same %s again: got %v", name, err)
		}
	}
	if _, _, err := w.client.SSHKey.Create(ctx, hcloud.SSHKeyCreateOpts{Name: "bad", PublicKey: "ssh-ed25519 AAAA"}); !hcloud.IsError(err, hcloud.ErrorCodeInvalidInput) {
		t.Errorf("invalid key: got %v", err)
	}
	found, _, err := w.client.SSHKey.GetByFingerprint(ctx, key.Fingerprint)
	if err != nil || found == nil || found.ID != key.ID {
		t.Errorf("by fingerprint: got %v, %v", found, err)
	}
	if key, _, err = w.client.SSHKey.Update(ctx, key, hcloud.SSHKeyUpdateOpts{Name: "renamed"}); err != nil || key.Labels["a"] != "b" {
		t.Errorf("renamed: got %+v, %v", key, err)
	}
	res, _, err := w.client.Server.Create(ctx, w.opts("vm-1", func(o *hcloud.ServerCreateOpts) { o.SSHKeys = []*hcloud.SSHKey{key} }))
	if err != nil || res.RootPassword != "" {
		t.Errorf("server with a key: got password %q, %v", res.RootPassword, err)
	}
	if _, err := w.client.SSHKey.Delete(ctx, key); err != nil {
		t.Error(err)
	}
	if _, err := w.client.SSHKey.Delete(ctx, key); !hcloud.IsError(err, hcloud.ErrorCodeNotFound) {
		t.Errorf("second time: got %v", err)
	}
}

func TestFirewalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	_, all, err := net.ParseCIDR("0.0.0.0/0")
	if err != nil {
		t.Fatal(err)
	}
	rules := []hcloud.FirewallRule{{Direction: hcloud.FirewallRuleDirectionIn, Protocol: hcloud.FirewallRuleProtocolTCP, Port: hcloud.Ptr("22"), SourceIPs: []net.IPNet{*all}}}
	made, _, err := w.client.Firewall.Create(ctx, hcloud.FirewallCreateOpts{Name: "fw", Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, nil, made.Actions...)
	if _, _, err := w.client.Firewall.Create(ctx, hcloud.FirewallCreateOpts{Name: "fw"}); !hcloud.IsError(err, hcloud.ErrorCodeUniquenessError) {
		t.Errorf("second time: got %v", err)
	}
	bad := []hcloud.FirewallRule{{Direction: hcloud.FirewallRuleDirectionIn, Protocol: hcloud.FirewallRuleProtocolTCP, SourceIPs: []net.IPNet{*all}}}
	if _, _, err := w.client.Firewall.SetRules(ctx, made.Firewall, hcloud.FirewallSetRulesOpts{Rules: bad}); !hcloud.IsError(err, hcloud.ErrorCodeInvalidInput) {
		t.Errorf("no port: got %v", err)
	}
	sv := w.create(t, "vm-1", func(o *hcloud.ServerCreateOpts) {
		o.Firewalls = []*hcloud.ServerCreateFirewall{{Firewall: *made.Firewall}}
	})
	if len(sv.PublicNet.Firewalls) != 1 || sv.PublicNet.Firewalls[0].Status != hcloud.FirewallStatusApplied {
		t.Errorf("right after creation: got %+v", sv.PublicNet.Firewalls)
	}
	if _, err := w.client.Firewall.Delete(ctx, made.Firewall); !hcloud.IsError(err, "resource_in_use") {
		t.Errorf("delete in use: got %v", err)
	}
	on := []hcloud.FirewallResource{{Type: hcloud.FirewallResourceTypeServer, Server: &hcloud.FirewallResourceServer{ID: sv.ID}}}
	actions, _, err := w.client.Firewall.RemoveResources(ctx, made.Firewall, on)
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, nil, actions...)
	if _, err := w.client.Firewall.Delete(ctx, made.Firewall); err != nil {
		t.Error(err)
	}
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	_, wide, err := net.ParseCIDR("10.0.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	_, sub, err := net.ParseCIDR("10.0.1.0/24")
	if err != nil {
		t.Fatal(err)
	}
	n, _, err := w.client.Network.Create(ctx, hcloud.NetworkCreateOpts{Name: "net", IPRange: wide, Subnets: []hcloud.NetworkSubnet{
		{Type: hcloud.NetworkSubnetTypeCloud, IPRange: sub, NetworkZone: hcloud.NetworkZoneEUCentral},
	}})
	if err != nil {
		t.Fatal(err)
	}
	private := func(o *hcloud.ServerCreateOpts) {
		o.Networks, o.PublicNet = []*hcloud.Network{n}, &hcloud.ServerCreatePublicNet{}
	}
	sv := w.create(t, "vm-1", private)
	if !sv.PublicNet.IPv4.IsUnspecified() || len(sv.PrivateNet) != 1 || sv.PrivateNet[0].IP.String() != "10.0.1.2" {
		t.Errorf("without public address: got %+v %+v", sv.PublicNet, sv.PrivateNet)
	}
	if second := w.create(t, "vm-2", private); second.PrivateNet[0].IP.String() != "10.0.1.3" {
		t.Errorf("second: got %+v", second.PrivateNet)
	}
	if len(w.Objects("primary_ip")) != 0 {
		t.Errorf("got addresses %+v, want none", w.Objects("primary_ip"))
	}
	if _, err := w.client.Network.Delete(ctx, n); !hcloud.IsError(err, "resource_in_use") {
		t.Errorf("delete in use: got %v", err)
	}
	a, _, err := w.client.Server.DetachFromNetwork(ctx, sv, hcloud.ServerDetachFromNetworkOpts{Network: n})
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, a)
	a, _, err = w.client.Server.AttachToNetwork(ctx, sv, hcloud.ServerAttachToNetworkOpts{Network: n, IP: net.ParseIP("10.0.1.77")})
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, a)
	if got := w.get(t, sv.ID); got.PrivateNet[0].IP.String() != "10.0.1.77" {
		t.Errorf("with a requested address: got %+v", got.PrivateNet)
	}
}

func TestVolumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	made, _, err := w.client.Volume.Create(ctx, hcloud.VolumeCreateOpts{Name: "vol", Size: 10, Location: &hcloud.Location{Name: "fsn1"}})
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, made.Action)
	sv := w.create(t, "vm-1", func(o *hcloud.ServerCreateOpts) { o.Volumes = []*hcloud.Volume{made.Volume} })
	if _, err := w.client.Volume.Delete(ctx, made.Volume); !hcloud.IsError(err, "resource_in_use") {
		t.Errorf("delete in use: got %v", err)
	}
	w.delete(t, sv)
	left := w.Objects("")
	if len(left) != 1 || left[0].Kind != "volume" || left[0].Server != 0 {
		t.Errorf("volume after its server's deletion: got %+v", left)
	}
	a, _, err := w.client.Volume.Resize(ctx, made.Volume, 20)
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, a)
	if _, err := w.client.Volume.Delete(ctx, made.Volume); err != nil {
		t.Error(err)
	}
}

// TestAddresses: addresses created with a server are deleted with it, unless the account is configured otherwise.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]bool{"go": false, "stay": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *simhetzner.Config) { c.KeepAddresses = keep })
			w.delete(t, w.create(t, "vm-1"))
			ips, err := w.client.PrimaryIP.All(t.Context())
			if err != nil || (len(ips) == 2) != keep {
				t.Fatalf("got %+v, %v", ips, err)
			}
			for _, ip := range ips {
				if ip.AssigneeID != 0 || len(ip.Labels) != 0 {
					t.Errorf("got %+v", ip)
				}
				if _, err := w.client.PrimaryIP.Delete(t.Context(), ip); err != nil {
					t.Error(err)
				}
			}
		})
	}
	w := newWorld(t)
	own, _, err := w.client.PrimaryIP.Create(t.Context(), hcloud.PrimaryIPCreateOpts{Name: "own", Type: hcloud.PrimaryIPTypeIPv4, Location: "fsn1", AssigneeType: "server"})
	if err != nil {
		t.Fatal(err)
	}
	sv := w.create(t, "vm-1", func(o *hcloud.ServerCreateOpts) {
		o.PublicNet = &hcloud.ServerCreatePublicNet{EnableIPv4: true, IPv4: own.PrimaryIP}
	})
	if !sv.PublicNet.IPv4.IP.Equal(own.PrimaryIP.IP) || sv.PublicNet.IPv6.ID != 0 {
		t.Errorf("with an existing address: got %+v", sv.PublicNet)
	}
	w.delete(t, sv)
	if left := w.Objects("primary_ip"); len(left) != 1 || left[0].Name != "own" {
		t.Errorf("address after the server's deletion: got %+v", left)
	}
}

// TestPricing: the client decodes the prices; it panics if floating IPs have fewer kinds than primary ones.
func TestPricing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, _, err := w.client.Pricing.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p.Currency != "EUR" || p.VATRate != "19.000000" || p.Image.PerGBMonth.Net != "0.0143000000" || len(p.PrimaryIPs) != 2 || len(p.ServerTypes) == 0 {
		t.Errorf("got %+v", p)
	}
	types, err := w.client.ServerType.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range types {
		if len(typ.Pricings) == 0 || len(typ.Pricings) != len(typ.Locations) {
			t.Errorf("%s: got %d prices in %d locations", typ.Name, len(typ.Pricings), len(typ.Locations))
		}
		if typ.Name == "cx23" && (typ.Pricings[0].Hourly.Net != "0.0088000000" || typ.Pricings[0].Hourly.Gross != "0.0104720000000000") {
			t.Errorf("cx23: got %+v", typ.Pricings[0].Hourly)
		}
	}
	one, _, err := w.client.ServerType.GetByID(t.Context(), types[0].ID)
	if err != nil || one.Name != types[0].Name {
		t.Errorf("%v, %v", one, err)
	}
	l, _, err := w.client.Location.GetByName(t.Context(), "hel1")
	if err != nil || l.NetworkZone != hcloud.NetworkZoneEUCentral {
		t.Errorf("%v, %v", l, err)
	}
	req, err := w.client.NewRequest(t.Context(), "GET", "/pricing", nil)
	if err != nil {
		t.Fatal(err)
	}
	var raw schema.PricingGetResponse
	if _, err := w.client.Do(req, &raw); err != nil || len(raw.Pricing.FloatingIPs) < len(raw.Pricing.PrimaryIPs) {
		t.Errorf("%v, %v", raw.Pricing, err)
	}
}
