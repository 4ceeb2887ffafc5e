package simhetzner_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/exp/actionutil"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// TestFaultedOrders orders a server with a fault, and checks whether it exists afterwards.
func TestFaultedOrders(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		fault  simhetzner.Fault
		code   hcloud.ErrorCode // "": no error of the API
		status int              // of the answer; 0: no answer
		exists bool
	}{
		"lost before":       {fault: simhetzner.Fault{Cut: true}},
		"lost after":        {fault: simhetzner.Fault{Cut: true, After: true}, exists: true},
		"limited":           {fault: simhetzner.Fault{Code: "rate_limit_exceeded"}, code: hcloud.ErrorCodeRateLimitExceeded, status: 429},
		"locked":            {fault: simhetzner.Fault{Code: "locked"}, code: hcloud.ErrorCodeLocked, status: 423},
		"conflict":          {fault: simhetzner.Fault{Code: "conflict"}, code: hcloud.ErrorCodeConflict, status: 409},
		"placement":         {fault: simhetzner.Fault{Code: "placement_error"}, code: hcloud.ErrorCodePlacementError, status: 412},
		"server error":      {fault: simhetzner.Fault{Code: "server_error"}, code: "server_error", status: 500},
		"unavailable":       {fault: simhetzner.Fault{Code: "unavailable"}, code: "unavailable", status: 503},
		"maintenance, done": {fault: simhetzner.Fault{Code: "maintenance", After: true}, code: hcloud.ErrorCodeMaintenance, status: 503, exists: true},
		"bare 502":          {fault: simhetzner.Fault{Status: 502}, status: 502},
		"bare 504, done":    {fault: simhetzner.Fault{Status: 504, After: true}, status: 504, exists: true},
		"unauthorized":      {fault: simhetzner.Fault{Code: "unauthorized"}, code: hcloud.ErrorCodeUnauthorized, status: 401},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.fault.Method, c.fault.Path, c.fault.Count = "POST", "^/servers$", 1
			w.fault(t, c.fault)
			_, res, err := w.client.Server.Create(t.Context(), w.opts("vm-1"))
			if err == nil {
				t.Fatal("the fault did not apply")
			}
			if c.code != "" && !hcloud.IsError(err, c.code) {
				t.Errorf("got %v, want %s", err, c.code)
			}
			if c.status != 0 && (res == nil || res.StatusCode != c.status) {
				t.Errorf("got answer %+v, want %d", res, c.status)
			}
			if got := len(w.Objects("server")); (got == 1) != c.exists {
				t.Errorf("got %d servers", got)
			}
			_, _, err = w.client.Server.Create(t.Context(), w.opts("vm-1"))
			if got := hcloud.IsError(err, hcloud.ErrorCodeUniquenessError); got != c.exists {
				t.Errorf("next order: %v", err)
			}
		})
	}
}

// TestHangingRequestsTimeOut: the request ends with the client's timeout, with or without an effect.
func TestHangingRequestsTimeOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault(t, simhetzner.Fault{Method: "POST", Path: "^/servers$", Hang: true, After: true, Count: 1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, _, err := w.client.Server.Create(ctx, w.opts("vm-1"))
		done <- err
	}()
	for len(w.Objects("server")) == 0 { // the request was received
		select {
		case err := <-done:
			t.Fatalf("the request did not hang: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("got an answer")
	}
}

// TestLateOrdersTakeEffect: the answer is lost, and the order takes effect some time later.
func TestLateOrdersTakeEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault(t, simhetzner.Fault{Method: "POST", Path: "^/servers$", Late: 30 * time.Second, Count: 1})
	if _, _, err := w.client.Server.Create(t.Context(), w.opts("vm-1")); err == nil {
		t.Error("got an answer")
	}
	w.clock.Advance(29 * time.Second)
	if sv, _, err := w.client.Server.GetByName(t.Context(), "vm-1"); err != nil || sv != nil {
		t.Errorf("before the delay: got %v, %v", sv, err)
	}
	w.clock.Advance(time.Second)
	sv, _, err := w.client.Server.GetByName(t.Context(), "vm-1")
	if err != nil || sv == nil || !sv.Created.Equal(start.Add(30*time.Second)) {
		t.Fatalf("after the delay: got %+v, %v", sv, err)
	}
	w.clock.Advance(time.Minute)
	if got := w.get(t, sv.ID); got.Status != hcloud.ServerStatusRunning {
		t.Errorf("the server did not start: got %s", got.Status)
	}
}

// TestLateTwin: a late order is refused because its name was used meanwhile.
func TestLateTwin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault(t, simhetzner.Fault{Method: "POST", Path: "^/servers$", Late: time.Minute, Status: 504, Count: 1})
	if _, res, err := w.client.Server.Create(t.Context(), w.opts("vm-1")); err == nil || res.StatusCode != 504 {
		t.Errorf("got %+v, %v", res, err)
	}
	w.create(t, "vm-1")
	w.clock.Advance(time.Hour)
	if got := len(w.Objects("server")); got != 1 {
		t.Errorf("got %d servers", got)
	}
}

