package simhetzner_test

import (
	"testing"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// TestFaultsFalsifyAnswers: a fault may falsify an answer without changing the object.
func TestFaultsFalsifyAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	res, _, err := w.client.Server.Create(ctx, w.opts("vm-1"))
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, res.Action, res.NextActions...)
	w.fault(t, simhetzner.Fault{Path: "^/servers$", Hide: "vm-1$", Count: 1})
	for _, want := range []int{0, 1} {
		if all, err := w.client.Server.All(ctx); err != nil || len(all) != want {
			t.Errorf("got %d of %d servers, %v", len(all), want, err)
		}
	}
	w.fault(t, simhetzner.Fault{Path: "^/servers/", Claim: "off", Count: 1})
	for _, want := range []hcloud.ServerStatus{"off", "running"} {
		if sv, _, err := w.client.Server.GetByID(ctx, res.Server.ID); err != nil || sv.Status != want {
			t.Errorf("got %+v, want %s, %v", sv, want, err)
		}
	}
	w.fault(t, simhetzner.Fault{Method: "DELETE", ActionCode: "action_failed", Claim: "success", Count: 1})
	deleted, _, err := w.client.Server.DeleteWithResult(ctx, res.Server)
	if err != nil || deleted.Action.Status != hcloud.ActionStatusSuccess {
		t.Errorf("after the deletion: got %+v, %v", deleted, err)
	}
	w.clock.Advance(time.Minute)
	if all := w.Objects("server"); len(all) != 1 || all[0].Status != "running" {
		t.Errorf("got %+v", all)
	}
}

// TestOrdersMayBeExecutedTwice: an order may be executed twice.
func TestOrdersMayBeExecutedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	res, _, err := w.client.Server.Create(t.Context(), w.opts("vm-1"))
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, res.Action, res.NextActions...)
	second := w.Twin(res.Server.ID)
	all := w.Objects("server")
	if second == 0 || second == res.Server.ID || len(all) != 2 || all[0].Name != all[1].Name || all[0].Labels["errand-owner"] != all[1].Labels["errand-owner"] {
		t.Errorf("got twin %d, servers %+v", second, all)
	}
	if w.Twin(4711) != 0 {
		t.Error("got a twin of a missing server")
	}
}
