package hetzner_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// TestErrorCodes checks the error that each code of the API becomes when an order fails with it.
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]error{
		"resource_unavailable": fleet.ErrNoCapacity, "placement_error": fleet.ErrNoCapacity,
		"resource_limit_exceeded": fleet.ErrQuota,
		"rate_limit_exceeded":     fleet.ErrLimited,
		"locked":                  fleet.ErrBusy, "conflict": fleet.ErrBusy,
		"unauthorized": fleet.ErrUnauthorized, "forbidden": fleet.ErrUnauthorized, "token_readonly": fleet.ErrUnauthorized,
		"invalid_input": fleet.ErrInvalid, "json_error": fleet.ErrInvalid, "invalid_server_type": fleet.ErrInvalid,
		"unsupported_error": fleet.ErrInvalid, "deprecated_api_endpoint": fleet.ErrInvalid, "protected": fleet.ErrInvalid,
		"maintenance": fleet.ErrUnknownOutcome, "service_error": fleet.ErrUnknownOutcome, "server_error": fleet.ErrUnknownOutcome,
		"timeout": fleet.ErrUnknownOutcome, "bad_gateway": fleet.ErrUnknownOutcome, "unavailable": fleet.ErrUnknownOutcome,
		"unknown_error": fleet.ErrUnknownOutcome, "never_heard_of": fleet.ErrUnknownOutcome,
		// The name is taken, but no server has it: an order is in progress.
		"uniqueness_error": fleet.ErrUnknownOutcome,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, nil)
			provider := p.provider(nil)
			noErr(t, "setup", provider.Setup(t.Context()))
			p.fault(simhetzner.Fault{Method: "POST", Path: "^/servers$", Code: code})
			_, err := provider.Create(t.Context(), spec("vm-1"))
			wantErr(t, "create", err, want)
			for _, other := range []error{fleet.ErrNoCapacity, fleet.ErrQuota, fleet.ErrLimited, fleet.ErrBusy, fleet.ErrUnauthorized, fleet.ErrInvalid, fleet.ErrUnknownOutcome} {
				if other != want && errors.Is(err, other) {
					t.Errorf("got error %v, also of kind %v", other, err)
				}
			}
			if routes, _ := p.sim.Counts(); routes["POST /servers"] > 1 && !errors.Is(want, fleet.ErrInvalid) {
				t.Errorf("got %d orders", routes["POST /servers"])
			}
			p.wantCount("server", 0)
		})
	}
}

// faults returns all ways in which a mutation's answer may be missing, invalid or late.
func faults() map[string]simhetzner.Fault {
	return map[string]simhetzner.Fault{
		"lost before the effect": {Cut: true},
		"lost after the effect":  {Cut: true, After: true},
		"500":                    {Code: "server_error"},
		"500 after the effect":   {Code: "server_error", After: true},
		"503":                    {Code: "unavailable"},
		"503 after the effect":   {Code: "unavailable", After: true},
		"bare 502":               {Status: 502, After: true},
		"bare 504":               {Status: 504},
		"bare 500":               {Status: 500},
		"hangs":                  {Hang: true},
		"hangs after the effect": {Hang: true, After: true},
		"lands late":             {Late: 20 * time.Second},
		"429":                    {Code: "rate_limit_exceeded"},
		"bare 429":               {Status: 429},
		"423":                    {Code: "locked"},
		"409":                    {Code: "conflict"},
		"unauthorized":           {Code: "unauthorized"},
		"bare 403":               {Status: 403},
	}
}

// mutation is a provider call, with its request that fails.
type mutation struct {
	method, path string
	prepare      func(*testing.T, *project, *hetzner.Provider)
	do           func(context.Context, *hetzner.Provider) error
	done         func(*testing.T, *project, *hetzner.Provider)
}

