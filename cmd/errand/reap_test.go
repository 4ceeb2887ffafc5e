package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/cli/clitest"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// account is a simulated Hetzner Cloud account and the configuration of an errand that uses it.
type account struct {
	t      *testing.T
	sim    *simhetzner.Sim
	young  atomic.Bool // whether its clock is right; before, it is an hour slow
	url    string
	config string
	data   string
	bin    string
	env    map[string]string
}

// newAccount starts an account whose clock is an hour slow at first, so that resources created then are old.
func newAccount(t *testing.T, more string) *account {
	t.Helper()
	a := &account{t: t, data: filepath.Join(t.TempDir(), "data"), bin: t.TempDir(), env: clitest.Secrets(t)}
	now := func() time.Time {
		if a.young.Load() {
			return time.Now()
		}
		return time.Now().Add(-time.Hour)
	}
	a.sim = simhetzner.New(simhetzner.Config{Now: now, Token: "the-token-of-a-project", Took: simhetzner.Scaled(1000)})
	t.Cleanup(a.sim.Close)
	url, err := a.sim.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.url, a.config = url, filepath.Join(t.TempDir(), "config.yml")
	a.env["HCLOUD_TOKEN"] = "the-token-of-a-project"
	text := fmt.Sprintf(`data: %s
deployment: mine
github: {app_id: 123456, private_key: env:ERRAND_PRIVATE_KEY, webhook_secret: env:ERRAND_WEBHOOK_SECRET}
admin: {token: env:ERRAND_ADMIN_TOKEN}
models: {anthropic: {url: 'https://api.anthropic.com', key: env:ANTHROPIC_API_KEY}}
provider: hetzner
hetzner: {token: env:HCLOUD_TOKEN, endpoint: %s}
%s`, a.data, url, more)
	for path, text := range map[string]string{a.config: text, filepath.Join(a.bin, "errand-runner-linux-amd64"): "never run here"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// post creates a resource in the simulator.
func (a *account) post(path, body string) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer the-token-of-a-project")
	req.Header.Set("Content-Type", "application/json")
	resp, err := webtest.Client().Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		a.t.Fatalf("POST %s: %s", path, resp.Status)
	}
}

// servers returns the names of the billed servers that still exist.
func (a *account) servers() (names []string) {
	for _, l := range a.sim.Bill().Lines {
		if l.Kind == "server" && l.To.IsZero() {
			names = append(names, l.Name)
		}
	}
	return names
}

func (a *account) reap(args ...string) (code int, out, err string) {
	return a.call(append([]string{"reap"}, args...)...)
}

func (a *account) call(args ...string) (code int, out, err string) {
	a.t.Helper()
	return callIn(a.t, a.bin, a.env, append(args, "-c", a.config)...)
}

// TestReapAfterLoss: after the store was lost, the labels are sufficient to find and delete everything. Resources
// without this deployment's label are listed and kept.
func TestReapAfterLoss(t *testing.T) {
	t.Parallel()
	a := newAccount(t, "")
	for _, name := range []string{"errand-mine-7-1-0a1b2c3d-g1", "errand-mine-7-2-0a1b2c3d-g1"} {
		a.post("/servers", fmt.Sprintf(`{"name":%q,"server_type":"cx43","location":"fsn1","image":"debian-13","labels":{"errand-deployment":"mine","errand-owner":"7-1","errand-generation":"1"}}`, name))
	}
	a.post("/servers", `{"name":"the-database","server_type":"cx23","location":"fsn1","image":"debian-13"}`)
	a.young.Store(true)

	code, out, err := a.reap("--dry-run")
	if code != 0 || strings.Contains(out, "would delete") || !strings.Contains(out, "check  ") || !strings.Contains(out, "errand reap --all") {
		t.Errorf("without --all: %d\n%s%s", code, out, err)
	}
	code, out, err = a.reap("--dry-run", "--all")
	if code != 0 || strings.Count(out, "would delete") != 2 || !strings.Contains(out, "the-database") || len(a.servers()) != 3 {
		t.Errorf("what would go: %d\n%s%s", code, out, err)
	}
	code, out, err = a.reap("--all")
	if code != 0 || !strings.Contains(out, "2 of 2 deleted.") || strings.Join(a.servers(), " ") != "the-database" {
		t.Errorf("what went: %d, left %v\n%s%s", code, a.servers(), out, err)
	}
	if code, out, err = a.reap("--all"); code != 0 || strings.Contains(out, "delete ") || !strings.Contains(out, "the-database") {
		t.Errorf("once more: %d\n%s%s", code, out, err)
	}
	if strings.Contains(out+err, "the-token-of-a-project") {
		t.Error("the token is printed")
	}
}

