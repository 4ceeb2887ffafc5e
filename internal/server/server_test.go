package server_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// place is the environment of one server.
type place struct {
	t   *testing.T
	sim *simgithub.Sim
	dir string
	bin string
	url string

	server *server.Server // the running one
}

func newPlace(t *testing.T) *place {
	t.Helper()
	sim, err := simgithub.New(simgithub.Config{Dir: t.TempDir(), Key: rsatest.Key()})
	check(t, err)
	_, err = sim.Start("127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { check(t, sim.Close()) })
	p := &place{t: t, sim: sim, dir: t.TempDir(), bin: t.TempDir()}
	// No box is created here: the runner's file only has to exist.
	check(t, os.WriteFile(filepath.Join(p.bin, "errand-runner"), []byte("#!/bin/sh\n"), 0o700))
	p.write("app.pem", string(sim.App().PEM))
	return p
}

func (p *place) write(name, content string) {
	p.t.Helper()
	check(p.t, os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o600))
}

const (
	secret = "webhook-5d1c7a0e9b"
	token  = "admin-77f0c2b1d4a8"
)

// config parses a small configuration with additional text.
func (p *place) config(listen string, more ...string) config.Config {
	p.t.Helper()
	text := fmt.Sprintf(`deployment: test
data: %q
listen: %s
github: {app_id: %d, private_key: "file:%s/app.pem", webhook_secret: "env:HOOK", url: %q}
trigger: {assignee: errand-bot}
admin: {token: "env:TOKEN"}
models: {anthropic: {url: "http://127.0.0.1:9", key: "env:MODEL"}}
local: {kind: plain}
timing: {shutdown: 5s}
%s`, filepath.Join(p.dir, "data"), listen, p.sim.App().ID, p.dir, p.sim.BaseURL(), strings.Join(more, "\n"))
	p.write("config.yml", text)
	env := map[string]string{"HOOK": secret, "TOKEN": token, "MODEL": "sk-model-81c0aa93"}
	cfg, err := config.Load(filepath.Join(p.dir, "config.yml"), func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	check(p.t, err)
	return cfg
}

// create creates a server.
func (p *place) create(cfg config.Config, change ...func(*server.Options)) (*server.Server, error) {
	o := server.Options{Log: zerolog.Nop(), Version: "test", BinDir: p.bin, StandInAgent: true}
	for _, f := range change {
		f(&o)
	}
	return server.New(p.t.Context(), cfg, o)
}

// run creates and runs a server. The returned function stops it and returns Run's error.
func (p *place) run(cfg config.Config, change ...func(*server.Options)) (stop func() error) {
	p.t.Helper()
	s, err := p.create(cfg, change...)
	check(p.t, err)
	p.server, p.url = s, "http://"+s.Addr().String()
	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return errors.Join(<-done, s.Close())
	})
	p.t.Cleanup(func() { _ = stop() }) // a test that checks the result has called it already
	return stop
}

// get reads a page over a new connection.
func (p *place) get(path string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+path, nil)
	check(p.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	return p.send(req)
}

func (p *place) send(req *http.Request) (int, string) {
	p.t.Helper()
	req.Close = true
	resp, err := webtest.Client().Do(req)
	check(p.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	check(p.t, err)
	return resp.StatusCode, string(body)
}

// hook posts a webhook as GitHub does.
func (p *place) hook(guid, event, body string) int {
	p.t.Helper()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url+"/api/github/hook", bytes.NewReader([]byte(body)))
	check(p.t, err)
	for k, v := range map[string]string{"Content-Type": "application/json", "X-GitHub-Event": event, "X-GitHub-Delivery": guid, "X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil))} {
		req.Header.Set(k, v)
	}
	status, _ := p.send(req)
	return status
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited for %s in vain", what)
		case <-tick.C:
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestNewReportsProblems(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { check(t, taken.Close()) })
	for name, c := range map[string]struct {
		listen string
		more   string
		bend   func(p *place)
		says   []string
	}{
		"the port is taken":        {taken.Addr().String(), "", nil, []string{"address already in use", "`listen`"}},
		"the pages' port is taken": {"127.0.0.1:0", "", nil, []string{"address already in use", "admin.listen"}},
		"no runner":                {"127.0.0.1:0", "", func(p *place) { check(p.t, os.Remove(filepath.Join(p.bin, "errand-runner"))) }, []string{"errand-runner", "make build"}},
		"a broken client key": {"127.0.0.1:0", "", func(p *place) {
			check(p.t, os.Mkdir(filepath.Join(p.dir, "data"), 0o700))
			p.write("data/client_key", "x")
		}, []string{"client key", "client_key"}},
		"a broken provenance key": {"127.0.0.1:0", "", func(p *place) {
			check(p.t, os.Mkdir(filepath.Join(p.dir, "data"), 0o700))
			p.write("data/provenance_key", "x")
		}, []string{"signing key", "provenance_key", "backup"}},
		"the data is a file": {"127.0.0.1:0", "", func(p *place) { p.write("data", "x") }, []string{"data folder"}},
		"backups with the data": {"127.0.0.1:0", "backup: {folder: FOLDER}", func(p *place) {
			check(p.t, os.MkdirAll(filepath.Join(p.dir, "data", "backups"), 0o700))
		}, []string{"backup.folder", "is inside the data folder"}},
		"the store is no store": {"127.0.0.1:0", "", func(p *place) {
			check(p.t, os.Mkdir(filepath.Join(p.dir, "data"), 0o700))
			p.write("data/errand.db", strings.Repeat("x", 70000))
		}, []string{"errand.db"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			if c.bend != nil {
				c.bend(p)
			}
			cfg := p.config(c.listen, strings.ReplaceAll(c.more, "FOLDER", filepath.Join(p.dir, "data", "backups")))
			if strings.Contains(name, "pages") {
				cfg.Admin.Listen = taken.Addr().String()
			}
			s, err := p.create(cfg)
			if err == nil || s != nil {
				t.Fatalf("server %v, error %v", s != nil, err)
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), secret) {
				t.Error("the error tells the secret")
			}
		})
	}
}

