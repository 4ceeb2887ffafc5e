package local_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/fleet/local/box"
	"github.com/errand-bot/errand/internal/remote"
)

// TestDisk: a box on a disk of its own leaves its home and its host key to the next one, and takes another key
// into use for the logins that come after.
func TestDisk(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, _ := newProvider(t, kind, nil)
			client, disk := newSigner(t), t.TempDir()
			first, public, err := box.NewKey()
			if err != nil {
				t.Fatal(err)
			}
			if err := box.NewDisk(disk, first); err != nil {
				t.Fatal(err)
			}
			boot := func(name string) fleet.VM {
				vm, err := p.CreateOn(t.Context(), fleet.Spec{Name: name}, local.Disk{Dir: disk, ClientKey: client.PublicKey()})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { end(t, p, name) })
				return vm
			}
			vm := boot("one")
			if vm.Endpoint.HostKeys[0] != public {
				t.Errorf("got pin %s, want that of the disk", vm.Endpoint.HostKeys[0])
			}
			old := dial(t, vm, client)
			run(t, old, "echo kept >work")
			made := hostKey(t, old, disk, "make")
			if again := hostKey(t, old, disk, "make"); again != made || made == public {
				t.Errorf("got host key %s, then %s", made, again)
			}
			if used := hostKey(t, old, disk, "use"); used != made || hostKey(t, old, disk, "use") != made {
				t.Errorf("got host key %s, used %s", made, used)
			}
			if _, err := remote.Dial(t.Context(), vm.Endpoint, remote.Config{Signer: client}); err == nil {
				t.Error("the first key is still in use")
			}
			run(t, old, "true")
			end(t, p, "one")
			vm = boot("two")
			if vm.Endpoint.HostKeys[0] != made {
				t.Errorf("got host key %s of the next sandbox", vm.Endpoint.HostKeys[0])
			}
			if got := run(t, dial(t, vm, client), "cat work"); got != "kept" {
				t.Errorf("got files %q in the next sandbox", got)
			}
			spoilKey(t, vm, client, disk)
		})
	}
}

// end deletes a box; its disk stays.
func end(t *testing.T, p *local.Provider, name string) {
	t.Helper()
	if err := p.Delete(context.WithoutCancel(t.Context()), name, fleet.ReasonDone); err != nil {
		t.Errorf("delete %s: %v", name, err)
	}
}

// spoilKey checks that no login is possible while the host key is invalid, and that logins work again afterwards.
func spoilKey(t *testing.T, vm fleet.VM, client ssh.Signer, disk string) {
	t.Helper()
	path := filepath.Join(disk, "ssh", "ssh_host_ed25519_key")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Dial(t.Context(), vm.Endpoint, remote.Config{Signer: client}); err == nil {
		t.Error("logged in without a host key")
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dial(t, vm, client), "true")
}

// hostKey runs errand-hostkey in the box, or in a plain one what that would run.
func hostKey(t *testing.T, c *remote.Client, disk, do string) string {
	t.Helper()
	if got := run(t, c, "[ ! -x "+box.CommandDir+"/errand-hostkey ] || errand-hostkey "+do); got != "" {
		return got
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), self, "box-hostkey", "-dir", filepath.Join(disk, "ssh"), do).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
