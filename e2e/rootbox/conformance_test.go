//go:build linux

package rootbox_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/e2e/rootbox"
	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/cloudinit"
	"github.com/errand-bot/errand/internal/fleet/fleettest"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

const hostKeySecret = "a secret of tests, 32 bytes long"

// newWorld returns the real provider with the simulated API and boxes as servers: everything is real except the API and
// the hardware.
func newWorld(t *testing.T) fleettest.World {
	t.Helper()
	lab := openLab(t)
	machines := &rootbox.Machines{Lab: lab, Await: true}
	sim := simhetzner.New(simhetzner.Config{Machines: machines, Took: simhetzner.Scaled(1000), RateLimit: -1, Token: "token", IPv4: lab.Ordered()})
	srv := httptest.NewServer(sim)
	t.Cleanup(func() {
		sim.Close()
		srv.Close()
	})
	signer := newKeys(t).client
	provider := func(deployment string) func(*testing.T) fleet.Provider {
		return func(t *testing.T) fleet.Provider {
			settings := hetzner.DefaultSettings()
			settings.Endpoint = srv.URL + "/v1"
			p, err := hetzner.New(hetzner.Config{
				Settings: settings, Token: "token", Deployment: deployment, ClientKey: signer.PublicKey(), Sleep: waitShortly, Now: fast(),
				HTTP: &http.Client{Transport: webtest.Transport(), Timeout: 30 * time.Second},
			})
			must(t, err)
			return p
		}
	}
	return fleettest.World{
		Provider: provider("test"), Stranger: provider("stranger"), Signer: signer, Processes: processes, Dial: dialBanner,
		Prepare: func(t *testing.T, s *fleet.Spec) {
			private, _, err := cloudinit.DeriveHostKey([]byte(hostKeySecret), s.Name)
			must(t, err)
			s.Offer = fleet.Offer{Type: "cx23", Location: "nbg1"}
			s.UserData, err = cloudinit.UserData(cloudinit.Spec{Name: s.Name, HostKey: private, ClientKey: signer.PublicKey()})
			must(t, err)
		},
		Endpoint: func(t *testing.T, vm fleet.VM) remote.Endpoint {
			_, public, err := cloudinit.DeriveHostKey([]byte(hostKeySecret), vm.Name)
			must(t, err)
			ep := vm.Endpoint
			ep.HostKeys = []string{public}
			return ep
		},
		Lose: func(t *testing.T) {
			for _, method := range []string{"POST", "PUT", "DELETE"} {
				must(t, sim.Fault(simhetzner.Fault{Method: method, Cut: true, After: true, Count: 1}))
			}
		},
	}
}

// waitShortly waits, but with a shorter timeout than for a real cloud.
func waitShortly(ctx context.Context, d time.Duration) error {
	return clock.Sleep(ctx, min(d, 50*time.Millisecond))
}

// fast is a clock on which the provider's rate limit refills a thousand times as fast.
func fast() func() time.Time {
	begun := time.Now()
	return func() time.Time { return begun.Add(1000 * time.Since(begun)) }
}

// greeted is a connection whose first bytes were already read.
type greeted struct {
	net.Conn
	all io.Reader
}

func (g greeted) Read(p []byte) (int, error) { return g.all.Read(p) }

// dialBanner dials until a server sends its banner. At the end of a first boot sshd restarts, which closes the
// connections in its queue.
func dialBanner(ctx context.Context, network, address string) (net.Conn, error) {
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			first := make([]byte, 1)
			if _, err = conn.Read(first); err == nil {
				return greeted{conn, io.MultiReader(bytes.NewReader(first), conn)}, nil
			}
			_ = conn.Close()
		}
		if clock.Sleep(ctx, 50*time.Millisecond) != nil {
			return nil, err
		}
	}
}

// processes searches the processes of all boxes, which the host can see, for a mark.
func processes(t *testing.T, mark string) (count int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, at := range all {
		if line, err := os.ReadFile(at); err == nil && bytes.Contains(line, []byte(mark)) {
			count++
		}
	}
	return count
}

// TestConformance runs the conformance suites of all providers and of providers with an API.
func TestConformance(t *testing.T) {
	t.Parallel()
	rootbox.Require(t)
	fleettest.Run(t, newWorld)
	fleettest.RunCloud(t, newWorld)
}
