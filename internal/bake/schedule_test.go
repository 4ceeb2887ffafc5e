package bake

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/fleet"
)

// TestRun simulates ten days of a schedule: without an image, with a changed recipe and with an old image.
func TestRun(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	groups := Groups{"often": {Repos: []string{"acme/a"}, Every: 72 * time.Hour}, "once": {Repos: []string{"acme/b"}}}
	begin, ticks := c.now(), 0
	var log *lines
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var b *Baker
	b, log = c.baker(groups, func(cfg *Config) {
		cfg.Wait = func(ctx context.Context, d time.Duration) error {
			if d == tick {
				ticks++
			}
			if c.now().Sub(begin) > 5*24*time.Hour && groups["once"].Script == "" {
				groups["once"] = Group{Repos: []string{"acme/b"}, Script: "true"}
			}
			if c.now().Sub(begin) > 10*24*time.Hour {
				cancel()
			}
			return c.wait(ctx, d)
		}
	})
	if err := b.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, o := range c.orders {
		got[o.Owner]++
	}
	if diff := cmp.Diff(map[string]int{"bake-often": 4, "bake-once": 2}, got); diff != "" || ticks < 1000 {
		t.Errorf("%d ticks:\n%s\n%s", ticks, diff, log)
	}
	for _, why := range []string{"there is none", "its recipe has changed", "it is old"} {
		if !strings.Contains(log.String(), why) {
			t.Errorf("the log does not say %q", why)
		}
	}
}

// TestFailedBakeIsRetriedLater: a failed bake is retried after hours, not immediately.
func TestFailedBakeIsRetriedLater(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	begin := c.now()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b, _ := c.baker(Groups{"web": {Repos: []string{"acme/*"}}}, func(cfg *Config) {
		cfg.VMs = noVMs{c}
		cfg.Wait = func(ctx context.Context, d time.Duration) error {
			if c.now().Sub(begin) > 24*time.Hour {
				cancel()
			}
			return c.wait(ctx, d)
		}
	})
	_ = b.Run(ctx)
	if n := len(c.orders); n < 4 || n > 5 {
		t.Errorf("%d tries in a day, want one each 6 h", n)
	}
}

// TestPausedBakerCreatesNoVM: during a pause, due images are not baked and requests are refused with the reason; afterwards the next
// pass bakes, because the pause is no failed attempt.
func TestPausedBakerCreatesNoVM(t *testing.T) {
	t.Parallel()
	c, dir := newCloud(t), filepath.Join(t.TempDir(), "bake")
	paused := errors.New("the operator paused errand")
	b, _ := c.baker(Groups{"web": {Repos: []string{"acme/*"}}}, func(cfg *Config) {
		cfg.Asked = dir
		cfg.Begin = func(context.Context) (func(), error) { return func() {}, paused }
	})
	tried := map[string]time.Time{}
	b.pass(t.Context(), tried)
	turn := func(context.Context, time.Duration) error { b.serveRequests(t.Context()); return nil }
	if r, err := Ask(t.Context(), dir, "web", "one", turn); err != nil || r.Image != "" || !strings.Contains(r.Error, "the operator paused errand") {
		t.Errorf("got %+v, %v", r, err)
	}
	if len(c.orders) > 0 || len(tried) > 0 {
		t.Errorf("got orders %v, failed attempts %v", c.orders, tried)
	}
	paused = nil
	if b.pass(t.Context(), tried); len(c.orders) != 1 {
		t.Errorf("after the pause: got orders %v", c.orders)
	}
}

// TestBakeIsUnderWayUntilItsVMExists: a bake that may begin counts as work under way until its VM is in the store, or failed.
func TestBakeIsUnderWayUntilItsVMExists(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"a VM": false, "no VM": true} {
		c := newCloud(t)
		var events []string
		b, _ := c.baker(Groups{"web": {Repos: []string{"acme/*"}}}, func(cfg *Config) {
			if fails {
				cfg.VMs = noVMs{c}
			}
			cfg.VMs = watchedVMs{cfg.VMs, &events}
			cfg.Begin = func(context.Context) (func(), error) {
				events = append(events, "begin")
				return func() { events = append(events, "begun") }, nil
			}
		})
		if _, err := b.Bake(t.Context(), "web"); (err != nil) != fails {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(events, " "); got != "begin acquired begun" {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// watchedVMs records when an order for a VM has been answered.
type watchedVMs struct {
	VMs
	events *[]string
}

func (w watchedVMs) Acquire(ctx context.Context, o Order) (fleet.VM, error) {
	vm, err := w.VMs.Acquire(ctx, o)
	*w.events = append(*w.events, "acquired")
	return vm, err
}

// noVMs never provides a VM.
type noVMs struct{ *cloud }

func (n noVMs) Acquire(_ context.Context, o Order) (fleet.VM, error) {
	n.orders = append(n.orders, o)
	return fleet.VM{}, fleet.ErrNoCapacity
}

// TestAsk: a process without the store gets the answer to its own request, not to an earlier one.
func TestAsk(t *testing.T) {
	t.Parallel()
	c, dir := newCloud(t), filepath.Join(t.TempDir(), "bake")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b, _ := c.baker(Groups{"web": {Repos: []string{"acme/*"}}, "bad": {Repos: []string{"zoo/*"}, Script: "exit 7"}}, func(cfg *Config) { cfg.Asked = dir })
	turn := func(context.Context, time.Duration) error { b.serveRequests(ctx); return nil } // the other process works between two polls
	first, err := Ask(ctx, dir, "web", "one", turn)
	if err != nil || first.Image == "" || first.Error != "" {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := Ask(ctx, dir, "web", "two", turn)
	if err != nil || second.Image == first.Image {
		t.Errorf("%+v, %v", second, err)
	}
	if bad, err := Ask(ctx, dir, "bad", "three", turn); err != nil || !strings.Contains(bad.Error, "exit status 7") {
		t.Errorf("%+v, %v", bad, err)
	}
	if _, err := Ask(ctx, dir, "../web", "four", turn); !errors.Is(err, ErrUnknownGroup) {
		t.Errorf("a group that is a path: %v", err)
	}
	cancel()
	if _, err := Ask(ctx, dir, "web", "five", clock.Sleep); !errors.Is(err, context.Canceled) {
		t.Errorf("without an answer: %v", err)
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	groups := Groups{"all": {Repos: []string{"acme/*"}}, "web": {Repos: []string{"Acme/Shop", "zoo/web"}}}
	for repo, want := range map[string]string{"acme/shop": "web", "ACME/other": "all", "zoo/web": "web", "zoo/other": "", "acme": ""} {
		if got, ok := groups.Of(repo); got != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", repo, got, want)
		}
	}
	bad := Groups{
		"Bad_": {Repos: []string{"acme/*"}}, "none": {}, "odd": {Repos: []string{"acme", "zoo/../x", "ACME/*"}, Timeout: -1, Every: time.Minute},
	}
	want := []string{
		"Bad_: a name has", "none.repos: write at least one", `odd.repos[0]: "acme": write OWNER/NAME`, `odd.repos[1]: "zoo/../x"`,
		"odd.repos[2]: ACME/* is also in the group Bad_", "odd.timeout: must be above", "odd.every: write 0",
	}
	got := bad.Problems()
	if len(got) != len(want) {
		t.Fatalf("%d problems: %q", len(got), got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
	if list := groups.Problems(); len(list) > 0 {
		t.Errorf("problems of good groups: %q", list)
	}
}
