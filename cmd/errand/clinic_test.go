package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simgithub/web"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// clinic is an installation on simulators, in which nothing is wrong at first.
type clinic struct {
	t      *testing.T
	github *simgithub.Sim
	files  map[string]string // secrets by the names of their files
	dir    string
	bin    string
	config map[string]string // lines of the configuration by their keys
}

const hookURL = "https://errand.example.org/api/github/hook"

// anotherKey returns a private key that belongs to no App.
func anotherKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// newClinic returns an installation that works. bin holds errand-runner.
func newClinic(t *testing.T, bin string) *clinic {
	t.Helper()
	c := &clinic{t: t, dir: t.TempDir(), bin: filepath.Dir(bin)}
	var err error
	if c.github, err = simgithub.New(simgithub.Config{Dir: filepath.Join(t.TempDir(), "github"), Key: rsatest.Key(), Pages: web.Handler, Record: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.github.Close() })
	address, err := c.github.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hooks := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hooks.Close)
	c.github.SetWebhook(hooks.URL, "hook-secret-for-tests")
	c.seed("shop")
	if err := c.github.WaitHooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.github.SetWebhook(hookURL, "")
	models := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "model-key-for-tests" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(models.Close)
	app := c.github.App()
	c.write("bin/claude", "#!/bin/sh\necho 2.1.0 \"(Claude Code)\"\n", 0o755)
	c.write("app.pem", string(app.PEM), 0o600)
	c.write("hook", "hook-secret-for-tests", 0o600)
	c.write("admin", "admin-token-for-tests", 0o600)
	c.write("model", "model-key-for-tests", 0o600)
	c.config = map[string]string{
		"listen": "127.0.0.1:1", "data": c.path("data"), "public_url": "https://errand.example.org",
		"github":  fmt.Sprintf("{app_id: %d, private_key: 'file:%s', webhook_secret: 'file:%s', url: '%s'}", app.ID, c.path("app.pem"), c.path("hook"), address),
		"trigger": "{assignee: worker}", "admin": fmt.Sprintf("{token: 'file:%s'}", c.path("admin")),
		"models": fmt.Sprintf("{anthropic: {url: '%s', key: 'file:%s'}}", models.URL, c.path("model")),
		"local":  fmt.Sprintf("{kind: plain, allow_unsandboxed: true, path: ['%s']}", c.path("bin")),
	}
	return c
}

func (c *clinic) path(name string) string { return filepath.Join(c.dir, name) }

func (c *clinic) write(name, text string, mode os.FileMode) {
	c.t.Helper()
	if err := os.MkdirAll(filepath.Dir(c.path(name)), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(c.path(name), []byte(text), mode); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Chmod(c.path(name), mode); err != nil { // whatever the umask
		c.t.Fatal(err)
	}
}

// seed creates a repository with the App and the machine user.
func (c *clinic) seed(name string) {
	c.t.Helper()
	if _, err := c.github.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: name, Files: map[string]string{"README.md": "x"}, Collaborators: map[string]simgithub.Role{"worker": simgithub.RoleTriage}}); err != nil {
		c.t.Fatal(err)
	}
}

// hook does something that sends a webhook, by default that the installation is unsuspended. The webhook is answered with a
// status, or with none if that is 0.
func (c *clinic) hook(status int, do ...func()) {
	c.t.Helper()
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer hooks.Close()
	if status == 0 {
		hooks.Close()
	}
	c.github.SetWebhook(hooks.URL, "")
	if len(do) == 0 {
		c.github.Suspend("acme", false)
	}
	for _, f := range do {
		f()
	}
	if err := c.github.WaitHooks(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.github.SetWebhook(hookURL, "")
}

// reads makes errand read webhooks from GitHub's log, and GitHub send them to an address.
func (c *clinic) reads(address string) {
	secret := fmt.Sprintf("webhook_secret: 'file:%s'", c.path("hook"))
	if !strings.Contains(c.config["github"], secret) {
		c.t.Fatalf("got %q", c.config["github"])
	}
	c.config["github"] = strings.Replace(c.config["github"], secret, "webhooks: poll", 1)
	c.github.SetWebhook(address, "")
}

func (c *clinic) fault(f simgithub.Fault) {
	c.t.Helper()
	if err := c.github.Fault(f); err != nil {
		c.t.Fatal(err)
	}
}

// file writes the configuration and returns its path.
func (c *clinic) file() string {
	c.t.Helper()
	var b strings.Builder
	for key, value := range c.config {
		fmt.Fprintf(&b, "%s: %s\n", key, value)
	}
	c.write("config.yml", b.String(), 0o600)
	return c.path("config.yml")
}

// doctor runs the command and returns its findings.
func (c *clinic) doctor(args ...string) (code int, r doctor.Report) {
	c.t.Helper()
	code, out, errs := callIn(c.t, c.bin, nil, append([]string{"doctor", "--json", "-c", c.file()}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Findings) == 0 {
		c.t.Fatalf("code %d, output %q, errors %q: %v", code, out, errs, err)
	}
	for _, secret := range []string{"hook-secret-for-tests", "admin-token-for-tests", "model-key-for-tests", "RSA PRIVATE KEY"} {
		if strings.Contains(out+errs, secret) {
			c.t.Errorf("prints a secret:\n%s%s", out, errs)
		}
	}
	return code, r
}

// serve runs errand with the clinic's configuration until the test ends, or stop is called.
func (c *clinic) serve() (stop func()) {
	c.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.config["listen"] = ln.Addr().String()
	cfg, err := config.Load(c.file(), func(string) (string, bool) { return "", false })
	if err != nil {
		c.t.Fatal(err)
	}
	s, err := server.New(c.t.Context(), cfg, server.Options{Log: zerolog.Nop(), Version: "v1", BinDir: c.bin, Listener: ln})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
		_ = s.Close()
	})
	c.t.Cleanup(stop)
	return stop
}

// hetzner makes VMs come from a simulator that accepts one token.
func (c *clinic) hetzner(token string) {
	c.t.Helper()
	sim := simhetzner.New(simhetzner.Config{Token: "the-token-of-a-project", Took: simhetzner.Scaled(1000)})
	c.t.Cleanup(sim.Close)
	address, err := sim.Start("127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.write("hcloud", token, 0o600)
	c.config["provider"], c.config["hetzner"] = "hetzner", fmt.Sprintf("{token: 'file:%s', endpoint: '%s', ssh_from: [192.0.2.1/32], setup: 'true'}", c.path("hcloud"), address)
	c.bin = c.t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		if err := os.WriteFile(filepath.Join(c.bin, "errand-runner-linux-"+arch), nil, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}
