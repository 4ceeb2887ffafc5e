package fleet_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

var (
	shopTask  = state.TaskKey{Repo: 5, Issue: 7}
	otherTask = state.TaskKey{Repo: 5, Issue: 8}
)

// newShopFleet returns a fleet whose VMs cost money.
func newShopFleet(t *testing.T, change func(*fleet.Config)) (*fleet.Fleet, *shop, *clock, *store.Store) {
	t.Helper()
	c := newClock()
	s, st := newShop(c), newStore(t, c.now)
	cfg := fleet.Config{
		Deployment: "demo", Rows: st.VMs, Store: st, Now: c.now, Sleep: c.sleep,
		Candidates: []fleet.Candidate{{Type: "small", Location: "here"}, {Type: "small", Location: "there"}, {Type: "large"}},
	}
	if change != nil {
		change(&cfg)
	}
	f := fleet.New(s, cfg)
	t.Cleanup(f.Close)
	return f, s, c, st
}

func get(t *testing.T, f *fleet.Fleet, spec fleet.AcquireSpec) fleet.VM {
	t.Helper()
	server, err := f.Acquire(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func rowOf(t *testing.T, s *store.Store, name string) vm.Row {
	t.Helper()
	row, err := s.VMs.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func TestCandidatesAreTriedInOrder(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		needs   fleet.Needs
		answers map[string]error
		lose    int
		want    string // orders
		err     error
		reason  string
	}{
		"the first":           {want: "small/here"},
		"the next":            {answers: map[string]error{"small/here": fleet.ErrNoCapacity}, want: "small/here small/there"},
		"any place, cheapest": {answers: map[string]error{"small/here": fleet.ErrNoCapacity, "small/there": fleet.ErrNoCapacity}, want: "small/here small/there large/here"},
		"needs":               {needs: fleet.Needs{VCPU: 8}, want: "large/here"},
		"needs too much":      {needs: fleet.Needs{MemoryMB: 99999}, err: fleet.ErrNoCapacity, reason: "small/here has 8192 of 99999 MB of memory"},
		"none": {
			answers: map[string]error{"small/here": fleet.ErrNoCapacity, "small/there": fleet.ErrNoCapacity, "large/here": fleet.ErrNoCapacity, "large/there": fleet.ErrNoCapacity},
			want:    "small/here small/there large/here large/there", err: fleet.ErrNoCapacity, reason: "small/here has none now; small/there has none now",
		},
		"the account's limit": {answers: map[string]error{"small/here": fleet.ErrQuota}, want: "small/here", err: fleet.ErrQuota, reason: "limit for this account"},
		"a lost answer":       {lose: 1, want: "small/here"},
		"not allowed":         {answers: map[string]error{"small/here": fleet.ErrUnauthorized}, want: "small/here", err: fleet.ErrUnauthorized},
		"too many calls":      {answers: map[string]error{"small/here": fleet.ErrLimited}, want: "small/here", err: fleet.ErrLimited},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s, _, _ := newShopFleet(t, nil)
			if test.answers != nil {
				s.answers = test.answers
			}
			s.lose = test.lose
			_, err := f.Acquire(t.Context(), fleet.AcquireSpec{Task: shopTask, Needs: test.needs})
			if (err == nil) != (test.err == nil) || !errors.Is(err, test.err) {
				t.Errorf("error is %v, want %v", err, test.err)
			}
			refused := err != nil && test.want != "" && !errors.Is(err, fleet.ErrLimited)
			if r := f.LastRefusal(); refused != errors.Is(r.Err, test.err) && test.err != nil || !refused && r != (fleet.OrderRefusal{}) {
				t.Errorf("the latest refusal is %+v", r)
			}
			var none *fleet.NoCapacityError
			if test.reason != "" && (!errors.As(err, &none) || !strings.Contains(none.Reason, test.reason) || none.Hint() == "") {
				t.Errorf("error is %v, want the reason %q", err, test.reason)
			}
			if got := s.ordered(); got != test.want {
				t.Errorf("ordered %q, want %q", got, test.want)
			}
		})
	}
}

