package hetzner_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// TestDeleteDoesNotWaitForAddresses: a server is deleted even if the API refuses to change its addresses. A remaining
// address still belongs to this deployment and is deleted as soon as the API allows it.
func TestDeleteDoesNotWaitForAddresses(t *testing.T) {
	t.Parallel()
	faults := map[string]simhetzner.Fault{
		"server error":      {Status: http.StatusInternalServerError},
		"bad gateway":       {Status: http.StatusBadGateway},
		"conflict":          {Code: "conflict"},
		"locked":            {Code: "locked"},
		"forbidden":         {Code: "forbidden"},
		"protected":         {Code: "protected"},
		"invalid input":     {Code: "invalid_input"},
		"no answer":         {Cut: true},
		"answer lost":       {Cut: true, After: true},
		"rate limit":        {Code: "rate_limit_exceeded"},
		"not JSON, refused": {Status: http.StatusForbidden},
	}
	for what, fault := range faults {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, func(c *simhetzner.Config) { c.KeepAddresses = true })
			provider, ctx := p.provider(nil), t.Context()
			p.running(provider, "vm-1")
			p.person("/primary_ips", `{"name":"theirs","type":"ipv4","assignee_type":"server","location":"fsn1"}`)
			fault.Method, fault.Path = http.MethodPut, "^/primary_ips/"
			p.fault(fault)
			if err := provider.Delete(ctx, "vm-1", fleet.ReasonDone); err != nil && what != "rate limit" {
				t.Fatalf("delete: %v", err)
			} else if err != nil { // no call is made for a while
				p.clock.Advance(time.Minute)
				noErr(t, "delete again", provider.Delete(ctx, "vm-1", fleet.ReasonDone))
			}
			p.wantCount("server", 0)
			p.clock.Advance(time.Minute)
			all, err := provider.ListUnmanaged(ctx)
			noErr(t, "list unmanaged resources", err)
			ours := 0
			for _, s := range all {
				if s.Name == "theirs" || !s.HasOwnLabel {
					continue
				}
				ours++
				if s.Labels[fleet.LabelOwner] != "owner-of-vm-1" {
					t.Errorf("got unclaimed addresses %+v", s)
				}
				noErr(t, "delete "+s.Name, provider.DeleteUnmanaged(ctx, s))
			}
			if want := map[bool]int{false: 2, true: 0}[fault.After]; ours != want { // labeled ones were deleted with it
				t.Errorf("got %d unclaimed addresses: %+v", ours, all)
			}
			p.wantCount("primary_ip", 1)
		})
	}
}

// TestUnclaimedAddressIsClaimedByAnotherServer: a remaining address is not deleted once a person uses it, with other
// labels or at another server.
func TestUnclaimedAddressIsClaimedByAnotherServer(t *testing.T) {
	t.Parallel()
	p := newProject(t, func(c *simhetzner.Config) { c.KeepAddresses = true })
	provider, ctx := p.provider(nil), t.Context()
	p.running(provider, "vm-1")
	p.fault(simhetzner.Fault{Method: http.MethodPut, Path: "^/primary_ips/", Code: "conflict"})
	noErr(t, "delete", provider.Delete(ctx, "vm-1", fleet.ReasonDone))
	p.sim.ClearFaults()
	p.clock.Advance(time.Minute)
	left := map[string]fleet.UnmanagedResource{}
	all, err := provider.ListUnmanaged(ctx)
	noErr(t, "list unmanaged resources", err)
	for _, s := range all {
		left[s.ID] = s
	}
	if len(left) != 2 {
		t.Fatalf("got unclaimed addresses %+v", all)
	}
	var used, labeled int64
	for _, o := range p.sim.Objects("primary_ip") {
		if ip, _, _ := strings.Cut(o.Name, " "); used == 0 && ip != "" {
			used = o.ID
		} else {
			labeled = o.ID
		}
	}
	p.request(http.MethodPut, fmt.Sprintf("/primary_ips/%d", labeled), `{"labels":{"team":"shop"}}`, http.StatusOK)
	field := map[bool]string{true: "ipv4", false: "ipv6"}[strings.Contains(left[fmt.Sprint(used)].Name, ".")]
	p.person("/servers", fmt.Sprintf(`{"name":"mine","server_type":"cx23","image":"debian-13","location":"fsn1",
		"public_net":{"enable_ipv4":%t,"enable_ipv6":%t,%q:%d}}`, field == "ipv4", field == "ipv6", field, used))
	p.clock.Advance(time.Minute)
	_, err = provider.ListUnmanaged(ctx) // reads their present owner
	noErr(t, "list unmanaged resources", err)
	servers, err := hcloud.NewClient(hcloud.WithEndpoint(p.url), hcloud.WithToken(token)).Server.All(ctx)
	noErr(t, "servers", err)
	p.request(http.MethodDelete, fmt.Sprintf("/servers/%d", servers[0].ID), "", http.StatusOK)
	p.clock.Advance(time.Minute)
	again, err := provider.ListUnmanaged(ctx)
	noErr(t, "list unmanaged resources", err)
	if len(again) == 0 {
		t.Error("got no remaining address")
	}
	for _, s := range again {
		if s.HasOwnLabel {
			t.Errorf("counted as this deployment's: %+v", s)
		}
		s.HasOwnLabel = true
		wantErr(t, "delete", provider.DeleteUnmanaged(ctx, s), fleet.ErrInvalid)
	}
}
