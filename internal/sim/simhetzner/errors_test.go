package simhetzner_test

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// TestRefusedOrders sends invalid orders, and checks that nothing was created.
func TestRefusedOrders(t *testing.T) {
	t.Parallel()
	order := func(change func(*hcloud.ServerCreateOpts)) func(*hcloud.ServerCreateOpts) { return change }
	cases := map[string]struct {
		set    func(*world)
		change func(*hcloud.ServerCreateOpts)
		code   hcloud.ErrorCode
	}{
		"name":                {change: order(func(o *hcloud.ServerCreateOpts) { o.Name = "under_score" }), code: hcloud.ErrorCodeInvalidInput},
		"type":                {change: order(func(o *hcloud.ServerCreateOpts) { o.ServerType.Name = "cx99" }), code: hcloud.ErrorCodeInvalidInput},
		"image":               {change: order(func(o *hcloud.ServerCreateOpts) { o.Image.Name = "plan9" }), code: hcloud.ErrorCodeInvalidInput},
		"image by id":         {change: order(func(o *hcloud.ServerCreateOpts) { o.Image = &hcloud.Image{ID: 99} }), code: hcloud.ErrorCodeInvalidInput},
		"location":            {change: order(func(o *hcloud.ServerCreateOpts) { o.Location.Name = "moon1" }), code: hcloud.ErrorCodeInvalidInput},
		"type not sold there": {change: order(func(o *hcloud.ServerCreateOpts) { o.Location.Name = "ash" }), code: hcloud.ErrorCodeInvalidInput},
		"user data":           {change: order(func(o *hcloud.ServerCreateOpts) { o.UserData = strings.Repeat("x", 32<<10+1) }), code: hcloud.ErrorCodeInvalidInput},
		"label":               {change: order(func(o *hcloud.ServerCreateOpts) { o.Labels = map[string]string{"repo": "owner/repo"} }), code: hcloud.ErrorCodeInvalidInput},
		"reserved label":      {change: order(func(o *hcloud.ServerCreateOpts) { o.Labels = map[string]string{"hetzner.cloud/x": ""} }), code: hcloud.ErrorCodeInvalidInput},
		"key":                 {change: order(func(o *hcloud.ServerCreateOpts) { o.SSHKeys = []*hcloud.SSHKey{{ID: 4}} }), code: hcloud.ErrorCodeNotFound},
		"no address":          {change: order(func(o *hcloud.ServerCreateOpts) { o.PublicNet = &hcloud.ServerCreatePublicNet{} }), code: hcloud.ErrorCodeInvalidInput},
		"sold out":            {set: func(w *world) { w.SetStock("cx43", "fsn1", 0) }, code: hcloud.ErrorCodeResourceUnavailable},
		"all sold out":        {set: func(w *world) { w.SetStockAll(0) }, code: hcloud.ErrorCodeResourceUnavailable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.set != nil {
				c.set(w)
			}
			opts := w.opts("vm-1")
			if c.change != nil {
				c.change(&opts)
			}
			if _, _, err := w.client.Server.Create(t.Context(), opts); !hcloud.IsError(err, c.code) {
				t.Errorf("got %v, want %s", err, c.code)
			}
			if left := w.Objects(""); len(left) != 0 || len(w.Bill().Lines) != 0 {
				t.Errorf("after a refused order: got %+v and bill %+v", left, w.Bill())
			}
		})
	}
}

// TestServerNamesAreUnique: the name of a server is the key that makes an order safe to repeat.
func TestServerNamesAreUnique(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sv := w.create(t, "vm-1")
	if _, _, err := w.client.Server.Create(t.Context(), w.opts("vm-1")); !hcloud.IsError(err, hcloud.ErrorCodeUniquenessError) {
		t.Errorf("second vm-1: got %v", err)
	}
	other := w.create(t, "vm-2")
	if _, _, err := w.client.Server.Update(t.Context(), other, hcloud.ServerUpdateOpts{Name: "vm-1"}); !hcloud.IsError(err, hcloud.ErrorCodeUniquenessError) {
		t.Errorf("rename to vm-1: got %v", err)
	}
	w.delete(t, sv)
	w.create(t, "vm-1")
}

func TestQuota(t *testing.T) {
	t.Parallel()
	cases := map[string]simhetzner.Quota{"servers": {Servers: 1}, "cores": {Cores: 15}, "addresses": {PrimaryIPv4: 1}}
	for name, q := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *simhetzner.Config) { c.Quota = q })
			sv := w.create(t, "vm-1")
			if _, _, err := w.client.Server.Create(t.Context(), w.opts("vm-2")); !hcloud.IsError(err, hcloud.ErrorCodeResourceLimitExceeded) {
				t.Errorf("over the limit: got %v", err)
			}
			w.delete(t, sv)
			w.create(t, "vm-2")
		})
	}
}

// TestAddressesRunOut: a small network has few addresses, and a deleted server releases its address.
func TestAddressesRunOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *simhetzner.Config) { c.IPv4 = netip.MustParsePrefix("10.9.0.0/30") })
	sv := w.create(t, "vm-1")
	w.create(t, "vm-2")
	if _, _, err := w.client.Server.Create(t.Context(), w.opts("vm-3")); !hcloud.IsError(err, hcloud.ErrorCodeResourceUnavailable) {
		t.Errorf("third of two: got %v", err)
	}
	w.delete(t, sv)
	if got := w.create(t, "vm-3"); !got.PublicNet.IPv4.IP.Equal(sv.PublicNet.IPv4.IP) {
		t.Errorf("got address %v", got.PublicNet.IPv4.IP)
	}
}

