// Package fleettest is the conformance suite for VM providers: it tests the contract of [fleet.Provider] independently
// of the kind of VMs. A provider's tests call Run with a World, and add provider-specific tests.
//
// Start here: [Run].
package fleettest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
)

// World is an environment with VMs for one test.
type World struct {
	// Provider returns a new object for the same VMs each time, as after a restart of the orchestrator.
	Provider func(t *testing.T) fleet.Provider
	// Stranger returns a provider of another deployment in the same environment.
	Stranger func(t *testing.T) fleet.Provider
	// Signer is the deployment's client key.
	Signer ssh.Signer
	// Prepare completes a Spec with the data that the provider needs to create a VM: an offer, user data. Nil means
	// none.
	Prepare func(t *testing.T, spec *fleet.Spec)
	// Endpoint completes the endpoint of a prepared VM with its host keys. Nil if the provider generates new host keys
	// for each VM.
	Endpoint func(t *testing.T, vm fleet.VM) remote.Endpoint
	// Dial is remote.Config.Dial, nil if addresses are real.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Settle waits until actions in progress have ended, for worlds with their own clock.
	Settle func(t *testing.T)
	// Lose makes the next mutating call lose its response after its effect; nil if responses cannot be lost.
	Lose func(t *testing.T)
	// Processes counts the processes whose command line contains mark, wherever they run; nil if a test cannot inspect
	// a VM after its end.
	Processes func(t *testing.T, mark string) int
}

// Run tests the contract of every provider. world is called once per test and may skip it.
func Run(t *testing.T, world func(t *testing.T) World) {
	tests := map[string]func(*testing.T, World){
		"create is idempotent":         testCreateTwice,
		"create at once gives one":     testCreateAtOnce,
		"create after a lost answer":   testLostAnswer,
		"create refuses another one's": testNameTaken,
		"create refuses odd names":     testOddNames,
		"list is by deployment":        testList,
		"delete is idempotent":         testDelete,
		"a name can be used again":     testReuse,
		"ssh needs the right keys":     testKeys,
		"vms share no files":           testApart,
		"processes die with their vm":  testProcessesDie,
		"vms outlive the orchestrator": testOutlive,
		"described":                    testDescribed,
		"commands at once keep apart":  testConcurrent,
	}
	run(t, world, tests)
}

func run(t *testing.T, world func(t *testing.T) World, tests map[string]func(*testing.T, World)) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, world(t))
		})
	}
}

func spec(t *testing.T, w World, name string) fleet.Spec {
	t.Helper()
	s := fleet.Spec{Name: name, Labels: map[string]string{fleet.LabelOwner: "owner-of-" + name, fleet.LabelGeneration: "1"}}
	if w.Prepare != nil {
		w.Prepare(t, &s)
	}
	return s
}

// create creates a VM and waits until it runs.
func create(t *testing.T, w World, p fleet.Provider, name string) fleet.VM {
	t.Helper()
	return createAs(t, w, p, spec(t, w, name))
}

func createAs(t *testing.T, w World, p fleet.Provider, s fleet.Spec) fleet.VM {
	t.Helper()
	cleanUp(t, w, p, s.Name)
	vm, err := p.Create(deadline(t), s)
	if err != nil {
		t.Fatal(err)
	}
	if vm.State == fleet.StateRunning {
		return vm
	}
	return await(t, w, p, s.Name, fleet.StateRunning)
}

// await waits until a VM is in a state.
func await(t *testing.T, w World, p fleet.Provider, name string, want fleet.State) fleet.VM {
	t.Helper()
	var vm fleet.VM
	eventually(t, name+" is "+string(want), func() bool {
		settle(t, w)
		var err error
		if vm, err = p.Get(deadline(t), name); err != nil {
			t.Fatal(err)
		}
		if vm.State == fleet.StateEnded && want != fleet.StateEnded {
			t.Fatalf("%s has ended: %s: %s", name, vm.Ended, vm.Detail)
		}
		return vm.State == want
	})
	return vm
}

func settle(t *testing.T, w World) {
	t.Helper()
	if w.Settle != nil {
		w.Settle(t)
	}
}

// remove deletes a VM, retrying while the provider is busy.
func remove(ctx context.Context, p fleet.Provider, name string, why fleet.Reason) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := p.Delete(ctx, name, why)
		if !errors.Is(err, fleet.ErrBusy) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

func cleanUp(t *testing.T, w World, p fleet.Provider, names ...string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, name := range names {
			settle(t, w)
			if err := remove(ctx, p, name, fleet.ReasonDone); err != nil {
				t.Errorf("clean up: %v", err)
			}
		}
	})
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// endpoint returns the address of a VM with its pinned host keys.
func endpoint(t *testing.T, w World, vm fleet.VM) remote.Endpoint {
	t.Helper()
	if w.Endpoint != nil {
		return w.Endpoint(t, vm)
	}
	return vm.Endpoint
}

func dial(t *testing.T, w World, vm fleet.VM) *remote.Client {
	t.Helper()
	c, err := dialAs(t, w, endpoint(t, w, vm), w.Signer)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func dialAs(t *testing.T, w World, ep remote.Endpoint, signer ssh.Signer) (*remote.Client, error) {
	t.Helper()
	c, err := remote.Dial(deadline(t), ep, remote.Config{Signer: signer, Dial: w.Dial})
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// sh runs a line in the VM's shell and returns its output.
func sh(t *testing.T, c *remote.Client, line string) string {
	t.Helper()
	res, err := c.Run(deadline(t), remote.Cmd{Argv: []string{"sh", "-c", line}})
	if err == nil {
		err = res.Check(line)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(res.Stdout))
}

func names(t *testing.T, p fleet.Provider) string {
	t.Helper()
	vms, err := p.List(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, vm := range vms {
		all = append(all, vm.Name)
	}
	return strings.Join(all, " ")
}

// eventually polls a condition until it is true.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: the sandbox did not end in time", what)
		}
	}
}

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error is %v, want %v", what, err, want)
	}
}
