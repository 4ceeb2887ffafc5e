package hetzner_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

const token = "token-for-tests"

// project is a project of the simulator with a clock that only the test and waiting calls advance.
type project struct {
	t     *testing.T
	sim   *simhetzner.Sim
	clock *simhetzner.Clock
	url   string
	http  *http.Client  // not the default transport, since every test server that closes also closes its connections
	ahead time.Duration // of the API's clock
}

func newProject(t *testing.T, change func(*simhetzner.Config)) *project {
	t.Helper()
	p := &project{t: t, clock: simhetzner.NewClock(time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC))}
	cfg := simhetzner.Config{Now: p.clock.Now, Token: token}
	if change != nil {
		change(&cfg)
	}
	p.sim = simhetzner.New(cfg)
	srv := httptest.NewServer(p)
	p.url, p.http = srv.URL+"/v1", srv.Client()
	t.Cleanup(srv.Close)
	t.Cleanup(p.sim.Close)
	return p
}

// ServeHTTP serves the simulator with a Date header by its clock.
func (p *project) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", p.clock.Now().Add(p.ahead).UTC().Format(http.TimeFormat))
	p.sim.ServeHTTP(w, r)
}

func publicKey(t *testing.T, seed byte) ssh.PublicKey {
	t.Helper()
	key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32)).Public())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// config returns the configuration of a provider for the deployment "test".
func (p *project) config() hetzner.Config {
	settings := hetzner.DefaultSettings()
	settings.Endpoint = p.url
	settings.Egress = hetzner.EgressOpen // one firewall; network_test.go has the others
	return hetzner.Config{
		Settings: settings, Token: token, Deployment: "test", ClientKey: publicKey(p.t, 1), Now: p.clock.Now,
		HTTP:  p.http,
		Sleep: func(ctx context.Context, d time.Duration) error { p.clock.Advance(d); return ctx.Err() },
	}
}

func (p *project) provider(change func(*hetzner.Config)) *hetzner.Provider {
	p.t.Helper()
	cfg := p.config()
	if change != nil {
		change(&cfg)
	}
	provider, err := hetzner.New(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	return provider
}

func (p *project) fault(f simhetzner.Fault) {
	p.t.Helper()
	if err := p.sim.Fault(f); err != nil {
		p.t.Fatal(err)
	}
}

// count returns the number of objects of a kind.
func (p *project) count(kind string) int { return len(p.sim.Objects(kind)) }

func (p *project) wantCount(kind string, want int) {
	p.t.Helper()
	if got := p.count(kind); got != want {
		p.t.Errorf("%d objects of kind %s, want %d: %+v", got, kind, want, p.sim.Objects(kind))
	}
}

// id returns the ID of the server with a name, of any deployment.
func (p *project) id(name string) string {
	p.t.Helper()
	for _, o := range p.sim.Objects("server") {
		if o.Name == name {
			return fmt.Sprint(o.ID)
		}
	}
	p.t.Fatalf("server %s does not exist", name)
	return ""
}

// idOf returns the ID of one of a provider's VMs, empty if it is unknown.
func idOf(ctx context.Context, provider *hetzner.Provider, name string) string {
	vm, err := provider.Get(ctx, name)
	if err != nil {
		return ""
	}
	return vm.ID
}

func spec(name string) fleet.Spec {
	return fleet.Spec{
		Name: name, Labels: map[string]string{fleet.LabelOwner: "owner-of-" + name, fleet.LabelGeneration: "1"},
		Offer: fleet.Offer{Type: "cx43", Location: "fsn1"}, UserData: []byte("#cloud-config\n{}\n"),
	}
}

// running creates a VM and waits until it runs.
func (p *project) running(provider *hetzner.Provider, name string) fleet.VM {
	p.t.Helper()
	if _, err := provider.Create(p.t.Context(), spec(name)); err != nil {
		p.t.Fatal(err)
	}
	p.clock.Advance(30 * time.Second)
	return p.state(provider, name, fleet.StateRunning)
}

func (p *project) state(provider *hetzner.Provider, name string, want fleet.State) fleet.VM {
	p.t.Helper()
	vm, err := provider.Get(p.t.Context(), name)
	if err != nil {
		p.t.Fatal(err)
	}
	if vm.State != want {
		p.t.Errorf("%s is %s (%s: %s), want %s", name, vm.State, vm.Ended, vm.Detail, want)
	}
	return vm
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error is %v, want %v", what, err, want)
	}
}

func noErr(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// actions counts a server's actions by command.
func (p *project) actions(server int64) map[string]int {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, fmt.Sprintf("%s/servers/%d/actions?per_page=50", p.url, server), nil)
	noErr(p.t, "ask for actions", err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := webtest.Client().Do(req)
	noErr(p.t, "ask for actions", err)
	defer resp.Body.Close()
	var list schema.ActionListResponse
	noErr(p.t, "read actions", json.NewDecoder(resp.Body).Decode(&list))
	out := map[string]int{}
	for _, a := range list.Actions {
		out[a.Command]++
	}
	return out
}
