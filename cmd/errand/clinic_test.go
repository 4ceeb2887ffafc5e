package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/setup/setuptest"
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

	programs string        // folder of errand
	models   string        // address of the provider of models
	original simgithub.App // with all permissions and events
	endpoint string        // address of the cloud

	cloud    *simhetzner.Sim                       // nil unless VMs come from it
	modelKey atomic.Pointer[string]                // which the provider of models accepts
	proxied  atomic.Pointer[httputil.ReverseProxy] // to errand; nil while it does not run
	broken   atomic.Int32                          // what the reverse proxy answers instead of errand; 0: nothing is wrong with it
	proxy    string                                // address of the reverse proxy
	stop     func()                                // stops errand; nil while it does not run
	log      setuptest.Screen                      // of errand
	mustRun  bool                                  // that errand does not run is the fault
	held     io.Closer                             // the store of an errand that does not answer
}

const hookURL = "https://errand.example.org/api/github/hook"

// nowhere is an address at which nothing listens, for an errand that does not run.
const nowhere = "127.0.0.1:1"

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
	c := &clinic{t: t, dir: t.TempDir(), bin: filepath.Dir(bin), programs: filepath.Dir(bin)}
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
	accepted := "model-key-for-tests"
	c.modelKey.Store(&accepted)
	models := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != *c.modelKey.Load() {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(models.Close)
	app := c.github.App()
	c.original, c.models = app, models.URL
	c.write("bin/claude", "#!/bin/sh\necho 2.1.0 \"(Claude Code)\"\n", 0o755)
	c.write("app.pem", string(app.PEM), 0o600)
	c.write("hook", "hook-secret-for-tests", 0o600)
	c.write("admin", "admin-token-for-tests", 0o600)
	c.write("model", "model-key-for-tests", 0o600)
	c.config = map[string]string{
		"listen": nowhere, "data": c.path("data"), "public_url": "https://errand.example.org",
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

// noAnswer makes the reverse proxy close connections.
const noAnswer = 1

// behindProxy puts a reverse proxy in front of errand, to which GitHub sends webhooks, and has one delivered before errand stops.
func (c *clinic) behindProxy() {
	c.t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, errand := int(c.broken.Load()), c.proxied.Load()
		switch {
		case status == noAnswer:
			panic(http.ErrAbortHandler)
		case status != 0:
			w.WriteHeader(status)
		case errand == nil:
			w.WriteHeader(http.StatusBadGateway)
		default:
			errand.ServeHTTP(w, r)
		}
	}))
	c.t.Cleanup(proxy.Close)
	c.proxy = proxy.URL
	c.config["public_url"] = c.proxy
	c.github.SetWebhook(c.proxy+handlers.HookPath, "")
	c.webhook(http.StatusOK)
}

// webhook does something that sends a webhook, by default that the installation is unsuspended, while the reverse proxy answers with a status.
// With 0 it is errand's answer.
func (c *clinic) webhook(status int32, do ...func()) {
	c.t.Helper()
	before := c.broken.Swap(status)
	if len(do) == 0 {
		c.github.Suspend("acme", false)
	}
	for _, f := range do {
		f()
	}
	if err := c.github.WaitHooks(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.broken.Store(before)
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
	for _, key := range slices.Sorted(maps.Keys(c.config)) {
		fmt.Fprintf(&b, "%s: %s\n", key, c.config[key])
	}
	if old, err := os.ReadFile(c.path("config.yml")); err != nil || string(old) != b.String() { // otherwise nobody changed it
		c.write("config.yml", b.String(), 0o600)
	}
	return c.path("config.yml")
}

// doctor runs the command and returns its findings.
func (c *clinic) doctor(args ...string) (code int, r doctor.Report) {
	c.t.Helper()
	code, out, errs := callIn(c.t, c.bin, nil, append([]string{"doctor", "--json", "-c", c.file()}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Findings) == 0 {
		c.t.Fatalf("code %d, output %q, errors %q: %v", code, out, errs, err)
	}
	for _, secret := range []string{"hook-secret-for-tests", "admin-token-for-tests", "model-key-for-tests", "the-token-of-a-project", "RSA PRIVATE KEY"} {
		if strings.Contains(out+errs, secret) {
			c.t.Errorf("prints a secret:\n%s%s", out, errs)
		}
	}
	return code, r
}

// serve runs errand with the clinic's configuration until the test ends, or stop is called.
func (c *clinic) serve() (stop func()) {
	c.t.Helper()
	listen := c.config["listen"]
	if listen == nowhere {
		listen = "127.0.0.1:0"
	}
	if c.stop != nil {
		c.stop()
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		c.t.Fatal(err)
	}
	c.config["listen"] = ln.Addr().String()
	cfg, err := config.Load(c.file(), func(string) (string, bool) { return "", false })
	if err != nil {
		c.t.Fatal(err)
	}
	s, err := server.New(c.t.Context(), cfg, server.Options{Log: zerolog.New(&c.log), Version: "v1", BinDir: c.bin, Listener: ln})
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
		c.proxied.Store(nil)
	})
	c.t.Cleanup(stop)
	c.proxied.Store(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: ln.Addr().String()}))
	c.stop = stop
	return stop
}

// hetzner makes VMs come from a simulator that accepts one token.
func (c *clinic) hetzner(token string) {
	c.t.Helper()
	sim := simhetzner.New(simhetzner.Config{Token: "the-token-of-a-project", ReadOnlyToken: "a-token-that-reads", Took: simhetzner.Scaled(1000)})
	c.cloud = sim
	c.t.Cleanup(sim.Close)
	address, err := sim.Start("127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.endpoint = address
	c.write("hcloud", token, 0o600)
	c.config["provider"], c.config["hetzner"] = "hetzner", fmt.Sprintf("{token: 'file:%s', endpoint: '%s', ssh_from: [192.0.2.1/32], setup: 'true'}", c.path("hcloud"), address)
	c.bin = c.t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		if err := os.WriteFile(filepath.Join(c.bin, "errand-runner-linux-"+arch), nil, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}
