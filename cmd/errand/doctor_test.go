package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// expected are the warnings of a clinic in which nothing is wrong: tests may run as root.
func expected(f doctor.Finding) bool { return f.Check == "host.user" }

// TestDoctor plants one fault at a time: the first finding names it, and after its advice was followed it is gone.
func TestDoctor(t *testing.T) {
	t.Parallel()
	bin := build(t)
	grant := func(c *clinic, name, level string) {
		all := maps.Clone(c.github.App().Permissions)
		if name != "" {
			all[name] = level
		}
		c.github.GrantPermissions("acme", all)
		c.hook(http.StatusOK)
	}
	for name, fault := range map[string]struct {
		plant  func(*clinic)
		check  string
		status doctor.Status
		found  string
		fix    string
		follow func(*clinic) // follows the advice; nil if it is none for a test
	}{
		"unknown key": {
			plant: func(c *clinic) { c.config["limit"] = "{}" }, check: "config", status: doctor.Failed, found: "limit: this key is unknown; did you mean limits?", fix: "Correct the lines",
			follow: func(c *clinic) { delete(c.config, "limit") },
		},
		"missing secret": {
			plant: func(c *clinic) { _ = os.Remove(c.path("hook")) }, check: "config", status: doctor.Failed, found: "github.webhook_secret", fix: "Correct the lines",
			follow: func(c *clinic) { c.write("hook", "hook-secret-for-tests", 0o600) },
		},
		"GitHub down": {
			plant: func(c *clinic) {
				c.config["github"] = strings.Replace(c.config["github"], c.github.BaseURL(), "http://127.0.0.1:1", 1)
			},
			check: "github.reachable", status: doctor.Failed, found: "could not be reached", fix: "curl -v http://127.0.0.1:1/api/v3/rate_limit",
			follow: func(c *clinic) {
				c.config["github"] = strings.Replace(c.config["github"], "http://127.0.0.1:1", c.github.BaseURL(), 1)
			},
		},
		"wrong App ID": {
			plant: func(c *clinic) {
				c.config["github"] = strings.Replace(c.config["github"], "{app_id: ", "{app_id: 9", 1)
			},
			check: "github.app", status: doctor.Failed, found: "does not accept the App's credentials", fix: "Compare the App ID",
			follow: func(c *clinic) {
				c.config["github"] = strings.Replace(c.config["github"], "{app_id: 9", "{app_id: ", 1)
			},
		},
		"another App's key": {
			plant: func(c *clinic) { c.write("app.pem", anotherKey(c.t), 0o600) },
			check: "github.app", status: doctor.Failed, found: "does not accept the App's credentials", fix: "create a new private key",
			follow: func(c *clinic) { c.write("app.pem", string(c.github.App().PEM), 0o600) },
		},
		"slow clock": {
			plant: func(c *clinic) {
				c.fault(simgithub.Fault{Path: "^/rate_limit$", Status: http.StatusOK, Body: "{}", Header: map[string]string{"Date": time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat)}})
			},
			check: "host.clock", status: doctor.Failed, found: "behind GitHub's", fix: "timedatectl set-ntp true",
			follow: func(c *clinic) { c.github.ClearFaults() },
		},
		"clock that drifts": {
			plant: func(c *clinic) {
				c.fault(simgithub.Fault{Path: "^/rate_limit$", Count: 1, Status: http.StatusOK, Body: "{}", Header: map[string]string{"Date": time.Now().Add(-40 * time.Second).UTC().Format(http.TimeFormat)}})
			},
			check: "host.clock", status: doctor.Warning, found: "ahead of GitHub's", fix: "timedatectl set-ntp true",
			follow: func(c *clinic) { c.github.ClearFaults() },
		},
		"no webhook": {
			plant: func(c *clinic) { c.github.SetWebhook("", "") }, check: "github.webhook", status: doctor.Failed, found: "has no webhook", fix: "enter " + hookURL,
			follow: func(c *clinic) { c.github.SetWebhook(hookURL, "") },
		},
		"old webhook address": {
			plant: func(c *clinic) { c.github.SetWebhook("https://old.example.org/api/github/hook", "") },
			check: "github.webhook", status: doctor.Failed, found: "to https://old.example.org/api/github/hook, not to " + hookURL, fix: "enter " + hookURL,
			follow: func(c *clinic) { c.github.SetWebhook(hookURL, "") },
		},
		"no webhook to read": {
			plant: func(c *clinic) { c.reads(""); c.github.SetWebhook("", "") }, check: "github.webhook", status: doctor.Failed, found: "none that errand could read", fix: "enter " + handlers.NoHook,
			follow: func(c *clinic) { c.github.SetWebhook(handlers.NoHook, "") },
		},
		"webhooks go to somebody else": {
			plant: func(c *clinic) { c.reads("https://relay.example.org/x") }, check: "github.webhook", status: doctor.Warning, found: "also sends them to https://relay.example.org/x", fix: "enter " + handlers.NoHook,
			follow: func(c *clinic) { c.github.SetWebhook(handlers.NoHook, "") },
		},
		"no public_url": {
			plant: func(c *clinic) { delete(c.config, "public_url") }, check: "github.webhook", status: doctor.Warning, found: "public_url is not set", fix: "Set public_url",
			follow: func(c *clinic) { c.config["public_url"] = "https://errand.example.org" },
		},
		"wrong webhook secret": {
			plant: func(c *clinic) { c.hook(http.StatusBadRequest) }, check: "github.deliveries", status: doctor.Failed, found: "status 400", fix: "Enter the secret of github.webhook_secret",
			follow: func(c *clinic) { c.hook(http.StatusOK) },
		},
		"proxy without errand": {
			plant: func(c *clinic) { c.hook(http.StatusBadGateway) }, check: "github.deliveries", status: doctor.Failed, found: "status 502", fix: "Start errand",
			follow: func(c *clinic) { c.hook(http.StatusOK) },
		},
		"proxy with a login": {
			plant: func(c *clinic) { c.hook(http.StatusUnauthorized) }, check: "github.deliveries", status: doctor.Failed, found: "status 401", fix: "without a login of its own",
			follow: func(c *clinic) { c.hook(http.StatusOK) },
		},
		"proxy with another path": {
			plant: func(c *clinic) { c.hook(http.StatusNotFound) }, check: "github.deliveries", status: doctor.Failed, found: "status 404", fix: "forward POST /api/github/hook",
			follow: func(c *clinic) { c.hook(http.StatusOK) },
		},
		"unreachable": {
			plant: func(c *clinic) { c.hook(0) },
			check: "github.deliveries", status: doctor.Failed, found: "no answer", fix: "reachable from the internet",
			follow: func(c *clinic) { c.hook(http.StatusOK) },
		},
		"not installed": {
			plant: func(c *clinic) { c.hook(http.StatusOK, func() { c.github.Uninstall("acme") }) }, check: "github.installations", status: doctor.Failed, found: "not installed on any account", fix: "/github-apps/errand/installations/new",
			follow: func(c *clinic) {
				if _, err := c.github.Install("acme/shop"); err != nil {
					c.t.Fatal(err)
				}
				c.hook(http.StatusOK)
			},
		},
		"suspended": {
			plant: func(c *clinic) { c.hook(http.StatusOK, func() { c.github.Suspend("acme", true) }) },
			check: "github.installations", status: doctor.Warning, found: "on acme is suspended", fix: "unsuspend",
			follow: func(c *clinic) { c.hook(http.StatusOK) },
		},
		"required permission": {
			plant: func(c *clinic) { grant(c, "contents", "read") },
			check: "github.installations", status: doctor.Failed, found: "contents: write (granted: read)", fix: "grant it",
			follow: func(c *clinic) { grant(c, "", "") },
		},
		"optional permission": {
			plant: func(c *clinic) { grant(c, "checks", "none") },
			check: "github.installations", status: doctor.Warning, found: "checks: read (granted: none)", fix: "grant it",
			follow: func(c *clinic) { grant(c, "", "") },
		},
		"rate limit": {
			plant: func(c *clinic) {
				c.fault(simgithub.Fault{Path: "^/rate_limit$", Actor: "app", Status: http.StatusOK, Body: `{"resources": {"core": {"limit": 5000, "remaining": 12, "reset": 1800000000}}}`})
			},
			check: "github.rate", status: doctor.Warning, found: "acme: 12 of 5000 requests are left", fix: "another user of this App",
			follow: func(c *clinic) { c.github.ClearFaults() },
		},
		"assignee nowhere": {
			plant: func(c *clinic) { c.config["trigger"] = "{assignee: stranger}" }, check: "github.assignee", status: doctor.Failed, found: "acme/shop cannot be assigned to stranger", fix: "invite stranger with the role Triage",
			follow: func(c *clinic) { c.config["trigger"] = "{assignee: worker}" },
		},
		"assignee in one repository": {
			plant: func(c *clinic) {
				if _, err := c.github.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: "web", Files: map[string]string{"README.md": "x"}}); err != nil {
					c.t.Fatal(err)
				}
				c.hook(http.StatusOK)
			},
			check: "github.assignee", status: doctor.Warning, found: "acme/web cannot be assigned to worker", fix: "acme/web/settings/access",
		},
		"model key": {
			plant: func(c *clinic) { c.write("model", "another-key-for-tests", 0o600) }, check: "models.anthropic", status: doctor.Failed, found: "refuse", fix: "models.anthropic.key",
			follow: func(c *clinic) { c.write("model", "model-key-for-tests", 0o600) },
		},
		"model provider down": {
			plant: func(c *clinic) {
				c.config["models"] = fmt.Sprintf("{anthropic: {url: 'http://127.0.0.1:1', key: 'file:%s'}}", c.path("model"))
			},
			check: "models.anthropic", status: doctor.Failed, found: "connection refused", fix: "Check models.anthropic.url",
		},
		"no isolation": {
			plant: func(c *clinic) {
				c.config["local"] = strings.Replace(c.config["local"], "allow_unsandboxed: true, ", "", 1)
			},
			check: "vms.provider", status: doctor.Failed, found: "cannot isolate agents", fix: "apt-get install bubblewrap",
			follow: func(c *clinic) {
				c.config["local"] = strings.Replace(c.config["local"], "kind: plain", "kind: plain, allow_unsandboxed: true", 1)
			},
		},
		"agent program": {
			plant: func(c *clinic) { c.config["agent"] = "{command: [no-such-agent]}" }, check: "agent.claude", status: doctor.Failed, found: "no-such-agent is not installed", fix: "Install no-such-agent",
			follow: func(c *clinic) { delete(c.config, "agent") },
		},
		"broken agent program": {
			plant: func(c *clinic) { c.write("bin/claude", "#!/bin/sh\necho no node >&2\nexit 3\n", 0o755) }, check: "agent.claude", status: doctor.Warning, found: "exit status 3: no node", fix: "install it again",
			follow: func(c *clinic) { c.write("bin/claude", "#!/bin/sh\necho 2.1.0\n", 0o755) },
		},
		"readable secret": {
			plant: func(c *clinic) { c.write("model", "model-key-for-tests", 0o644) }, check: "host.secrets", status: doctor.Warning, found: "has access to", fix: "chmod 0600",
			follow: func(c *clinic) { _, _ = c.doctor("--fix") },
		},
		"open data folder": {
			plant: func(c *clinic) { c.write("data/x", "", 0o600); _ = os.Chmod(c.path("data"), 0o755) },
			check: "host.data", status: doctor.Warning, found: "(mode 0755)", fix: "chmod 0700",
			follow: func(c *clinic) { _, _ = c.doctor("--fix") },
		},
		"data is a file": {
			plant: func(c *clinic) { c.write("data", "", 0o600) }, check: "host.data", status: doctor.Failed, found: "is not a folder", fix: "Set data to a folder",
			follow: func(c *clinic) { _ = os.Remove(c.path("data")) },
		},
		"damaged store": {
			plant: func(c *clinic) { c.write("data/errand.db", strings.Repeat("x", 64<<10), 0o600) }, check: "host.store", status: doctor.Failed, found: "damaged", fix: "restore a backup",
			follow: func(c *clinic) { _ = os.Remove(c.path("data/errand.db")) },
		},
		"store in use": {
			plant: func(c *clinic) {
				db, err := boltkv.Open(filepath.Join(c.path("data"), "errand.db"), boltkv.Options{})
				if err != nil {
					c.t.Fatal(err)
				}
				c.t.Cleanup(func() { _ = db.Close() })
			},
			check: "host.store", status: doctor.Failed, found: "does not answer", fix: "systemctl restart errand",
		},
		"another program at the address": {
			plant: func(c *clinic) {
				other := httptest.NewServer(http.NotFoundHandler())
				c.t.Cleanup(other.Close)
				c.config["listen"] = strings.TrimPrefix(other.URL, "http://")
			},
			check: "serve", status: doctor.Failed, found: "no errand runs on the data folder", fix: "set listen to another one",
			follow: func(c *clinic) { c.config["listen"] = "127.0.0.1:1" },
		},
		"Hetzner token": {
			plant: func(c *clinic) { c.hetzner("wrong") }, check: "vms.provider", status: doctor.Failed, found: "does not show its server types", fix: "Create a token with read and write permission",
			follow: func(c *clinic) { c.write("hcloud", "the-token-of-a-project", 0o600) },
		},
		"no such server type": {
			plant: func(c *clinic) {
				c.hetzner("the-token-of-a-project")
				c.config["hetzner"] = strings.TrimSuffix(c.config["hetzner"], "}") + ", candidates: [cx99/fsn1]}"
			},
			check: "vms.provider", status: doctor.Failed, found: "None of hetzner.candidates", fix: "Add other server types",
			follow: func(c *clinic) { c.config["hetzner"] = strings.Replace(c.config["hetzner"], "cx99", "cx33", 1) },
		},
		"no such image": {
			plant: func(c *clinic) {
				c.hetzner("the-token-of-a-project")
				c.config["hetzner"] = strings.TrimSuffix(c.config["hetzner"], "}") + ", image: ubuntu-99.04}"
			},
			check: "vms.image", status: doctor.Failed, found: "There is no image ubuntu-99.04", fix: "Set hetzner.image",
			follow: func(c *clinic) {
				c.config["hetzner"] = strings.Replace(c.config["hetzner"], "ubuntu-99.04", "ubuntu-24.04", 1)
			},
		},
		"runner missing": {
			plant: func(c *clinic) { c.bin = c.t.TempDir() }, check: "start", status: doctor.Failed, found: "find errand-runner", fix: "Correct this",
			follow: func(c *clinic) { c.bin = filepath.Dir(bin) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, bin)
			fault.plant(c)
			code, r := c.doctor()
			for expected(r.Findings[0]) {
				r.Findings = r.Findings[1:]
			}
			first := r.Findings[0]
			if first.Check != fault.check || first.Status != fault.status || !strings.Contains(first.Found, fault.found) || !strings.Contains(first.Fix, fault.fix) {
				t.Fatalf("got first %+v of\n%+v", first, r.Findings)
			}
			if failed := fault.status == doctor.Failed; failed != (code == cli.ExitFailed) || first.Meaning == "" {
				t.Errorf("code %d, meaning %q", code, first.Meaning)
			}
			if fault.follow == nil {
				return
			}
			fault.follow(c)
			_, r = c.doctor()
			for _, f := range r.Findings {
				if (f.Status == doctor.Failed || f.Status == doctor.Warning) && !expected(f) {
					t.Errorf("after the advice was followed: %+v", f)
				}
			}
		})
	}
}

