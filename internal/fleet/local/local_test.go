package local_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/remote"
)

var kinds = []string{local.KindBwrap, local.KindUserns, local.KindPlain}

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

// newProvider skips the test where this kind of box cannot run.
func newProvider(t *testing.T, kind string, change func(*local.Config)) (*local.Provider, ssh.Signer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	signer := newSigner(t)
	cfg := local.Config{Dir: t.TempDir(), Kind: kind, Runner: self, ClientKey: signer.PublicKey(), Deployment: "test"}
	if change != nil {
		change(&cfg)
	}
	p, err := local.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Describe(t.Context()); err != nil {
		t.Skipf("SKIP kind %s: %v", kind, err)
	}
	return p, signer
}

func create(t *testing.T, p fleet.Provider, name string) fleet.VM {
	t.Helper()
	vm, err := p.Create(t.Context(), fleet.Spec{Name: name, Labels: map[string]string{fleet.LabelOwner: "1-2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Delete(context.Background(), name, fleet.ReasonDone); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return vm
}

func dial(t *testing.T, vm fleet.VM, signer ssh.Signer) *remote.Client {
	t.Helper()
	c, err := remote.Dial(t.Context(), vm.Endpoint, remote.Config{Signer: signer})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func run(t *testing.T, c *remote.Client, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := c.Run(ctx, remote.Cmd{Argv: []string{"sh", "-c", line}})
	if err == nil {
		err = res.Check(line)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(res.Stdout))
}

func TestSandboxRunsCommands(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, signer := newProvider(t, kind, nil)
			vm := create(t, p, "one")
			if vm.Kind != kind || vm.State != fleet.StateRunning {
				t.Errorf("got VM %s, %s", vm.Kind, vm.State)
			}
			c := dial(t, vm, signer)
			if got := run(t, c, "git init -q work && cd work && git rev-parse --is-inside-work-tree"); got != "true" {
				t.Errorf("got output %q from git in the sandbox", got)
			}
			if got := run(t, c, "pwd"); got != vm.Facts[fleet.FactHome] {
				t.Errorf("got working directory %q and home %q", got, vm.Facts[fleet.FactHome])
			}
		})
	}
}
