//go:build linux

package secrets_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// canary is what the agent scatters: no secret of errand's, so that nothing stops it.
const canary = "canary"

// needles are all secrets that there are now, and the canary.
func needles(t *testing.T, w *demo.World, dir, bird string) Index {
	t.Helper()
	app := w.GitHub.App()
	var x Index
	x.add(canary, []byte(bird))
	x.add("webhook secret", []byte(app.WebhookSecret))
	x.add("admin token", []byte(demo.AdminToken))
	x.add("model key", []byte(demo.ModelKey))
	x.add("cloud token", []byte(demo.CloudToken))
	addKey(&x, common.Key, app)
	for i, token := range w.GitHub.Tokens() {
		if strings.HasPrefix(token, "ghs_") {
			// All begin alike, with the App's id.
			_, own, _ := strings.Cut(strings.TrimPrefix(token, "ghs_"), "_")
			x.add(fmt.Sprintf("installation token %d", i), []byte(own))
		}
	}
	tether, err := os.ReadFile(filepath.Join(dir, "data", "tether_key"))
	must(t, err)
	x.add("key of the tether's tokens", tether)
	keys, err := filepath.Glob(filepath.Join(dir, "data", "local", "boxes", "*", "host_key"))
	must(t, err)
	for _, path := range append(keys, filepath.Join(dir, "data", "client_key")) {
		addSSHKey(t, &x, path)
	}
	return x
}

// addKey takes in the App's key: the lines of the file, and the numbers that are secret as they may lie in memory.
func addKey(x *Index, key *rsa.PrivateKey, app simgithub.App) {
	lines := bytes.Split(app.PEM, []byte("\n"))
	for _, line := range lines[2 : len(lines)-3] { // the first is the same for every key of this size, the last is short
		x.add("App key", line)
	}
	for _, n := range [][]byte{key.D.Bytes(), key.Primes[0].Bytes(), key.Primes[1].Bytes()} {
		x.add("App key, a number of it", n)
		slices.Reverse(n) // the order of this processor
		x.add("App key, a number of it", n)
	}
	x.add("App key, in binary", x509.MarshalPKCS1PrivateKey(key)[300:])
}

// addSSHKey takes in the secret half of a key for SSH.
func addSSHKey(t *testing.T, x *Index, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	key, err := ssh.ParseRawPrivateKey(data)
	must(t, err)
	private, ok := key.(*ed25519.PrivateKey)
	if !ok {
		t.Fatalf("%s is a %T", path, key)
	}
	x.add("SSH key "+filepath.Base(path), private.Seed())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