// TestRefusedCandidateIsNotOrderedAgain: a candidate that was refused is not ordered for 10 minutes.
func TestRefusedCandidateIsNotOrderedAgain(t *testing.T) {
	t.Parallel()
	f, s, c, st := newShopFleet(t, nil)
	for _, pair := range []string{"small/here", "small/there", "large/here", "large/there"} {
		s.answers[pair] = fleet.ErrNoCapacity
	}
	for _, step := range []struct {
		after  time.Duration
		orders int
	}{{0, 4}, {9 * time.Minute, 4}, {time.Minute, 8}} {
		c.pass(step.after)
		_, err := f.Acquire(t.Context(), fleet.AcquireSpec{Task: shopTask})
		if got := len(strings.Fields(s.ordered())); got != step.orders || !errors.Is(err, fleet.ErrNoCapacity) {
			t.Errorf("after %s: %d orders, %v", step.after, got, err)
		}
	}
	rows, err := st.VMs.List(t.Context())
	if err != nil || len(rows) != 1 || rows[0].Phase != vm.Intended {
		t.Errorf("got rows %+v, error %v", rows, err)
	}
	c.pass(10 * time.Minute)
	clear(s.answers)
	if server := get(t, f, fleet.AcquireSpec{Task: shopTask}); server.Gen != 1 || server.Paid != time.Hour || server.MicroHour != 10_000 {
		t.Errorf("got VM %+v", server)
	}
	if day, _, err := st.VMs.Spent(t.Context(), c.now()); err != nil || day.Micro != 10_000 {
		t.Errorf("got bill %+v, error %v", day, err)
	}
}

func TestSlowVMIsReplaced(t *testing.T) {
	t.Parallel()
	f, s, _, st := newShopFleet(t, nil)
	s.boot = time.Hour
	first := fleet.VMName("demo", "5-7", 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := f.Acquire(ctx, fleet.AcquireSpec{Task: shopTask})
	if !errors.Is(err, fleet.ErrNoCapacity) || strings.Count(s.ordered(), "small") != 5 {
		t.Errorf("got orders %q, error %v", s.ordered(), err)
	}
	if row := rowOf(t, st, first); row.EndReason != fleet.ReasonCreateFailed || row.Phase != vm.Gone {
		t.Errorf("got first row %+v", row)
	}
}

// TestForeignVMWithTheSameNameIsNotTouched: a VM of another deployment is neither adopted nor deleted.
func TestForeignVMWithTheSameNameIsNotTouched(t *testing.T) {
	t.Parallel()
	f, s, _, st := newShopFleet(t, nil)
	s.answers["small/here"] = fleet.ErrNameTaken
	_, err := f.Acquire(t.Context(), fleet.AcquireSpec{Task: shopTask})
	if !errors.Is(err, fleet.ErrNoCapacity) {
		t.Errorf("got error %v", err)
	}
	if row := rowOf(t, st, fleet.VMName("demo", "5-7", 1)); !row.Phase.Over() {
		t.Errorf("got row %+v", row)
	}
}

// flaky makes first contacts, of which the given number fail first, with the given error.
type flaky struct {
	failures *int
	err      error // unreachable unless it is set
}

func (flaky) HostKey(row vm.Row) (string, error) { return "first " + row.Name, nil }

func (c flaky) Greet(ctx context.Context, row vm.Row, ep remote.Endpoint, pin func(context.Context, []string) error) ([]string, error) {
	if *c.failures--; *c.failures >= 0 {
		return nil, cmp.Or(c.err, error(remote.ErrUnreachable))
	}
	if ep.HostKeys[0] != "first "+row.Name {
		return nil, fmt.Errorf("the pins are %q", ep.HostKeys)
	}
	return []string{"second"}, pin(ctx, []string{ep.HostKeys[0], "second"})
}

func (flaky) Sync(context.Context, remote.Endpoint) error { return nil }

func TestFirstContact(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fails, gen int
		why        error
		detail     string // of the first one's end
	}{
		"at once": {0, 1, nil, ""}, "after a while": {5, 1, nil, ""}, "too late": {100, 2, nil, "unreachable"},
		"its first boot takes long": {100, 1, fleet.ErrSettingUp, ""},
		"its first boot has no end": {500, 2, fleet.ErrSettingUp, "its first boot has not finished"},
		"its first boot failed":     {1, 2, fmt.Errorf("%w: apt-get: no such package", fleet.ErrSetUp), "its first boot failed: apt-get: no such package"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := test.fails
			f, _, _, st := newShopFleet(t, func(c *fleet.Config) { c.Contact = flaky{&left, test.why} })
			server := get(t, f, fleet.AcquireSpec{Task: shopTask})
			if server.Gen != test.gen || len(server.Endpoint.HostKeys) != 1 || server.Endpoint.HostKeys[0] != "second" {
				t.Errorf("got VM %+v", server)
			}
			if row := rowOf(t, st, server.Name); row.Phase != vm.Ready {
				t.Errorf("got row %s", row.Phase)
			}
			if first := rowOf(t, st, fleet.VMName("demo", "5-7", 1)); test.gen > 1 && first.EndReason != fleet.ReasonUnusable {
				t.Errorf("first VM: got reason %q", first.EndReason)
			} else if !strings.Contains(first.Detail, test.detail) {
				t.Errorf("the first one ended because %q, want %q", first.Detail, test.detail)
			}
		})
	}
}

