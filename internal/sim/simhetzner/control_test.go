package simhetzner_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// control requests one of the simulator's control pages.
func (w *world) control(t *testing.T, method, path, body string, status int) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.url+"/_sim/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := webtest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		t.Fatalf("%s %s: got %d %s %v, want %d", method, path, res.StatusCode, raw, err, status)
	}
	return raw
}

// TestOwnPages: another process can control the simulator.
func TestOwnPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.control(t, "POST", "faults", `{"path":"^/servers$","code":"locked"}`, 204)
	if _, err := w.client.Server.All(t.Context()); !hcloud.IsError(err, hcloud.ErrorCodeLocked) {
		t.Errorf("with a fault: got %v", err)
	}
	w.control(t, "DELETE", "faults", "", 204)
	w.control(t, "POST", "faults", `{"path":"("}`, 400)
	w.control(t, "POST", "stock", `{"left":0}`, 204)
	w.control(t, "POST", "stock", `{"type":"cx43","location":"fsn1","left":1}`, 204)
	sv := w.create(t, "vm-1")
	if _, _, err := w.client.Server.Create(t.Context(), w.opts("vm-2")); !hcloud.IsError(err, hcloud.ErrorCodeResourceUnavailable) {
		t.Errorf("sold out: got %v", err)
	}
	var objects []simhetzner.Object
	if err := json.Unmarshal(w.control(t, "GET", "objects", "", 200), &objects); err != nil || len(objects) != 3 || objects[0].Name != "vm-1" {
		t.Errorf("got %+v, %v", objects, err)
	}
	var bill simhetzner.Bill
	if err := json.Unmarshal(w.control(t, "GET", "bill", "", 200), &bill); err != nil || bill.Micro != cx43+ipv4 {
		t.Errorf("got %+v, %v", bill, err)
	}
	var log []simhetzner.Request
	if err := json.Unmarshal(w.control(t, "GET", "requests", "", 200), &log); err != nil || len(log) < 3 || log[0].Route != "GET /servers" || !log[0].Fault {
		t.Errorf("got %+v, %v", log, err)
	}
	w.control(t, "POST", fmt.Sprintf("vanish/%d", sv.ID), "", 204)
	w.control(t, "POST", fmt.Sprintf("vanish/%d", sv.ID), "", 400)
	if got := w.get(t, sv.ID); got != nil {
		t.Errorf("the server still exists: got %+v", got)
	}
}

// TestStart: the simulator listens on a port, and a hanging request ends when it is closed.
func TestStart(t *testing.T) {
	t.Parallel()
	sim := simhetzner.New(simhetzner.Config{})
	endpoint, err := sim.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client := hcloud.NewClient(hcloud.WithEndpoint(endpoint), hcloud.WithToken("any"), hcloud.WithRetryOpts(hcloud.RetryOpts{BackoffFunc: hcloud.ConstantBackoff(0)}))
	if all, err := client.Location.All(t.Context()); err != nil || len(all) != 6 {
		t.Errorf("%v, %v", all, err)
	}
	if err := sim.Fault(simhetzner.Fault{Path: "^/servers$", Hang: true}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := client.Server.All(t.Context())
		done <- err
	}()
	for heard := 0; heard < 2; _, heard = sim.Counts() {
		select {
		case err := <-done:
			t.Fatalf("the request did not hang: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	sim.Close()
	if err := <-done; err == nil {
		t.Error("got an answer to the hanging request")
	}
}
