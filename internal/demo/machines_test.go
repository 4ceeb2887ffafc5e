package demo_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/exp/actionutil"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/fleet/local/box"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// cloud is the Hetzner simulator with sandboxes as its servers.
type cloud struct {
	machines *demo.Machines
	sim      *simhetzner.Sim
	client   *hcloud.Client
	signer   ssh.Signer
}

func newCloud(t *testing.T, kind string) *cloud {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	machines, err := demo.NewMachines(t.Context(), local.Config{Dir: t.TempDir(), Kind: kind, Runner: self, IdleExit: 5 * time.Minute})
	if err != nil {
		t.Skipf("SKIP: %v", err)
	}
	sim := simhetzner.New(simhetzner.Config{Machines: machines, Took: simhetzner.Scaled(1000), RateLimit: -1})
	srv := httptest.NewServer(sim)
	t.Cleanup(func() {
		sim.Close()
		srv.Close()
	})
	_, key, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	check(t, err)
	return &cloud{machines: machines, sim: sim, signer: signer, client: hcloud.NewClient(hcloud.WithEndpoint(srv.URL+"/v1"), hcloud.WithToken("any"),
		hcloud.WithPollOpts(hcloud.PollOpts{BackoffFunc: hcloud.ConstantBackoff(5 * time.Millisecond)}))}
}

// userData returns the keys' part of errand's user data.
func (c *cloud) userData(t *testing.T, hostKey []byte) string {
	t.Helper()
	client := string(ssh.MarshalAuthorizedKey(c.signer.PublicKey()))
	text, err := json.Marshal(map[string]any{
		"hostname": "vm", "ssh_deletekeys": true, "ssh_keys": map[string]string{"ed25519_private": string(hostKey)},
		"users": []any{
			map[string]any{"name": "root", "ssh_authorized_keys": []string{client}},
			map[string]any{"name": "errand", "homedir": "/home/errand", "ssh_authorized_keys": []string{client}},
		},
	})
	check(t, err)
	return "#cloud-config\n" + string(text)
}

func (c *cloud) wait(t *testing.T, first *hcloud.Action, next ...*hcloud.Action) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	check(t, c.client.Action.WaitFor(ctx, actionutil.AppendNext(first, next)...))
}

func (c *cloud) create(t *testing.T, name string, image *hcloud.Image, userData string) *hcloud.Server {
	t.Helper()
	res, _, err := c.client.Server.Create(t.Context(), hcloud.ServerCreateOpts{
		Name: name, ServerType: &hcloud.ServerType{Name: "cx23"}, Image: image, Location: &hcloud.Location{Name: "nbg1"}, UserData: userData,
	})
	check(t, err)
	c.wait(t, res.Action, res.NextActions...)
	return res.Server
}

// login connects with the given host keys.
func (c *cloud) login(t *testing.T, sv *hcloud.Server, user string, pins ...string) (*remote.Client, error) {
	t.Helper()
	cl, err := remote.Dial(t.Context(), remote.Endpoint{
		Network: "tcp", Address: sv.PublicNet.IPv4.IP.String() + ":22", User: user, HostKeys: pins,
	}, remote.Config{Signer: c.signer, Dial: c.machines.Dial})
	if err == nil {
		t.Cleanup(func() { _ = cl.Close() })
	}
	return cl, err
}

// run logs in, runs a command line and returns its output.
func (c *cloud) run(t *testing.T, sv *hcloud.Server, user, line string, pins ...string) string {
	t.Helper()
	cl, err := c.login(t, sv, user, pins...)
	check(t, err)
	defer func() { _ = cl.Close() }()
	res, err := cl.Run(t.Context(), remote.Cmd{Argv: []string{"sh", "-c", line}})
	check(t, err)
	check(t, res.Check(line))
	return strings.TrimSpace(string(res.Stdout))
}