// TestReapNamesYoungOrphans: a dry run lists resources that are too young to be deleted, and when they will be.
func TestReapNamesYoungOrphans(t *testing.T) {
	t.Parallel()
	a := newAccount(t, "")
	a.young.Store(true)
	a.post("/servers", `{"name":"errand-mine-7-1-0a1b2c3d-g1","server_type":"cx43","location":"fsn1","image":"debian-13",
		"labels":{"errand-deployment":"mine","errand-owner":"7-1","errand-generation":"1"}}`)
	a.post("/volumes", `{"name":"scratch","size":10,"location":"fsn1","labels":{"errand-deployment":"mine"}}`)
	for _, args := range [][]string{{"--all", "--dry-run"}, {"--all"}} {
		code, out, err := a.reap(args...)
		if code != 0 || strings.Count(out, "too young") != 2 || strings.Count(out, "; will be deleted after 20") != 2 || strings.Contains(out, "No orphaned resources") {
			t.Errorf("%v: %d\n%s%s", args, code, out, err)
		}
	}
	if code, out, err := a.reap("--dry-run"); code != 0 || strings.Count(out, "too young") != 1 { // the store has no VMs yet
		t.Errorf("without --all: %d\n%s%s", code, out, err)
	}
	if len(a.servers()) != 1 {
		t.Errorf("servers are %v", a.servers())
	}
}

// TestReapGoesOnWithoutAList: resources that could be listed are deleted, and the command fails because of the others.
func TestReapGoesOnWithoutAList(t *testing.T) {
	t.Parallel()
	a := newAccount(t, "")
	a.post("/servers", `{"name":"errand-mine-7-1-0a1b2c3d-g1","server_type":"cx43","location":"fsn1","image":"debian-13",
		"labels":{"errand-deployment":"mine","errand-owner":"7-1","errand-generation":"1"}}`)
	a.post("/volumes", `{"name":"scratch","size":10,"location":"fsn1","labels":{"errand-deployment":"mine"}}`)
	a.young.Store(true)
	if err := a.sim.Fault(simhetzner.Fault{Method: http.MethodGet, Path: "^/volumes$", Code: "forbidden"}); err != nil {
		t.Fatal(err)
	}
	code, out, err := a.reap("--all", "--dry-run")
	if code != 1 || strings.Count(out, "would delete") != 1 || !strings.Contains(out, "check  ") || !strings.Contains(err, "volume") {
		t.Errorf("what would go: %d\n%s%s", code, out, err)
	}
	code, out, err = a.reap("--all")
	if code != 1 || !strings.Contains(out, "1 of 1 deleted.") || !strings.Contains(err, "volume") || len(a.servers()) != 0 {
		t.Errorf("what went: %d, left %v\n%s%s", code, a.servers(), out, err)
	}
	a.sim.ClearFaults()
	if code, out, err = a.reap("--all"); code != 0 || !strings.Contains(out, "1 of 1 deleted.") {
		t.Errorf("the volume: %d\n%s%s", code, out, err)
	}
}

// TestToolsRefuse: the error states the reason.
func TestToolsRefuse(t *testing.T) {
	t.Parallel()
	a := newAccount(t, "bake: {web: {repos: [acme/shop]}}\n")
	plain := newAccount(t, "")
	serving := newAccount(t, "bake: {web: {repos: [acme/shop]}}\n")
	db, err := boltkv.Open(filepath.Join(serving.data, "errand.db"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tests := map[string]struct {
		a    *account
		args []string
		code int
		want string
	}{
		"reap while serving": {serving, []string{"reap"}, 1, "errand serve is running on this data folder"},
		"reap what":          {a, []string{"reap", "vms"}, 2, "takes no arguments"},
		"bake what":          {a, []string{"bake"}, 2, "name the groups to bake: web"},
		"bake the unknown":   {a, []string{"bake", "app"}, 1, "no such group under `bake`; configured groups: web"},
		"bake nothing":       {plain, []string{"bake", "web"}, 1, "no groups are configured"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, err := tt.a.call(tt.args...)
			if code != tt.code || !strings.Contains(err, tt.want) {
				t.Errorf("%d, want %d and %q:\n%s%s", code, tt.code, tt.want, out, err)
			}
		})
	}
}
