package runnerctl_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
)

// twoUsers are VMs with a separate runner user, which record the user of each connection.
type twoUsers struct {
	*boxes
	facts map[string]string

	mu    sync.Mutex
	asked []string
}

func (u *twoUsers) Get(ctx context.Context, vm string) (fleet.VM, error) {
	facts, err := u.boxes.Get(ctx, vm)
	for key, value := range u.facts {
		facts.Facts[key] = value
	}
	facts.Endpoint.User = "nobody-has-this-name"
	return facts, err
}

func (u *twoUsers) as(ctx context.Context, who, vm string) (*remote.Client, error) {
	u.mu.Lock()
	u.asked = append(u.asked, who)
	u.mu.Unlock()
	return u.boxes.Client(ctx, vm)
}

func (u *twoUsers) Client(ctx context.Context, vm string) (*remote.Client, error) {
	return u.as(ctx, "agent", vm)
}

func (u *twoUsers) RunnerClient(ctx context.Context, vm string) (*remote.Client, error) {
	return u.as(ctx, "runner", vm)
}

// wasAsked returns who was asked for since the last time.
func (u *twoUsers) wasAsked() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	defer func() { u.asked = nil }()
	return strings.Join(u.asked, " ")
}

// TestTwoUsers: on a VM with a separate runner user, that user handles runs and the tether, its program cannot be
// changed by the agent, and it knows how to become the agent's user. All work on the checkout runs as the agent's user.
func TestTwoUsers(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	b := newBoxes(t)
	vm := b.create("two")
	dir := t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		if err := os.Link(b.bin, filepath.Join(filepath.Dir(b.bin), "errand-runner-linux-"+arch)); err != nil {
			t.Fatal(err)
		}
	}
	u := &twoUsers{boxes: b, facts: map[string]string{
		fleet.FactRunner: "", fleet.FactRunnerLogin: "errand-runner", fleet.FactRunnerDir: filepath.Join(dir, "lib"),
	}}
	ctl := runnerctl.New(u, filepath.Dir(b.bin))
	place, err := ctl.Place(ctx, vm.Name)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(place.Runner); err != nil || info.Mode().Perm() != 0o755 || filepath.Dir(place.Runner) != filepath.Join(dir, "lib") {
		t.Errorf("the program is %s: %v", place.Runner, err)
	}
	if got := u.wasAsked(); got != "runner" {
		t.Errorf("the program was put there by %s", got)
	}
	for name, test := range map[string]struct {
		do   func() error
		want string
	}{
		"knows":  {func() error { _, err := ctl.Knows(ctx, vm.Name, "r"); return err }, "runner"},
		"runs":   {func() error { _, err := ctl.Runs(ctx, vm.Name); return err }, "runner"},
		"stop":   {func() error { return ctl.Stop(ctx, vm.Name, "r", "because") }, "runner"},
		"follow": {func() error { _, _ = ctl.Follow(ctx, vm.Name, "r", 0); return nil }, "runner"},
		"reset":  {func() error { _ = ctl.Reset(ctx, vm.Name, work.ResetSpec{}); return nil }, "agent"},
		"lend":   {func() error { _, _ = ctl.Lend(ctx, vm.Name, work.LendSpec{}); return nil }, "agent"},
		"attach": {func() error {
			rw, err := ctl.Attach(ctx, vm.Name)
			if err == nil {
				err = rw.Close()
			}
			return err
		}, "runner runner"},
	} {
		if err := test.do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := u.wasAsked(); got != test.want {
			t.Errorf("%s asks %q, want %q", name, got, test.want)
		}
	}
	// There is no sudo in a box that could become anybody: that it was called, and how, is in its own words.
	err = ctl.Start(ctx, vm.Name, runner.Spec{ID: "r", Argv: []string{"true"}, Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "become the agent's user") {
		t.Errorf("started: %v", err)
	}
	if diff := cmp.Diff("runner", u.wasAsked()); diff != "" {
		t.Errorf("start asks (-want +got):\n%s", diff)
	}
}