// TestMachines plays the life of a server: logins with a verified host key, replacement of the key, suspension as a
// snapshot, restore, rebuild, deletion.
func TestMachines(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{local.KindBwrap, local.KindUserns} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			newCloud(t, kind).live(t)
		})
	}
}

func (c *cloud) live(t *testing.T) {
	first, firstPin, err := box.NewKey()
	check(t, err)
	sv := c.create(t, "vm-1", &hcloud.Image{Name: "ubuntu-24.04"}, c.userData(t, first))
	if got := c.run(t, sv, "errand", "cd /home/errand && echo kept > work && pwd -P && cat work", firstPin); !strings.HasSuffix(got, "kept") {
		t.Errorf("as errand: got %q", got)
	}
	made := c.run(t, sv, "root", "/usr/local/sbin/errand-hostkey make", firstPin)
	if again := c.run(t, sv, "root", "/usr/local/sbin/errand-hostkey make", firstPin); again != made || made == firstPin {
		t.Errorf("made key %q, then %q", made, again)
	}
	open, err := c.login(t, sv, "root", firstPin)
	check(t, err)
	if used := c.run(t, sv, "root", "/usr/local/sbin/errand-hostkey use", firstPin, made); used != made {
		t.Errorf("uses key %q, made %q", used, made)
	}
	if _, err := c.login(t, sv, "root", firstPin); !errors.Is(err, remote.ErrHostKey) {
		t.Errorf("login with the first key after its replacement: got %v", err)
	}
	if _, err := open.Run(t.Context(), remote.Cmd{Argv: []string{"true"}}); err != nil {
		t.Errorf("earlier connection: got %v", err)
	}
	image := c.sleep(t, sv, made)

	second, secondPin, err := box.NewKey()
	check(t, err)
	woken := c.create(t, "vm-2", image, c.userData(t, second))
	if got := c.run(t, woken, "errand", "cat /home/errand/work", secondPin); got != "kept" {
		t.Errorf("after the restore: got %q", got)
	}
	rebuilt, _, err := c.client.Server.RebuildWithResult(t.Context(), woken, hcloud.ServerRebuildOpts{
		Image: &hcloud.Image{Name: "ubuntu-24.04"}, UserData: hcloud.Ptr(c.userData(t, first)),
	})
	check(t, err)
	c.wait(t, rebuilt.Action)
	if got := c.run(t, woken, "errand", "ls -A /home/errand", firstPin); got != "" {
		t.Errorf("after the rebuild: got %q", got)
	}
}

// sleep powers the server off and on and off again, creates a snapshot and deletes the server.
func (c *cloud) sleep(t *testing.T, sv *hcloud.Server, pin string) *hcloud.Image {
	t.Helper()
	ctx := t.Context()
	off, _, err := c.client.Server.Poweroff(ctx, sv)
	check(t, err)
	c.wait(t, off)
	if _, err := c.login(t, sv, "errand", pin); !errors.Is(err, remote.ErrUnreachable) {
		t.Errorf("login while the server is off: got %v", err)
	}
	on, _, err := c.client.Server.Poweron(ctx, sv)
	check(t, err)
	c.wait(t, on)
	if got := c.run(t, sv, "errand", "cat work", pin); got != "kept" {
		t.Errorf("after power on: got %q", got)
	}
	off, _, err = c.client.Server.Poweroff(ctx, sv)
	check(t, err)
	c.wait(t, off)
	made, _, err := c.client.Server.CreateImage(ctx, sv, &hcloud.ServerCreateImageOpts{Type: hcloud.ImageTypeSnapshot})
	check(t, err)
	c.wait(t, made.Action)
	gone, _, err := c.client.Server.DeleteWithResult(ctx, sv)
	check(t, err)
	c.wait(t, gone.Action)
	if _, err := c.login(t, sv, "errand", pin); !errors.Is(err, remote.ErrUnreachable) {
		t.Errorf("login to the deleted server: got %v", err)
	}
	return made.Image
}
