package cloud_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/cloudinit"
	"github.com/errand-bot/errand/internal/fleet/fleettest"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/fleet/local/box"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// TestMain makes the test binary serve as errand-runner, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		serve := map[string]func(context.Context, []string) error{
			"box-supervise": box.Supervise, "box-ssh": box.ServeSSH, "box-hostkey": box.HostKey,
		}
		if run, ok := serve[os.Args[1]]; ok {
			if err := run(context.Background(), os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, os.Args[1]+":", err)
				syscall.Exit(1)
			}
			syscall.Exit(0) // with the race detector, os.Exit waits for a second
		}
	}
	os.Exit(m.Run())
}

const (
	token         = "token-for-tests"
	hostKeySecret = "a secret of tests, 32 bytes long"
)

// newWorld returns the simulator with sandboxes behind its servers: everything is real except the API and the isolation
// of a VM.
func newWorld(t *testing.T) fleettest.World {
	t.Helper()
	self, err := os.Executable()
	noErr(t, "find the test binary", err)
	machines, err := demo.NewMachines(t.Context(), local.Config{Dir: t.TempDir(), Runner: self, IdleExit: 5 * time.Minute})
	if err != nil {
		t.Skipf("SKIP: %v", err)
	}
	sim := simhetzner.New(simhetzner.Config{Machines: machines, Took: simhetzner.Scaled(1000), RateLimit: -1, Token: token})
	srv := httptest.NewServer(sim)
	t.Cleanup(func() {
		sim.Close()
		srv.Close()
	})
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32)))
	noErr(t, "make the client key", err)
	provider := func(deployment string) func(*testing.T) fleet.Provider {
		return func(t *testing.T) fleet.Provider {
			settings := hetzner.DefaultSettings()
			settings.Endpoint = srv.URL + "/v1"
			p, err := hetzner.New(hetzner.Config{
				Settings: settings, Token: token, Deployment: deployment, ClientKey: signer.PublicKey(), Sleep: shortly,
				RequestsPerHour: 1_000_000, // the tests look often, and a busy machine lets them look for long
				HTTP:            &http.Client{Transport: webtest.Transport(), Timeout: time.Minute},
			})
			noErr(t, "make a provider", err)
			return p
		}
	}
	return fleettest.World{
		Provider: provider("test"), Stranger: provider("stranger"), Signer: signer, Dial: machines.Dial,
		Prepare: func(t *testing.T, s *fleet.Spec) { prepare(t, s, signer.PublicKey()) },
		Endpoint: func(t *testing.T, vm fleet.VM) remote.Endpoint {
			_, public, err := cloudinit.DeriveHostKey([]byte(hostKeySecret), vm.Name)
			noErr(t, "derive host key", err)
			ep := vm.Endpoint
			ep.HostKeys = []string{public}
			return ep
		},
		Lose: func(t *testing.T) {
			for _, method := range []string{"POST", "PUT", "DELETE"} {
				noErr(t, "order a fault", sim.Fault(simhetzner.Fault{Method: method, Cut: true, After: true, Count: 1}))
			}
		},
	}
}

// shortly waits, but with a shorter timeout than for a real cloud.
func shortly(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(min(d, 250*time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func prepare(t *testing.T, s *fleet.Spec, client ssh.PublicKey) {
	t.Helper()
	private, _, err := cloudinit.DeriveHostKey([]byte(hostKeySecret), s.Name)
	noErr(t, "derive host key", err)
	s.Offer = fleet.Offer{Type: "cx23", Location: "nbg1"}
	s.UserData, err = cloudinit.UserData(cloudinit.Spec{Name: s.Name, HostKey: private, ClientKey: client})
	noErr(t, "write user data", err)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	fleettest.Run(t, newWorld)
}

func TestConformanceAsCloud(t *testing.T) {
	t.Parallel()
	fleettest.RunCloud(t, newWorld)
}

func noErr(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
