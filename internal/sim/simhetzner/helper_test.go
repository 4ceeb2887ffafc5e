package simhetzner_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/exp/actionutil"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// world is a simulator with a virtual clock, and the real client for it.
type world struct {
	*simhetzner.Sim
	clock  *simhetzner.Clock
	url    string
	client *hcloud.Client
}

var start = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

func newWorld(t *testing.T, change ...func(*simhetzner.Config)) *world {
	t.Helper()
	w := &world{clock: simhetzner.NewClock(start)}
	cfg := simhetzner.Config{Now: w.clock.Now, Token: "secret"}
	for _, c := range change {
		c(&cfg)
	}
	w.Sim = simhetzner.New(cfg)
	srv := httptest.NewServer(w.Sim)
	t.Cleanup(func() {
		w.Close()
		srv.Close()
	})
	w.url = srv.URL
	w.client = w.newClient("secret")
	return w
}

// newClient returns a client without retries and with fast polling.
func (w *world) newClient(token string) *hcloud.Client {
	return hcloud.NewClient(hcloud.WithEndpoint(w.url+"/v1"), hcloud.WithToken(token),
		hcloud.WithHTTPClient(&http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}),
		hcloud.WithRetryOpts(hcloud.RetryOpts{BackoffFunc: hcloud.ConstantBackoff(0), MaxRetries: 0}),
		hcloud.WithPollOpts(hcloud.PollOpts{BackoffFunc: w.hop}))
}

// hop advances the clock by a second instead of waiting.
func (w *world) hop(int) time.Duration {
	w.clock.Advance(time.Second)
	return 0
}

func (w *world) wait(t *testing.T, first *hcloud.Action, next ...*hcloud.Action) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.client.Action.WaitFor(ctx, actionutil.AppendNext(first, next)...); err != nil {
		t.Fatal(err)
	}
}

func (w *world) opts(name string, change ...func(*hcloud.ServerCreateOpts)) hcloud.ServerCreateOpts {
	o := hcloud.ServerCreateOpts{
		Name: name, ServerType: &hcloud.ServerType{Name: "cx43"}, Image: &hcloud.Image{Name: "ubuntu-24.04"},
		Location: &hcloud.Location{Name: "fsn1"}, Labels: map[string]string{"errand-owner": "t1"}, UserData: "#cloud-config\n",
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// create creates a server and waits until it runs.
func (w *world) create(t *testing.T, name string, change ...func(*hcloud.ServerCreateOpts)) *hcloud.Server {
	t.Helper()
	res, _, err := w.client.Server.Create(t.Context(), w.opts(name, change...))
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, res.Action, res.NextActions...)
	return w.get(t, res.Server.ID)
}

func (w *world) get(t *testing.T, id int64) *hcloud.Server {
	t.Helper()
	sv, _, err := w.client.Server.GetByID(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return sv
}

func (w *world) delete(t *testing.T, sv *hcloud.Server) {
	t.Helper()
	res, _, err := w.client.Server.DeleteWithResult(t.Context(), sv)
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, res.Action)
}

func (w *world) fault(t *testing.T, f simhetzner.Fault) {
	t.Helper()
	if err := w.Fault(f); err != nil {
		t.Fatal(err)
	}
}