// TestDeletedServersReturnToStock: deleted servers can be ordered again; the availability in the list of types may be false.
func TestDeletedServersReturnToStock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.SetStock("cx43", "fsn1", 1)
	sv := w.create(t, "vm-1")
	if _, _, err := w.client.Server.Create(t.Context(), w.opts("vm-2")); !hcloud.IsError(err, hcloud.ErrorCodeResourceUnavailable) {
		t.Errorf("second of one: got %v", err)
	}
	listed := func() bool {
		typ, _, err := w.client.ServerType.GetByName(t.Context(), "cx43")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range typ.Locations {
			if l.Location.Name == "fsn1" {
				return l.Available
			}
		}
		t.Fatal("cx43 is not listed in fsn1")
		return false
	}
	if listed() {
		t.Error("a sold-out type is listed as available")
	}
	w.Claim("cx43", "fsn1", true)
	if !listed() {
		t.Error("the claim is not listed")
	}
	w.delete(t, sv)
	w.create(t, "vm-2")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *simhetzner.Config) { c.ReadOnlyToken = "reader" })
	if _, err := w.newClient("wrong").Server.All(t.Context()); !hcloud.IsError(err, hcloud.ErrorCodeUnauthorized) {
		t.Errorf("wrong token: got %v", err)
	}
	reader := w.newClient("reader")
	if _, err := reader.Server.All(t.Context()); err != nil {
		t.Errorf("reading: got %v", err)
	}
	if _, _, err := reader.Server.Create(t.Context(), w.opts("vm-1")); !hcloud.IsError(err, "token_readonly") {
		t.Errorf("writing: got %v", err)
	}
	res, err := webtest.Client().Get(w.url + "/v1/servers")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if want := `{"error":{"code":"unauthorized","message":"token is required","details":null}}`; err != nil || res.StatusCode != 401 || string(body) != want {
		t.Errorf("no token: got %d %s %v", res.StatusCode, body, err)
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *simhetzner.Config) { c.RateLimit = 360 })
	_, res, err := w.client.Server.GetByID(t.Context(), 1)
	if err != nil || res.Meta.Ratelimit.Limit != 360 || res.Meta.Ratelimit.Remaining != 359 {
		t.Errorf("got %+v, %v", res.Meta.Ratelimit, err)
	}
	if reset := res.Meta.Ratelimit.Reset.Sub(w.clock.Now()); reset != 10*time.Second {
		t.Errorf("got reset after %v", reset)
	}
	w.Drain(1)
	for want := range 2 {
		_, _, err := w.client.Server.GetByID(t.Context(), 1)
		if got := hcloud.IsError(err, hcloud.ErrorCodeRateLimitExceeded); got != (want == 1) {
			t.Errorf("request %d with a limit of one: got %v", want, err)
		}
	}
	w.clock.Advance(10 * time.Second)
	if _, _, err := w.client.Server.GetByID(t.Context(), 1); err != nil {
		t.Errorf("after ten seconds: %v", err)
	}
}

// TestInvalidRequests: invalid requests that the client never sends.
func TestInvalidRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cases := map[string]struct {
		method, path, body, code string
	}{
		"no JSON":            {"POST", "/servers", "{", "json_error"},
		"wrong kind":         {"POST", "/servers", `{"name":7}`, "invalid_input"},
		"retired":            {"GET", "/datacenters", "", "deprecated_api_endpoint"},
		"unknown route":      {"GET", "/floppy_disks", "", "not_found"},
		"unknown action":     {"POST", "/servers/1/actions/explode", "", "not_found"},
		"unknown server":     {"GET", "/servers/1", "", "not_found"},
		"no number":          {"GET", "/servers/one", "", "invalid_input"},
		"actions without":    {"GET", "/actions", "", "invalid_input"},
		"selector":           {"GET", "/servers?label_selector=a%20b", "", "invalid_input"},
		"page":               {"GET", "/servers?page=0", "", "invalid_input"},
		"sort":               {"GET", "/servers?sort=size", "", "invalid_input"},
		"delete stock image": {"DELETE", "/images/1001", "", "forbidden"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(t.Context(), c.method, w.url+"/v1"+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer secret")
			res, err := webtest.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			body, err := io.ReadAll(res.Body)
			if err != nil || !strings.Contains(string(body), `"code":"`+c.code+`"`) || res.Header.Get("Content-Type") != "application/json" {
				t.Errorf("got %d %s %v, want %s", res.StatusCode, body, err, c.code)
			}
		})
	}
}

func TestProtected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sv := w.create(t, "vm-1")
	a, _, err := w.client.Server.ChangeProtection(t.Context(), sv, hcloud.ServerChangeProtectionOpts{Delete: hcloud.Ptr(true), Rebuild: hcloud.Ptr(true)})
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, a)
	if _, _, err := w.client.Server.DeleteWithResult(t.Context(), sv); !hcloud.IsError(err, hcloud.ErrorCodeProtected) {
		t.Errorf("delete: %v", err)
	}
	if _, _, err := w.client.Server.RebuildWithResult(t.Context(), sv, hcloud.ServerRebuildOpts{Image: &hcloud.Image{Name: "debian-13"}}); !hcloud.IsError(err, hcloud.ErrorCodeProtected) {
		t.Errorf("rebuild: %v", err)
	}
}

// failedWith reports whether an action failed with a code.
func failedWith(err error, code string) bool {
	var failed hcloud.ActionError
	return errors.As(err, &failed) && failed.Code == code
}
