package hetzner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

func TestLife(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	ctx := t.Context()
	vm, err := provider.Create(ctx, spec("vm-1"))
	noErr(t, "create", err)
	if vm.State != fleet.StateCreating || vm.ID == "" || vm.Kind != "cx43" || vm.Location != "fsn1" || vm.MicroHour <= 0 || vm.Currency == "" {
		t.Errorf("got %+v", vm)
	}
	if !vm.CreatedAt.Equal(p.clock.Now()) || vm.Isolation != fleet.IsolationVM || vm.Endpoint.User != hetzner.User {
		t.Errorf("got %+v", vm)
	}
	p.clock.Advance(30 * time.Second)
	up := p.state(provider, "vm-1", fleet.StateRunning)
	if up.Endpoint.Network != "tcp" || !strings.HasSuffix(up.Endpoint.Address, ":22") || strings.HasPrefix(up.Endpoint.Address, ":") {
		t.Errorf("endpoint: got %+v", up.Endpoint)
	}
	list, err := provider.List(ctx)
	noErr(t, "list", err)
	if diff := cmp.Diff([]fleet.VM{up}, list); diff != "" {
		t.Errorf("listed (-got +list):\n%s", diff)
	}
	noErr(t, "delete", provider.Delete(ctx, "vm-1", fleet.ReasonDone))
	noErr(t, "delete again", provider.Delete(ctx, "vm-1", fleet.ReasonDone))
	_, err = provider.Get(ctx, "vm-1")
	wantErr(t, "get", err, fleet.ErrNotFound)
	p.wantCount("server", 0)
	p.wantCount("primary_ip", 0)
}