func TestFailedActions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault(t, simhetzner.Fault{Method: "POST", Path: "^/servers$", ActionCode: "server_error", Count: 1})
	res, _, err := w.client.Server.Create(t.Context(), w.opts("vm-1"))
	if err != nil {
		t.Fatal(err)
	}
	err = w.client.Action.WaitFor(t.Context(), actionutil.AppendNext(res.Action, res.NextActions)...)
	if !failedWith(err, "server_error") {
		t.Errorf("action: got %v", err)
	}
	if sv := w.get(t, res.Server.ID); sv.Status != hcloud.ServerStatusOff || sv.Locked {
		t.Errorf("the server costs money, but is %s, locked %v", sv.Status, sv.Locked)
	}
	w.delete(t, res.Server)

	sv := w.create(t, "vm-2")
	w.fault(t, simhetzner.Fault{Path: "/actions/create_image$", Slow: 40 * time.Minute, Count: 1})
	w.fault(t, simhetzner.Fault{Path: "/actions/create_image$", Nth: 1, Unreadable: true, Count: 1})
	before := w.clock.Now()
	slow, _, err := w.client.Server.CreateImage(t.Context(), sv, &hcloud.ServerCreateImageOpts{Type: hcloud.ImageTypeSnapshot})
	if err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(39 * time.Minute)
	a, _, err := w.client.Action.GetByID(t.Context(), slow.Action.ID)
	if err != nil || a.Status != hcloud.ActionStatusRunning || a.Progress != 97 {
		t.Errorf("after 39 minutes: got %+v, %v", a, err)
	}
	w.wait(t, slow.Action)
	if took := w.clock.Now().Sub(before); took < 40*time.Minute {
		t.Errorf("slow image: got a duration of %v", took)
	}
	bad, _, err := w.client.Server.CreateImage(t.Context(), sv, &hcloud.ServerCreateImageOpts{Type: hcloud.ImageTypeSnapshot})
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, bad.Action)
	image, _, err := w.client.Image.GetByID(t.Context(), bad.Image.ID)
	if err != nil || image.Status != "unavailable" {
		t.Errorf("bad image: got %+v, %v", image, err)
	}
}

// TestIgnoredShutdownLeavesServerOn: a server that ignores a shutdown stays on until it is powered off.
func TestIgnoredShutdownLeavesServerOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sv := w.create(t, "vm-1")
	w.fault(t, simhetzner.Fault{Path: "/actions/shutdown$", Deaf: true})
	a, _, err := w.client.Server.Shutdown(t.Context(), sv)
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, a)
	w.clock.Advance(time.Hour)
	if got := w.get(t, sv.ID).Status; got != hcloud.ServerStatusRunning {
		t.Errorf("got status %s", got)
	}
	if a, _, err = w.client.Server.Poweroff(t.Context(), sv); err != nil {
		t.Fatal(err)
	}
	w.wait(t, a)
	if got := w.get(t, sv.ID).Status; got != hcloud.ServerStatusOff {
		t.Errorf("after power off: got status %s", got)
	}
}

// TestFaultCounts: a fault applies from the n-th match on, for a number of matches, and for a time.
func TestFaultCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault(t, simhetzner.Fault{Method: http.MethodGet, Path: "^/servers$", Query: `\bpage=2\b`, Code: "server_error", Nth: 2, Count: 1})
	w.fault(t, simhetzner.Fault{Method: http.MethodGet, Path: "^/locations$", Code: "unauthorized", For: time.Minute})
	for i := range 30 {
		if _, _, err := w.client.Server.Create(t.Context(), w.opts("vm-"+string(rune('a'+i%26))+string(rune('a'+i/26)))); err != nil {
			t.Fatal(err)
		}
	}
	list := func() error {
		_, err := w.client.Server.AllWithOpts(t.Context(), hcloud.ServerListOpts{ListOpts: hcloud.ListOpts{PerPage: 20}})
		return err
	}
	for i, bad := range []bool{false, true, false} {
		if err := list(); (err != nil) != bad {
			t.Errorf("list %d: %v", i, err)
		}
	}
	for _, step := range []struct {
		pass time.Duration
		bad  bool
	}{{0, true}, {59 * time.Second, true}, {time.Second, false}} {
		w.clock.Advance(step.pass)
		if _, err := w.client.Location.All(t.Context()); (err != nil) != step.bad {
			t.Errorf("after %v more: got %v", step.pass, err)
		}
	}
	if err := w.Fault(simhetzner.Fault{Path: "("}); err == nil {
		t.Error("got no error for an invalid regular expression")
	}
	w.ClearFaults()
	counts, total := w.Counts()
	if counts["GET /servers"] != 6 || counts["POST /servers"] != 30 || total != len(w.Requests()) {
		t.Errorf("%v, %d", counts, total)
	}
}