func mutations() map[string]mutation {
	none := func(*testing.T, *project, *hetzner.Provider) {}
	up := func(t *testing.T, p *project, provider *hetzner.Provider) { p.running(provider, "vm-1") }
	off := func(t *testing.T, p *project, provider *hetzner.Provider) {
		p.running(provider, "vm-1")
		noErr(t, "power off", provider.PowerOff(t.Context(), p.id("vm-1")))
	}
	create := func(ctx context.Context, provider *hetzner.Provider) error {
		_, err := provider.Create(ctx, spec("vm-1"))
		return err
	}
	oneServer := func(t *testing.T, p *project, provider *hetzner.Provider) {
		p.wantCount("server", 1)
		p.wantCount("ssh_key", 1)
		p.wantCount("firewall", 1)
		p.wantCount("primary_ip", 2)
		p.clock.Advance(2 * time.Minute)
		p.state(provider, "vm-1", fleet.StateRunning)
	}
	gone := func(t *testing.T, p *project, _ *hetzner.Provider) {
		p.wantCount("server", 0)
		p.wantCount("primary_ip", 0)
	}
	remove := func(ctx context.Context, provider *hetzner.Provider) error {
		return provider.Delete(ctx, "vm-1", fleet.ReasonDone)
	}
	rebuild := func(ctx context.Context, provider *hetzner.Provider) error {
		_, err := provider.Rebuild(ctx, "vm-1", spec("vm-2"))
		return err
	}
	rebuilt := func(t *testing.T, p *project, provider *hetzner.Provider) {
		p.wantCount("server", 1)
		p.clock.Advance(2 * time.Minute)
		p.state(provider, "vm-2", fleet.StateRunning)
		n := p.actions(p.sim.Objects("server")[0].ID)["rebuild_server"]
		if n != 1 {
			t.Errorf("got %d rebuilds", n)
		}
	}
	image := func(ctx context.Context, provider *hetzner.Provider) error {
		_, err := provider.Image(ctx, fleet.ImageSpec{VM: idOf(ctx, provider, "vm-1"), Labels: map[string]string{fleet.LabelOwner: "1"}})
		return err
	}
	return map[string]mutation{
		"order":           {"POST", "^/servers$", none, create, oneServer},
		"register key":    {"POST", "^/ssh_keys$", none, create, oneServer},
		"make firewall":   {"POST", "^/firewalls$", none, create, oneServer},
		"delete":          {"DELETE", "^/servers/", up, remove, gone},
		"claim addresses": {"PUT", "^/primary_ips/", up, remove, gone},
		"rename":          {"PUT", "^/servers/", up, rebuild, rebuilt},
		"rebuild":         {"POST", "/actions/rebuild$", up, rebuild, rebuilt},
		"shut down": {"POST", "/actions/shutdown$", up, powerOff,
			func(t *testing.T, p *project, provider *hetzner.Provider) { p.state(provider, "vm-1", fleet.StateOff) }},
		"power on": {"POST", "/actions/poweron$", off, powerOn, func(t *testing.T, p *project, provider *hetzner.Provider) {
			p.clock.Advance(2 * time.Minute)
			p.state(provider, "vm-1", fleet.StateRunning)
		}},
		"image": {"POST", "/actions/create_image$", off, image, func(t *testing.T, p *project, provider *hetzner.Provider) {
			p.wantCount("image", 1)
			p.clock.Advance(time.Hour)
			images, err := provider.Images(t.Context())
			if err != nil || len(images) != 1 || !images[0].Ready {
				t.Errorf("got images %+v, error %v", images, err)
			}
		}},
	}
}

// TestFaultsOfMutations: each fault of each mutation ends in an error that says what to do. Repeating the call finishes
// the work without creating a second object.
func TestFaultsOfMutations(t *testing.T) {
	t.Parallel()
	for what, m := range mutations() {
		for how, f := range faults() {
			t.Run(what+"/"+how, func(t *testing.T) {
				t.Parallel()
				p := newProject(t, nil)
				provider := p.provider(nil)
				m.prepare(t, p, provider)
				f.Method, f.Path, f.Count = m.method, m.path, 1
				p.fault(f)
				errs := p.insist(m.do, p.provider(func(c *hetzner.Config) { c.HTTP.Timeout = hangFor(f) }))
				unharmed := slices.Contains([]string{"shut down", "register key", "make firewall", "claim addresses"}, what)
				if len(errs) == 0 && f.Code != "" && !f.After && !unharmed {
					t.Error("the fault had no effect")
				}
				m.done(t, p, provider)
			})
		}
	}
}

func hangFor(f simhetzner.Fault) time.Duration {
	if f.Hang {
		return 300 * time.Millisecond
	}
	return 10 * time.Second
}

// insist repeats a call until it succeeds, after the delay that the error requires, with a new provider each time.
func (p *project) insist(do func(context.Context, *hetzner.Provider) error, provider *hetzner.Provider) (errs []error) {
	p.t.Helper()
	known := []error{fleet.ErrUnknownOutcome, fleet.ErrBusy, fleet.ErrLimited, fleet.ErrUnauthorized}
	for range 10 {
		err := do(p.t.Context(), provider)
		if err == nil {
			return errs
		}
		if !slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) }) {
			p.t.Errorf("got an error of no known class: %v", err)
		}
		errs = append(errs, err)
		p.clock.Advance(35 * time.Second)
		provider = p.provider(nil)
	}
	p.t.Errorf("got error %v after all retries", errs)
	return errs
}

func TestEveryFaultIsTested(t *testing.T) {
	t.Parallel()
	if n := len(faults()) * len(mutations()); n != 180 {
		t.Errorf("%d pairs: %v", n, slices.Sorted(maps.Keys(mutations())))
	}
}

func powerOff(ctx context.Context, provider *hetzner.Provider) error {
	return provider.PowerOff(ctx, idOf(ctx, provider, "vm-1"))
}

func powerOn(ctx context.Context, provider *hetzner.Provider) error {
	return provider.PowerOn(ctx, idOf(ctx, provider, "vm-1"))
}