// TestFailedNewReleasesEverything: a second attempt succeeds after the operator has corrected the configuration.
func TestFailedNewReleasesEverything(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	if _, err := p.create(p.config(taken.Addr().String())); err == nil {
		t.Fatal("no error")
	}
	check(t, taken.Close())
	s, err := p.create(p.config("127.0.0.1:0"))
	check(t, err)
	check(t, s.Close())
}

func TestASecondServerOnTheSameDataIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	stop := p.run(p.config("127.0.0.1:0"))
	_, err := p.create(p.config("127.0.0.1:0"))
	if !errors.Is(err, boltkv.ErrLocked) {
		t.Fatalf("error %v", err)
	}
	until(t, "the first to be well", func() bool { status, _ := p.get("/readyz"); return status == http.StatusOK })
	check(t, stop())
	check(t, p.run(p.config("127.0.0.1:0"))())
}

// TestReadiness: webhooks are stored immediately, and handled as soon as GitHub has answered.
func TestReadiness(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	check(t, p.sim.Fault(simgithub.Fault{Path: "^/app$", Status: http.StatusServiceUnavailable}))
	stop := p.run(p.config("127.0.0.1:0"))
	until(t, "a server", func() bool { status, _ := p.get("/healthz"); return status == http.StatusOK })
	if status, body := p.get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "GitHub") {
		t.Errorf("not ready, and answers %d %q", status, body)
	}
	if status := p.hook("early", "ping", `{"zen":"Keep it simple."}`); status != http.StatusOK {
		t.Errorf("a webhook before GitHub answered: %d", status)
	}
	p.sim.ClearFaults()
	until(t, "readiness", func() bool { status, _ := p.get("/readyz"); return status == http.StatusOK })
	until(t, "the early webhook to be worked on", func() bool {
		pending, err := p.server.Store().PendingDeliveries(t.Context(), 10)
		check(t, err)
		return len(pending) == 0
	})
	if known, err := p.server.Store().HasDelivery(t.Context(), "early"); !known || err != nil {
		t.Errorf("the early webhook is not known: %v", err)
	}
	check(t, stop())
}

func TestForeignKeyIsReported(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	cfg := p.config("127.0.0.1:0")
	cfg.GitHub.AppID += 1000
	s, err := p.create(cfg)
	check(t, err)
	err = s.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "read the GitHub App") {
		t.Errorf("error %v", err)
	}
	check(t, s.Close())
}

// TestDeliveriesAreCounted: the metrics count webhooks.
func TestDeliveriesAreCounted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.run(p.config("127.0.0.1:0"))
	until(t, "readiness", func() bool { status, _ := p.get("/readyz"); return status == http.StatusOK })
	for range 2 {
		if status := p.hook("one", "ping", `{}`); status != http.StatusOK {
			t.Fatalf("answered %d", status)
		}
	}
	until(t, "a count", func() bool {
		status, body := p.get("/metrics")
		if status != http.StatusOK {
			t.Fatalf("/metrics answers %d", status)
		}
		return strings.Contains(body, `event="ping"`)
	})
}

// TestPagesRequireTheToken: only the webhook and the health check are public.
func TestPagesRequireTheToken(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.run(p.config("127.0.0.1:0"))
	for path, want := range map[string]int{"/healthz": 200, "/status": 401, "/metrics": 401, "/status.json": 401, "/api/github/hook": 405} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path, nil)
		check(t, err)
		if status, _ := p.send(req); status != want && !(want == 401 && status == http.StatusForbidden) {
			t.Errorf("GET %s answers %d, want %d", path, status, want)
		}
	}
}

// TestShutdownEndsEverything is not parallel, because it counts goroutines.
func TestShutdownEndsEverything(t *testing.T) {
	p := newPlace(t)
	transport := &http.Transport{}
	cfg := p.config("127.0.0.1:0")
	before := runtime.NumGoroutine()
	for range 3 {
		stop := p.run(cfg, func(o *server.Options) { o.Transport = transport })
		until(t, "readiness", func() bool { status, _ := p.get("/readyz"); return status == http.StatusOK })
		p.hook("x", "ping", `{}`)
		if err := stop(); err != nil {
			t.Fatalf("it ended with %v", err)
		}
		transport.CloseIdleConnections()
	}
	webtest.Client().CloseIdleConnections()
	left := 0
	deadline := time.Now().Add(time.Minute)
	for left = runtime.NumGoroutine(); left > before && time.Now().Before(deadline); left = runtime.NumGoroutine() {
		runtime.Gosched()
	}
	if left > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines before, %d after:\n%s", before, left, buf[:runtime.Stack(buf, true)])
	}
}