// TestLifecycleFitsTheRequestBudget limits the requests for a VM's life with a suspension and ten status checks.
func TestLifecycleFitsTheRequestBudget(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	ctx := t.Context()
	noErr(t, "setup", provider.Setup(ctx)) // once per deployment
	_, err := provider.Offers(ctx)         // once an hour
	noErr(t, "offers", err)
	_, before := p.sim.Counts()
	p.running(provider, "vm-1")
	for range 10 {
		_, err := provider.List(ctx)
		noErr(t, "list", err)
	}
	noErr(t, "power off", provider.PowerOff(ctx, p.id("vm-1")))
	_, err = provider.Image(ctx, fleet.ImageSpec{VM: p.id("vm-1"), Labels: map[string]string{fleet.LabelOwner: "1"}})
	noErr(t, "image", err)
	p.clock.Advance(5 * time.Minute)
	_, err = provider.Images(ctx)
	noErr(t, "images", err)
	noErr(t, "delete", provider.Delete(ctx, "vm-1", fleet.ReasonAsleep))
	routes, after := p.sim.Counts()
	const shared = 10 // lists serve all VMs
	if n := after - before - shared; n >= 25 {
		t.Errorf("got %d requests: %v", n, routes)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	p.running(provider, "vm-1")
	server := p.sim.Objects("server")[0]
	for key, want := range map[string]string{fleet.LabelDeployment: "test", fleet.LabelOwner: "owner-of-vm-1", fleet.LabelGeneration: "1"} {
		if server.Labels[key] != want {
			t.Errorf("label %s: got %q", key, server.Labels[key])
		}
	}
	p.wantCount("ssh_key", 1)
	p.wantCount("firewall", 1)
	p.running(provider, "vm-2")
	p.running(p.provider(nil), "vm-3") // another process
	p.wantCount("ssh_key", 1)
	p.wantCount("firewall", 1)
}

// TestNotAfterLabelDoesNotIdentifyAVM: a later call may name another time for the same VM.
func TestNotAfterLabelDoesNotIdentifyAVM(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	s := spec("vm-1")
	s.Labels[fleet.LabelNotAfter] = "1"
	first, err := provider.Create(t.Context(), s)
	noErr(t, "create", err)
	s.Labels[fleet.LabelNotAfter] = "2"
	again, err := provider.Create(t.Context(), s)
	if err != nil || again.ID != first.ID || again.Labels[fleet.LabelNotAfter] != "1" {
		t.Errorf("again: got %+v, %v", again, err)
	}
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	for name, change := range map[string]func(*fleet.Spec){
		"no type":            func(s *fleet.Spec) { s.Offer.Type = "" },
		"no location":        func(s *fleet.Spec) { s.Offer.Location = "" },
		"unknown type":       func(s *fleet.Spec) { s.Offer.Type = "cx1" },
		"unknown location":   func(s *fleet.Spec) { s.Offer.Location = "moon" },
		"not sold there":     func(s *fleet.Spec) { s.Offer.Location = "ash" },
		"unknown image":      func(s *fleet.Spec) { s.Image = "plan9" },
		"image of no one":    func(s *fleet.Spec) { s.Image = "4711" },
		"label with a slash": func(s *fleet.Spec) { s.Labels[fleet.LabelRepo] = "a/b" },
		"long label":         func(s *fleet.Spec) { s.Labels[fleet.LabelRepo] = strings.Repeat("a", 64) },
		"much user data":     func(s *fleet.Spec) { s.UserData = make([]byte, hetzner.MaxUserData+1) },
	} {
		t.Run(name, func(t *testing.T) {
			s := spec("refused")
			change(&s)
			_, err := provider.Create(t.Context(), s)
			wantErr(t, "create", err, fleet.ErrInvalid)
		})
	}
	p.wantCount("server", 0)
}

func TestForeignServersAreNotTouched(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	ours, theirs := p.provider(nil), p.provider(func(c *hetzner.Config) { c.Deployment, c.ClientKey = "theirs", publicKey(t, 2) })
	ctx := t.Context()
	p.running(theirs, "vm-1")
	_, err := ours.Get(ctx, "vm-1")
	wantErr(t, "get", err, fleet.ErrNotFound)
	_, err = ours.Create(ctx, spec("vm-1"))
	wantErr(t, "create", err, fleet.ErrNameTaken)
	_, err = ours.Rebuild(ctx, "vm-1", spec("vm-2"))
	wantErr(t, "rebuild", err, fleet.ErrNotFound)
	wantErr(t, "power off", ours.PowerOff(ctx, p.id("vm-1")), fleet.ErrNotFound)
	wantErr(t, "power on", ours.PowerOn(ctx, p.id("vm-1")), fleet.ErrNotFound)
	noErr(t, "delete", ours.Delete(ctx, "vm-1", fleet.ReasonDone))
	if list, err := ours.List(ctx); err != nil || len(list) != 0 {
		t.Errorf("got list %v, error %v", list, err)
	}
	p.state(theirs, "vm-1", fleet.StateRunning)
	other := spec("vm-1")
	other.Labels[fleet.LabelOwner] = "somebody-else"
	_, err = theirs.Create(ctx, other)
	wantErr(t, "create with another owner", err, fleet.ErrNameTaken)
}

// TestListReadsAllPages: List returns all pages or an error, never a part.
func TestListReadsAllPages(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	for i := range 52 {
		_, err := provider.Create(t.Context(), spec(fmt.Sprintf("vm-%d", i)))
		noErr(t, "create", err)
	}
	p.clock.Advance(time.Minute)
	_, before := p.sim.Counts()
	list, err := provider.List(t.Context())
	if err != nil || len(list) != 52 {
		t.Fatalf("got %d items, error %v", len(list), err)
	}
	if _, after := p.sim.Counts(); after-before != 2 {
		t.Errorf("got %d requests for two pages", after-before)
	}
	p.fault(simhetzner.Fault{Method: "GET", Path: "^/servers$", Query: "page=2", Code: "unauthorized", Count: 1})
	list, err = provider.List(t.Context())
	wantErr(t, "list", err, fleet.ErrUnauthorized)
	if list != nil {
		t.Errorf("got an incomplete list of %d items", len(list))
	}
	p.fault(simhetzner.Fault{Method: "GET", Path: "^/servers$", Query: "page=2", Status: 502, Count: 2})
	if list, err = provider.List(t.Context()); err != nil || len(list) != 52 {
		t.Errorf("after two bad answers: got %d items, error %v", len(list), err)
	}
	p.fault(simhetzner.Fault{Method: "GET", Path: "^/servers$", Query: "page=2", Status: 502})
	if list, err = provider.List(t.Context()); err == nil {
		t.Errorf("got an incomplete list of %d items", len(list))
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	for name, change := range map[string]func(*hetzner.Config){
		"no token":        func(c *hetzner.Config) { c.Token = "" },
		"no deployment":   func(c *hetzner.Config) { c.Deployment = "" },
		"odd deployment":  func(c *hetzner.Config) { c.Deployment = "a b" },
		"no key":          func(c *hetzner.Config) { c.ClientKey = nil },
		"egress":          func(c *hetzner.Config) { c.Egress = "closed" },
		"range":           func(c *hetzner.Config) { c.SSHFrom = []string{"203.0.113.7"} },
		"no network":      func(c *hetzner.Config) { c.Private = true },
		"no address":      func(c *hetzner.Config) { c.IPv4, c.IPv6 = false, false },
		"net, no private": func(c *hetzner.Config) { c.IPv4, c.IPv6, c.Network = false, false, 7 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := p.config()
			change(&cfg)
			if _, err := hetzner.New(cfg); err == nil {
				t.Error("accepted")
			}
		})
	}
}

// TestSlowBootsAndImagesNeedFewRequests: a boot of 14 minutes and an image of 40 minutes need few requests in addition
// to the lists.
func TestSlowBootsAndImagesNeedFewRequests(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	ctx := t.Context()
	p.fault(simhetzner.Fault{Method: "POST", Path: "^/servers$", Slow: 7 * time.Minute, Count: 1})
	p.fault(simhetzner.Fault{Path: "/actions/create_image$", Slow: 40 * time.Minute, Count: 1})
	_, err := provider.Create(ctx, spec("vm-1"))
	noErr(t, "create", err)
	watch := func(until fleet.State, d time.Duration) int {
		t.Helper()
		for end := p.clock.Now().Add(d); p.clock.Now().Before(end); p.clock.Advance(10 * time.Second) {
			_, err := provider.List(ctx)
			noErr(t, "list", err)
		}
		p.state(provider, "vm-1", until)
		routes, _ := p.sim.Counts()
		return routes["GET /servers/{id}/actions"]
	}
	booting := watch(fleet.StateRunning, 16*time.Minute)
	noErr(t, "power off", provider.PowerOff(ctx, p.id("vm-1")))
	_, err = provider.Image(ctx, fleet.ImageSpec{VM: p.id("vm-1"), Labels: sleepLabels()})
	noErr(t, "image", err)
	if imaging := watch(fleet.StateOff, 41*time.Minute) - booting; booting > 12 || imaging > 6 {
		t.Errorf("got %d requests during the boot, %d during the creation of the image", booting, imaging)
	}
}
