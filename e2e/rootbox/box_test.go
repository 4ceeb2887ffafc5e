//go:build linux

package rootbox_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/e2e/rootbox"
	"github.com/errand-bot/errand/internal/remote"
)

// patience is the timeout of one test; a box boots in three seconds on an idle machine.
const patience = 8 * time.Minute

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func openLab(t *testing.T) *rootbox.Lab {
	t.Helper()
	rootbox.Require(t)
	lab, err := rootbox.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	return lab
}

// boot creates a box and waits until cloud-init has applied its user data.
func boot(t *testing.T, lab *rootbox.Lab, spec rootbox.Spec) *rootbox.Box {
	t.Helper()
	box, err := lab.Boot(within(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("console of %s:\n%s", box.Name, box.Console())
			journal, err := box.Exec(context.Background(), "timeout", "20", "sh", "-c", "systemctl --no-pager list-jobs; systemctl --no-pager --failed; systemctl show --no-pager --state=failed -p Id -p Result -p ExecMainStatus -p ExecMainCode -p ConditionResult -p ExecStart \"*\"; journalctl --no-pager -n 100; ps axf; cat /var/lib/errand/firstboot*")
			t.Logf("journal: %v\n%s", err, journal)
		}
	})
	if err := box.AwaitBooted(within(t)); err != nil {
		t.Fatal(err)
	}
	return box
}

// keys returns keys of a client and a host.
type keys struct {
	client, host ssh.Signer
	hostPEM      string
}

func newKeys(t *testing.T) keys {
	t.Helper()
	var k keys
	for _, to := range []*ssh.Signer{&k.client, &k.host} {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if *to, err = ssh.NewSignerFromKey(private); err != nil {
			t.Fatal(err)
		}
		block, err := ssh.MarshalPrivateKey(private, "")
		if err != nil {
			t.Fatal(err)
		}
		k.hostPEM = string(pem.EncodeToMemory(block))
	}
	return k
}

func (k keys) authorized() string { return authorized(k.client) }

func authorized(s ssh.Signer) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey())))
}

func indent(text, by string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
}

// userData returns the minimal user data with which a box is reachable.
func (k keys) userData(more string) []byte {
	return fmt.Appendf(nil, `#cloud-config
ssh_deletekeys: true
ssh_keys:
  ed25519_private: |
    %s
  ed25519_public: %s
disable_root: false
ssh_pwauth: false
users:
  - name: root
    ssh_authorized_keys: [%q]
  - name: errand
    shell: /bin/bash
    ssh_authorized_keys: [%q]
%s`, indent(k.hostPEM, "    "), authorized(k.host), k.authorized(), k.authorized(), more)
}

func (k keys) endpoint(b *rootbox.Box, user string) remote.Endpoint {
	return remote.Endpoint{Network: "tcp", Address: b.Addr.String() + ":22", User: user, HostKeys: []string{authorized(k.host)}}
}

func (k keys) dial(t *testing.T, b *rootbox.Box, user string) *remote.Client {
	t.Helper()
	c, err := remote.Dial(within(t), k.endpoint(b, user), remote.Config{Signer: k.client})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func sh(t *testing.T, c *remote.Client, line string) string {
	t.Helper()
	res, err := c.Run(within(t), remote.Cmd{Argv: []string{"sh", "-c", line}})
	if err == nil {
		err = res.Check(line)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(res.Stdout))
}

// must fails the test if a step fails.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls a condition until it is true.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx := within(t)
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for !holds() {
		select {
		case <-pause.C:
		case <-ctx.Done():
			t.Fatalf("timeout while waiting for: %s", what)
		}
	}
}

// TestLife performs all operations on a VM with one box.
func TestLife(t *testing.T) {
	t.Parallel()
	lab, k := openLab(t), newKeys(t)
	box := boot(t, lab, rootbox.Spec{Name: "life", Instance: "1", UserData: k.userData("runcmd: [[sh, -c, 'echo ran >> /root/ran']]\n"), DiskMB: 1024})
	root := k.dial(t, box, "root")
	if got := sh(t, root, "hostname; cat ran; ls /etc/ssh/ssh_host_*_key; test -e /etc/ssh/ssh_host_rsa_key || echo only"); got != "life\nran\n/etc/ssh/ssh_host_ed25519_key\nonly" {
		t.Errorf("after the first boot: %q", got)
	}
	sh(t, root, "echo kept > kept; sync")

	must(t, box.Shutdown(within(t)))
	if box.Running() {
		t.Error("the box runs after a shutdown")
	}
	image, err := box.Snapshot(within(t))
	must(t, err)
	must(t, box.PowerOn(within(t)))
	must(t, box.AwaitBooted(within(t)))
	if got := sh(t, k.dial(t, box, "root"), "cat kept ran"); got != "kept\nran" {
		t.Errorf("second boot of the same VM: got %q", got)
	}

	other := newKeys(t)
	twin := boot(t, lab, rootbox.Spec{Name: "twin", Instance: "2", Image: image, UserData: other.userData("runcmd: [[sh, -c, 'echo again >> /root/ran']]\n"), DiskMB: 1100})
	if got := sh(t, other.dial(t, twin, "root"), "hostname; cat kept ran"); got != "twin\nkept\nran\nagain" {
		t.Errorf("VM created from the snapshot: got %q", got)
	}
	if _, err := twin.Exec(within(t), "timeout", "2", "bash", "-c", "exec 3<>/dev/tcp/"+box.Addr.String()+"/22"); err == nil {
		t.Error("one box reaches another")
	}

	third := newKeys(t)
	must(t, box.Rebuild(within(t), rootbox.Spec{Name: "rebuilt", Instance: "1", UserData: third.userData("")}))
	must(t, box.AwaitBooted(within(t)))
	if got := sh(t, third.dial(t, box, "errand"), "hostname; id -un; ls /root 2>&1 | head -1; test ! -e /var/tmp/kept"); !strings.HasPrefix(got, "rebuilt\nerrand\nls: cannot open") {
		t.Errorf("rebuilt VM: got %q", got)
	}
	must(t, box.Delete(within(t)))
	must(t, box.Delete(within(t)))
	if err := box.PowerOn(within(t)); err == nil {
		t.Error("a deleted box can be powered on")
	}
}

// TestReboot reboots the box from inside.
func TestReboot(t *testing.T) {
	t.Parallel()
	lab, k := openLab(t), newKeys(t)
	box := boot(t, lab, rootbox.Spec{Name: "reboot", UserData: k.userData("")})
	before := box.Off()
	_, _ = k.dial(t, box, "root").Run(within(t), remote.Cmd{Argv: []string{"systemctl", "reboot"}}) // the connection may end first
	select {
	case <-before:
	case <-within(t).Done():
		t.Fatal("the box does not go down")
	}
	eventually(t, "the box is up again", box.Running)
	must(t, box.AwaitBooted(within(t)))
	_, _ = k.dial(t, box, "root").Run(within(t), remote.Cmd{Argv: []string{"systemctl", "poweroff"}}) // likewise
	must(t, box.AwaitOff(within(t), time.Minute))
}
