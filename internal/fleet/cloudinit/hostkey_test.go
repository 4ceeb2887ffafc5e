package cloudinit_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet/cloudinit"
)

func TestDeriveHostKey(t *testing.T) {
	t.Parallel()
	private, public, err := cloudinit.DeriveHostKey([]byte(secret), "errand-demo-g1")
	if err != nil {
		t.Fatal(err)
	}
	// A deployment whose errand is updated has to find the VMs that it has ordered.
	const fixed = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAp40f4tHXTW3eFCZf43w84Y+L3pwY+VAoH0rX2xd1sr"
	if public != fixed {
		t.Errorf("got key %s", public)
	}
	again, same, err := cloudinit.DeriveHostKey([]byte(secret), "errand-demo-g1")
	if err != nil || same != public || !bytes.Equal(again, private) {
		t.Errorf("second derivation: got %s, error %v", same, err)
	}
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))); got != public {
		t.Errorf("the public and the private key differ: got %s", got)
	}
	for name, other := range map[string]struct{ secret, vm string }{
		"another VM":     {secret, "errand-demo-g2"},
		"another secret": {strings.ToUpper(secret), "errand-demo-g1"},
	} {
		if _, key, err := cloudinit.DeriveHostKey([]byte(other.secret), other.vm); err != nil || key == public {
			t.Errorf("%s: %s, %v", name, key, err)
		}
	}
	for name, bad := range map[string]struct{ secret, vm string }{"no secret": {"", "a"}, "short": {"0123456789abcde", "a"}, "no name": {secret, ""}} {
		if _, _, err := cloudinit.DeriveHostKey([]byte(bad.secret), bad.vm); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
}

func TestOpenSSHReadsTheHostKey(t *testing.T) {
	t.Parallel()
	private, public, err := cloudinit.DeriveHostKey([]byte(secret), "errand-demo-g1")
	if err != nil {
		t.Fatal(err)
	}
	if got := keygen(t, private); got != public {
		t.Errorf("got %q from ssh-keygen", got)
	}
}

// keygen is the public half by OpenSSH's word.
func keygen(t *testing.T, private []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, private, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool(t, "ssh-keygen"), "-y", "-f", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("SKIP: %s is not installed", name)
	}
	return path
}
