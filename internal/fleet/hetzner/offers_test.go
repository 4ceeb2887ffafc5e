package hetzner_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

func find(t *testing.T, offers []fleet.Offer, typ, location string) fleet.Offer {
	t.Helper()
	for _, o := range offers {
		if o.Type == typ && o.Location == location {
			return o
		}
	}
	t.Fatalf("no %s in %s", typ, location)
	return fleet.Offer{}
}

func TestOffers(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	ctx := t.Context()
	p.sim.Claim("cx43", "hel1", false)
	provider := p.provider(nil)
	offers, err := provider.Offers(ctx)
	noErr(t, "offers", err)
	o := find(t, offers, "cx43", "fsn1")
	if o.VCPU != 8 || o.MemoryMB != 16384 || o.DiskGB != 160 || o.Arch != "amd64" || o.Currency != "EUR" || !o.Available {
		t.Errorf("cx43 in fsn1: got %+v", o)
	}
	if find(t, offers, "cx43", "hel1").Available {
		t.Error("cx43 in hel1 is available")
	}
	if got := find(t, offers, "cax21", "fsn1").Arch; got != "arm64" {
		t.Errorf("cax21: got %s", got)
	}
	for i, o := range offers {
		if o.MicroHour <= 0 || o.MicroMonth <= o.MicroHour || i > 0 && o.MicroHour < offers[i-1].MicroHour {
			t.Errorf("offer %d: got %+v", i, o)
		}
	}
	bare, err := p.provider(func(c *hetzner.Config) { c.IPv4 = false }).Offers(ctx)
	noErr(t, "offers without IPv4", err)
	if without := find(t, bare, "cx43", "fsn1"); without.MicroHour >= o.MicroHour || without.MicroMonth >= o.MicroMonth {
		t.Errorf("got a price of %d with an address, %d without", o.MicroHour, without.MicroHour)
	}
	if gb, err := provider.ImageMicroGBMonth(ctx); err != nil || gb <= 0 {
		t.Errorf("got price %d of a GB of image, error %v", gb, err)
	}
	_, before := p.sim.Counts()
	p.clock.Advance(59 * time.Minute)
	_, err = provider.Offers(ctx)
	noErr(t, "offers again", err)
	if _, after := p.sim.Counts(); after != before {
		t.Errorf("got %d requests within the hour", after-before)
	}
	p.clock.Advance(2 * time.Minute)
	_, err = provider.Offers(ctx)
	noErr(t, "offers after an hour", err)
	if _, after := p.sim.Counts(); after == before {
		t.Error("got no request after an hour, want one")
	}
}

// TestPriceMatchesTheBill: the offered hourly price is the one that the simulator bills.
func TestPriceMatchesTheBill(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	vm := p.running(provider, "vm-1")
	offers, err := provider.Offers(t.Context())
	noErr(t, "offers", err)
	if o := find(t, offers, vm.Kind, vm.Location); o.MicroHour != vm.MicroHour || o.Currency != vm.Currency {
		t.Errorf("got an offer of %d, but a price of %d at the VM", o.MicroHour, vm.MicroHour)
	}
	noErr(t, "delete", provider.Delete(t.Context(), "vm-1", fleet.ReasonDone))
	bill := p.sim.Bill()
	if got := bill.Of("server") + bill.Of("primary_ip"); got != vm.MicroHour {
		t.Errorf("got a bill of %d, want %d", got, vm.MicroHour)
	}
}