// TestDoctorOfHealthyInstallation: without a fault there is no problem, whether errand runs or not, and nothing is changed.
func TestDoctorOfHealthyInstallation(t *testing.T) {
	t.Parallel()
	bin := build(t)
	for _, serving := range []bool{false, true} {
		t.Run(fmt.Sprintf("serving=%t", serving), func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, bin)
			if serving {
				c.serve()
			}
			code, r := c.doctor()
			if code != cli.ExitOK || r.Serving != serving {
				t.Errorf("code %d, serving %t", code, r.Serving)
			}
			checks := map[string]bool{}
			for _, f := range r.Findings {
				checks[f.Check] = true
				if f.Status != doctor.OK && f.Status != doctor.Note && f.Status != doctor.Skipped && !expected(f) {
					t.Errorf("got %+v", f)
				}
			}
			for _, want := range []string{
				"config", "host.data", "host.disk", "host.secrets", "host.store", "host.clock", "github.app", "github.webhook", "github.deliveries", "github.installations",
				"github.rate", "github.assignee", "vms.provider", "vms.count", "models.anthropic", "agent.claude",
			} {
				if !checks[want] {
					t.Errorf("%s was not checked", want)
				}
			}
			if _, err := os.Stat(c.path("data")); serving != (err == nil) {
				t.Errorf("the data folder: %v", err)
			}
			_, out, _ := callIn(t, c.bin, nil, "doctor", "-c", c.file())
			if !strings.HasPrefix(out, "errand ") || !strings.Contains(out, "\nok       github.app           errand (@errand), App ID ") {
				t.Errorf("got\n%s", out)
			}
		})
	}
}