// TestNetworkIsClosedBeforeUse: Acquire returns a VM only after its first boot has finished and the provider has then
// restricted its network.
func TestNetworkIsClosedBeforeUse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		greets, busy, gen int
		detail            string // of the first VM's end
	}{
		"at once":                   {0, 0, 1, ""},
		"after a slow first boot":   {5, 0, 1, ""},
		"Hetzner needs some time":   {0, 3, 1, ""},
		"the first VM stays open":   {0, 70, 2, "the firewall is being changed"},
		"first boot, then firewall": {5, 3, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := test.greets
			f, s, _, st := newShopFleet(t, func(c *fleet.Config) { c.Contact = flaky{&left, nil} })
			s.busy = test.busy
			server := get(t, f, fleet.AcquireSpec{Task: shopTask})
			if left > 0 || s.closed[server.ID] == 0 {
				t.Errorf("got the VM with %d failing contacts to come, closed %d times", left, s.closed[server.ID])
			}
			first := rowOf(t, st, fleet.VMName("demo", "5-7", 1))
			if server.Gen != test.gen || !strings.Contains(first.Detail, test.detail) {
				t.Errorf("got generation %d, and the first VM ended with %q", server.Gen, first.Detail)
			}
		})
	}
}

// TestUnusableVMsEndWithTheFirstBootError: the error of the first boot reaches people, with a hint for the operator.
func TestUnusableVMsEndWithTheFirstBootError(t *testing.T) {
	t.Parallel()
	left := 1 << 30
	f, s, _, _ := newShopFleet(t, func(c *fleet.Config) { c.Contact = flaky{&left, fmt.Errorf("%w: no such package", fleet.ErrSetUp)} })
	_, err := f.Acquire(t.Context(), fleet.AcquireSpec{Task: shopTask})
	var none *fleet.NoCapacityError
	if !errors.As(err, &none) || !strings.Contains(none.Reason, "5 VMs in a row were unusable: ") || !strings.Contains(none.Reason, "no such package") || !strings.Contains(none.Hint(), "hetzner.setup") {
		t.Errorf("got error %v", err)
	}
	if n := strings.Count(s.ordered(), "small"); n != 5 {
		t.Errorf("got %d orders", n)
	}
}

func TestCostCapsDenyVMs(t *testing.T) {
	t.Parallel()
	f, s, _, _ := newShopFleet(t, func(c *fleet.Config) { c.Caps = vm.Caps{VMs: 9, MicroDay: 25_000} })
	get(t, f, fleet.AcquireSpec{Task: shopTask, Needs: fleet.Needs{VCPU: 8}})
	_, err := f.Acquire(t.Context(), fleet.AcquireSpec{Task: otherTask, Needs: fleet.Needs{VCPU: 8}})
	var limit *vm.LimitError
	if !errors.Is(err, fleet.ErrNoCapacity) || !errors.As(err, &limit) || limit.Limit != vm.LimitVMsDay {
		t.Errorf("got error %v", err)
	}
	if got := s.ordered(); got != "large/here" {
		t.Errorf("got orders %q", got)
	}
}
