//go:build linux

package secrets_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// canary is the text that the agent writes everywhere. It is not a secret, so that nothing redacts it.
const canary = "canary"

// lent holds the operator's values for tests: the agent may read them while it works, and they must not be anywhere
// else.
type lent struct{ variable, file string }

// The names of these values, and of the tokens of subscriptions.
const (
	lentVariable = "variable for tests"
	lentFile     = "file for tests"
	subscribed   = "subscription's token"
	// besideIt is printed before the values for tests, to prove that the output was stored.
	besideIt = "output next to the values for tests"
)

// needles are secrets by name. A secret may have several parts.
type needles map[string][][]byte

func (n needles) add(name string, secret []byte) { n[name] = append(n[name], slices.Clone(secret)) }

// index returns the fingerprints of all secrets.
func (n needles) index() (x Index) {
	for name, parts := range n {
		for _, p := range parts {
			x.add(name, p)
		}
	}
	return x
}

// planted returns a file with all secrets, to prove that each would be found.
func (n needles) planted() []byte {
	return bytes.Join(slices.Concat(slices.Collect(maps.Values(n))...), []byte("\n"))
}

// needles returns all current secrets, the values for tests, and the canary.
func (l *life) needles() needles {
	t, w := l.t, l.world
	t.Helper()
	app := w.GitHub.App()
	x := needles{}
	x.add(canary, []byte(l.bird))
	x.add("webhook secret", []byte(app.WebhookSecret))
	x.add("admin token", []byte(demo.AdminToken))
	x.add("model key", []byte(demo.ModelKey))
	x.add("cloud token", []byte(demo.CloudToken))
	x.add(besideIt, []byte("seen-1764-beside-it-"))
	x.add(lentVariable, []byte(l.lent.variable))
	x.add(lentFile, []byte(l.lent.file))
	for name, value := range subscriptions(w) {
		x.add(name, []byte(value))
	}
	addKey(x, rsatest.Key(), app)
	for i, token := range w.GitHub.Tokens() {
		if strings.HasPrefix(token, "ghs_") {
			// All have the same beginning, with the App's ID.
			_, own, _ := strings.Cut(strings.TrimPrefix(token, "ghs_"), "_")
			x.add(fmt.Sprintf("installation token %d", i), []byte(own))
		}
	}
	l.addFile(x, "key of the tether's tokens", "tether_key")
	var keys []string
	if l.cloud { // the first host key of a VM is part of its user data, and is replaced by a generated one
		l.addFile(x, "seed of host keys", "host_keys_secret")
	} else {
		var err error
		keys, err = filepath.Glob(filepath.Join(l.boxes(), "*", "host_key"))
		must(t, err)
	}
	for _, path := range append(keys, filepath.Join(l.dir, "data", "client_key")) {
		addSSHKey(t, x, path)
	}
	return x
}

// addFile adds a file in errand's directory.
func (l *life) addFile(x needles, name, file string) {
	l.t.Helper()
	data, err := os.ReadFile(filepath.Join(l.dir, "data", file))
	must(l.t, err)
	x.add(name, data)
}

// subscriptions adds all tokens that were ever issued, for calls and for renewals.
func subscriptions(w *demo.World) map[string]string {
	out := map[string]string{}
	for i, l := range w.Model.Logins() {
		out[fmt.Sprintf("%s %d for calls", subscribed, i)] = l.Access
		out[fmt.Sprintf("%s %d for renewals", subscribed, i)] = l.Refresh
	}
	return out
}

// addKey adds the App's key: the lines of the file, and the secret numbers in their representations in memory.
func addKey(x needles, key *rsa.PrivateKey, app simgithub.App) {
	lines := bytes.Split(app.PEM, []byte("\n"))
	for _, line := range lines[2 : len(lines)-3] { // the first line is the same for every key of this size, the last is short
		x.add("App key", line)
	}
	for _, n := range [][]byte{key.D.Bytes(), key.Primes[0].Bytes(), key.Primes[1].Bytes()} {
		x.add("App key, one of its numbers", n)
		slices.Reverse(n) // in the byte order of this processor
		x.add("App key, one of its numbers", n)
	}
	x.add("App key, in binary", x509.MarshalPKCS1PrivateKey(key)[300:])
}

// addSSHKey adds the secret half of an SSH key.
func addSSHKey(t *testing.T, x needles, path string) {
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