// TestPricesOfTheRealAPI covers data that the simulator does not have: more kinds of addresses than hcloud-go knows, a
// deprecated type, and prices that are not numbers.
func TestPricesOfTheRealAPI(t *testing.T) {
	t.Parallel()
	const types = `{"server_types":[{"id":1,"name":"cx43","cores":8,"memory":16.0,"disk":160,"architecture":"x86","deprecation":null,
		"prices":[{"location":"fsn1","price_hourly":{"net":"0.0256000000","gross":"0.0304640000000000"},"price_monthly":{"net":"15.99","gross":"19.0281"}},
			{"location":"nbg1","price_hourly":{"net":"0.02","gross":"PRICE"},"price_monthly":{"net":"1","gross":"2"}}],
		"locations":[{"id":1,"name":"fsn1","available":true,"deprecation":{"announced":"2026-01-01T00:00:00Z","unavailable_after":"2026-12-01T00:00:00Z"}},
			{"id":2,"name":"nbg1","available":true,"deprecation":{"announced":"2026-01-01T00:00:00Z","unavailable_after":"2026-11-01T00:00:00Z"}}]}],
		"meta":{"pagination":{"page":1,"per_page":50,"previous_page":null,"next_page":null,"last_page":1,"total_entries":1}}}`
	const pricing = `{"pricing":{"currency":"EUR","vat_rate":"19.00","image":{"price_per_gb_month":{"net":"0.0143","gross":"0.0170170000000001"}},
		"floating_ips":[],"primary_ips":[{"type":"ipv4","prices":[{"location":"fsn1","price_hourly":{"net":"0.0008","gross":"0.00095200000000"},"price_monthly":{"net":"0.5","gross":"0.5950"}}]},
			{"type":"ipv6","prices":[{"location":"fsn1","price_hourly":{"net":"0","gross":"0"},"price_monthly":{"net":"0","gross":"0"}}]}]}}`
	p := newProject(t, nil)
	for price, want := range map[string]int64{"0.0238000000": 23_800, "free": 0} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			answer := pricing
			if strings.HasSuffix(r.URL.Path, "/server_types") {
				answer = strings.Replace(types, "PRICE", price, 1)
			}
			_, _ = w.Write([]byte(answer))
		}))
		defer srv.Close()
		provider := p.provider(func(c *hetzner.Config) { c.Endpoint = srv.URL })
		offers, err := provider.Offers(t.Context())
		if want == 0 {
			if err == nil {
				t.Errorf("got price %q was accepted", price)
			}
			continue
		}
		noErr(t, "offers", err)
		fsn, nbg := find(t, offers, "cx43", "fsn1"), find(t, offers, "cx43", "nbg1")
		if fsn.MicroHour != 30_464+952 || fsn.MicroMonth != 19_028_100+595_000 || !fsn.Available || fsn.GoneAfter.Month() != time.December {
			t.Errorf("fsn1: got %+v", fsn)
		}
		if nbg.MicroHour != want || nbg.Available { // it was removed on 1 November
			t.Errorf("nbg1: got %+v", nbg)
		}
		if gb, err := provider.ImageMicroGBMonth(t.Context()); err != nil || gb != 17_018 {
			t.Errorf("got price %d of a GB of image, error %v", gb, err)
		}
	}
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	p := newProject(t, func(c *simhetzner.Config) { c.Quota.Servers = 2 })
	provider := p.provider(nil)
	p.sim.SetStock("cx43", "fsn1", 0)
	_, err := provider.Create(t.Context(), spec("vm-1"))
	wantErr(t, "create", err, fleet.ErrNoCapacity)
	s := spec("vm-1") // the same name, another candidate
	s.Offer.Location = "nbg1"
	_, err = provider.Create(t.Context(), s)
	noErr(t, "create elsewhere", err)
	s.Name, s.Labels = "vm-2", nil
	_, err = provider.Create(t.Context(), s)
	noErr(t, "create another", err)
	s.Name = "vm-3"
	_, err = provider.Create(t.Context(), s)
	wantErr(t, "create a third", err, fleet.ErrQuota)
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.sim.Claim("cx43", "nbg1", false)
	provider := p.provider(func(c *hetzner.Config) {
		c.Egress = hetzner.EgressTether
		c.Candidates = []fleet.Offer{
			{Type: "cx43", Location: "fsn1"}, {Type: "cx43", Location: "nbg1"}, {Type: "cx43", Location: "ash"}, {Type: "cx99", Location: "fsn1"},
		}
	})
	about, err := provider.Describe(t.Context())
	noErr(t, "describe", err)
	if about.Provider != "hetzner" || about.Isolation != fleet.IsolationVM || len(about.Notes) != 4 || len(about.Choices) != 4 {
		t.Fatalf("got description %+v", about)
	}
	for i, want := range []string{"cx43 in ash: this type is not sold there", "cx99 in fsn1: there is no server type", "hetzner.ssh_from", "only through errand"} {
		if !strings.Contains(about.Notes[i], want) {
			t.Errorf("note %d: %q, want %q", i, about.Notes[i], want)
		}
	}
	type seen struct {
		what            string
		sold, orderable bool
		vcpu, disk      int
	}
	var got []seen
	for _, c := range about.Choices {
		got = append(got, seen{c.String(), c.Sold, c.Orderable(p.clock.Now()), c.Offer.VCPU, c.Offer.DiskGB})
	}
	if want := []seen{{"cx43/fsn1", true, true, 8, 160}, {"cx43/nbg1", true, false, 8, 160}, {what: "cx43/ash"}, {what: "cx99/fsn1"}}; !slices.Equal(got, want) {
		t.Errorf("got choices %+v", got)
	}
	if least, ok := about.Cheapest(p.clock.Now()); !ok || least.String() != "cx43/fsn1" || least.Offer.MicroHour == 0 {
		t.Errorf("cheapest: got %+v, error %v", least, ok)
	}
	q := newProject(t, nil)
	q.ahead = 3 * time.Minute
	about, err = q.provider(func(c *hetzner.Config) { c.SSHFrom = []string{"203.0.113.7/32"} }).Describe(t.Context())
	if err != nil || len(about.Notes) != 1 || !strings.Contains(about.Notes[0], "3m0s") {
		t.Errorf("with another clock: got %+v, error %v", about, err)
	}
	about, err = p.provider(func(c *hetzner.Config) { c.Token = "wrong" }).Describe(t.Context())
	if err != nil || len(about.Notes) != 1 || !strings.Contains(about.Notes[0], "hetzner.token") {
		t.Errorf("with a wrong token: got %+v, error %v", about, err)
	}
}

