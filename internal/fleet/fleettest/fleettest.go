// Package fleettest is the conformance suite for providers of VMs: what every
// fleet.Provider has to do, whatever its VMs are. A provider's own tests call Run
// with a World, and add what only they can see.
package fleettest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
)

// World is a place with VMs for one test.
type World struct {
	// Provider returns a new object over the same VMs each time, as after a restart
	// of the orchestrator.
	Provider func(t *testing.T) fleet.Provider
	// Stranger is a provider of another deployment in the same place.
	Stranger func(t *testing.T) fleet.Provider
	// Signer is the deployment's client key.
	Signer ssh.Signer
	// Processes counts the processes whose command line contains mark, wherever
	// they are; nil where a test cannot see into a VM after its end.
	Processes func(t *testing.T, mark string) int
}

// Run runs the suite. world is called once per test and may skip it.
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
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, world(t))
		})
	}
}

func spec(name string) fleet.Spec {
	return fleet.Spec{Name: name, Labels: map[string]string{fleet.LabelOwner: "owner-of-" + name, fleet.LabelGeneration: "1"}}
}

func create(t *testing.T, p fleet.Provider, name string) fleet.VM {
	t.Helper()
	cleanUp(t, p, name)
	vm, err := p.Create(deadline(t), spec(name))
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

func cleanUp(t *testing.T, p fleet.Provider, names ...string) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, name := range names {
			if err := p.Delete(ctx, name, fleet.ReasonDone); err != nil {
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

func dial(t *testing.T, w World, vm fleet.VM) *remote.Client {
	t.Helper()
	c, err := remote.Dial(deadline(t), vm.Endpoint, remote.Config{Signer: w.Signer})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// sh runs a line in the VM's shell and returns what it printed.
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

// eventually polls a condition until it holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not in time", what)
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
