package fleet_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/fleet/local/box"
	"github.com/errand-bot/errand/internal/remote"
)

// TestMain makes the test binary serve as errand-runner, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		serve := map[string]func(context.Context, []string) error{"box-supervise": box.Supervise, "box-ssh": box.ServeSSH}
		if run, ok := serve[os.Args[1]]; ok {
			if err := run(context.Background(), os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, os.Args[1]+":", err)
				syscall.Exit(1)
			}
			syscall.Exit(0) // the race detector would make os.Exit wait for a second
		}
	}
	os.Exit(m.Run())
}

// TestVMLifecycle covers all operations of a task on its VM.
func TestVMLifecycle(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := local.New(local.Config{Dir: t.TempDir(), Kind: local.KindPlain, Runner: self, ClientKey: signer.PublicKey(), Deployment: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	store := newStore(t, time.Now)
	cfg := fleet.Config{Deployment: "demo", Rows: store.VMs, Store: store, SSH: remote.Config{Signer: signer}}
	f := fleet.New(p, cfg)
	vm := acquire(t, f, "42#7", 1)
	c, err := f.Client(ctx, vm.Name)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := f.Client(ctx, vm.Name); err != nil || again != c {
		t.Errorf("got another connection, error %v", err)
	}
	if _, err := c.Run(ctx, remote.Cmd{Argv: []string{"touch", "work"}}); err != nil {
		t.Fatal(err)
	}
	f.Close()

	f = fleet.New(p, cfg) // the orchestrator restarts
	defer f.Close()
	c, err = f.Client(ctx, acquire(t, f, "42#7", 1).Name)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := c.Run(ctx, remote.Cmd{Argv: []string{"ls"}}); err != nil || string(res.Stdout) != "work\n" {
		t.Errorf("after the restart: got %q, error %v", res.Stdout, err)
	}
	// The VM dies under us.
	_, _ = c.Run(ctx, remote.Cmd{Argv: []string{"sh", "-c", "kill -KILL $PPID"}})
	<-c.Done()
	if _, err := f.Client(ctx, vm.Name); !errors.Is(err, fleet.ErrEnded) {
		t.Errorf("Client: %v", err)
	}
	next := acquire(t, f, "42#7", 1)
	if next.Name == vm.Name || next.Gen != 2 {
		t.Errorf("acquired the ended VM %s", next.Name)
	}
	if err := f.Release(ctx, vm.Name, fleet.ReasonCrashed); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Client(ctx, vm.Name); !errors.Is(err, fleet.ErrNotFound) {
		t.Errorf("Client: %v", err)
	}
	if err := f.Release(ctx, next.Name, fleet.ReasonDone); err != nil {
		t.Fatal(err)
	}
	if vms, err := f.List(ctx); err != nil || len(vms) != 0 {
		t.Errorf("got %v, error %v, want no VMs", vms, err)
	}
}

// twoUsers says of boxes that they have a user of the runner's own, as VMs in a cloud have.
type twoUsers struct{ *local.Provider }

func (p twoUsers) Get(ctx context.Context, name string) (fleet.VM, error) {
	vm, err := p.Provider.Get(ctx, name)
	if err == nil {
		vm.Facts[fleet.FactRunnerLogin] = "keeper"
	}
	return vm, err
}

// TestRunnerClient: where a VM has a user of the runner's own, that one has a connection of its own, which ends with
// the VM.
func TestRunnerClient(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	p, err := local.New(local.Config{Dir: t.TempDir(), Kind: local.KindPlain, Runner: self, ClientKey: signer.PublicKey(), Deployment: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, test := range map[string]struct {
		provider fleet.Provider
		same     bool
	}{"one user": {p, true}, "two users": {twoUsers{p}, false}} {
		store := newStore(t, time.Now)
		f := fleet.New(test.provider, fleet.Config{Deployment: "demo", Rows: store.VMs, Store: store, SSH: remote.Config{Signer: signer}})
		defer f.Close()
		vm := acquire(t, f, strings.ReplaceAll(name, " ", "-"), 1)
		agent, err := f.Client(ctx, vm.Name)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			runner, err := f.RunnerClient(ctx, vm.Name)
			if err != nil || (runner == agent) != test.same {
				t.Errorf("%s: the same connection: %v, %v", name, runner == agent, err)
			}
		}
		runner, err := f.RunnerClient(ctx, vm.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Release(ctx, vm.Name, fleet.ReasonDone); err != nil {
			t.Fatal(err)
		}
		<-runner.Done()
		if _, err := f.RunnerClient(ctx, vm.Name); !errors.Is(err, fleet.ErrNotFound) {
			t.Errorf("%s: after its end: %v", name, err)
		}
	}
}