// TestTokenProblem tells a token that may only read from one of which that is not known.
func TestTokenProblem(t *testing.T) {
	t.Parallel()
	const read, write = http.MethodGet, http.MethodPost
	for name, c := range map[string]struct {
		fault   simhetzner.Fault
		problem string
		err     error
	}{
		"a good one":                  {},
		"refused":                     {fault: simhetzner.Fault{Method: read, Code: "unauthorized"}, problem: "Hetzner refuses hetzner.token."},
		"may only read":               {fault: simhetzner.Fault{Method: write, Code: "forbidden"}, problem: "hetzner.token may only read."},
		"may only read, as formerly":  {fault: simhetzner.Fault{Method: write, Code: "token_readonly"}, problem: "hetzner.token may only read."},
		"too many keys":               {fault: simhetzner.Fault{Method: write, Code: "resource_limit_exceeded"}},
		"writing fails":               {fault: simhetzner.Fault{Method: write, Status: http.StatusServiceUnavailable}, err: fleet.ErrUnknownOutcome},
		"writing is not answered":     {fault: simhetzner.Fault{Method: write, Cut: true}, err: fleet.ErrUnknownOutcome},
		"maintenance":                 {fault: simhetzner.Fault{Method: write, Code: "maintenance"}, err: fleet.ErrUnknownOutcome},
		"too many requests for write": {fault: simhetzner.Fault{Method: write, Code: "rate_limit_exceeded"}, err: fleet.ErrLimited},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, nil)
			if c.fault.Method != "" {
				c.fault.Path = "^/ssh_keys"
				p.fault(c.fault)
			}
			if problem, err := p.provider(nil).TokenProblem(t.Context()); problem != c.problem || !errors.Is(err, c.err) {
				t.Errorf("got %q, %v", problem, err)
			}
			if problem, err := hetzner.TryToken(t.Context(), p.config()); problem != c.problem || !errors.Is(err, c.err) {
				t.Errorf("before there is a provider: got %q, %v", problem, err)
			}
			p.wantCount("ssh_key", 0)
		})
	}
}

// TestOldPricesAreUsedWhileTheAPIFails: the last known prices are used for a day.
func TestOldPricesAreUsedWhileTheAPIFails(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	provider := p.provider(nil)
	want, err := provider.Offers(t.Context())
	noErr(t, "offers", err)
	p.fault(simhetzner.Fault{Path: "^/(pricing|server_types)$", Code: "maintenance"})
	p.clock.Advance(2 * time.Hour)
	got, err := provider.Offers(t.Context())
	if err != nil || len(got) != len(want) {
		t.Errorf("two hours later: got %d offers, error %v", len(got), err)
	}
	p.clock.Advance(23 * time.Hour)
	if _, err := provider.Offers(t.Context()); err == nil {
		t.Error("yesterday's prices were used")
	}
	p.sim.ClearFaults()
	p.fault(simhetzner.Fault{Path: "^/pricing$", Code: "unauthorized", Count: 1})
	_, err = provider.Offers(t.Context())
	wantErr(t, "offers without a token", err, fleet.ErrUnauthorized)
}
