package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// A planted fault is something wrong in an installation in which nothing else is.
type planted struct {
	name    string
	running bool // errand runs when the fault is planted
	plant   func(*clinic)
	// first are the problems that doctor names first, one after the other: each time the advice was followed, the next. After the last one, nothing is wrong.
	first []problem
}

type problem struct {
	check  string
	status doctor.Status
	found  string
}

// TestDoctor plants faults in a deployment. Each time, the line that a person reads first names the fault, and no consequence of it; and following the
// advice in its own words, as person does, makes the installation healthy.
func TestDoctor(t *testing.T) {
	t.Parallel()
	bin := build(t)
	for _, fault := range slices.Concat(configFaults(), githubFaults(), teamFaults(), webhookFaults(), hostFaults(), vmFaults(), pairsOfFaults()) {
		t.Run(strings.ReplaceAll(fault.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, bin)
			c.behindProxy()
			if fault.running {
				c.serve()
			}
			fault.plant(c)
			for _, want := range fault.first {
				code, r := c.doctor()
				list := c.problems(r)
				if len(list) == 0 {
					t.Fatalf("found nothing, want %+v", want)
				}
				first := list[0]
				if first.Check != want.check || first.Status != want.status || !strings.Contains(first.Found, want.found) {
					t.Fatalf("got first\n%+v, want\n%+v, of\n%+v", first, want, list)
				}
				if failed := want.status == doctor.Failed; failed != (code == cli.ExitFailed) || first.Meaning == "" || first.Fix == "" {
					t.Errorf("code %d, finding %+v", code, first)
				}
				c.follow(first)
				if first.Chmod != nil {
					c.plantModeAgain(fault, first)
				}
			}
			if _, r := c.doctor(); len(c.problems(r)) > 0 {
				t.Errorf("after the advice was followed: %+v", c.problems(r))
			}
		})
	}
}

// plantModeAgain tries the other half of the advice about a mode: --fix.
func (c *clinic) plantModeAgain(fault planted, f doctor.Finding) {
	c.t.Helper()
	fault.plant(c)
	_, r := c.doctor("--fix")
	for _, other := range c.problems(r) {
		if other.Check == f.Check {
			c.t.Errorf("after --fix: %+v", other)
		}
	}
}

// problems returns the problems of a report, apart from those that a deployment of a test has: tests may run as root, and errand need not run.
func (c *clinic) problems(r doctor.Report) []doctor.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f doctor.Finding) bool {
		return f.Status != doctor.Failed && f.Status != doctor.Warning || expected(f) || f.Found == "errand does not run." && !c.mustRun
	})
}

func configFaults() []planted {
	return []planted{
		{"an unknown key", false, func(c *clinic) { c.config["limit"] = "{}" }, []problem{{"config", doctor.Failed, "limit: this key is unknown; did you mean limits?"}}},
		{"a missing secret", false, func(c *clinic) { _ = os.Remove(c.path("hook")) }, []problem{{"config", doctor.Failed, "github.webhook_secret: open"}}},
		{"a section that is not used", false, func(c *clinic) {
			c.hetzner("the-token-of-a-project")
			c.config["provider"] = "local"
			c.bin = c.programs
		},
			[]problem{{"config", doctor.Warning, "hetzner: the section is not used"}}},
		{"a changed secret", true, func(c *clinic) { c.write("model", "model-key-for-tests", 0o600) }, []problem{{"config", doctor.Warning, "Changed since errand started: "}}},
		{"another admin token", true, func(c *clinic) { c.write("admin", "new-admin-token-for-tests", 0o600) }, []problem{{"serve", doctor.Failed, "the token is wrong"}}},
		{"the address of another host", false, func(c *clinic) { c.config["listen"] = "192.0.2.1:8080" }, []problem{{"serve", doctor.Failed, "errand cannot listen at 192.0.2.1:8080"}}},
		{"another program at the address", false, func(c *clinic) {
			other := httptest.NewServer(http.NotFoundHandler())
			c.t.Cleanup(other.Close)
			c.config["listen"] = strings.TrimPrefix(other.URL, "http://")
		}, []problem{{"serve", doctor.Failed, "no errand runs on the data folder"}}},
		{"the service was stopped", true, func(c *clinic) { c.stop(); c.mustRun = true }, []problem{{"serve", doctor.Warning, "errand does not run."}}},
		{"errand hangs", true, func(c *clinic) {
			c.stop()
			db, err := boltkv.Open(filepath.Join(c.path("data"), "errand.db"), boltkv.Options{})
			if err != nil {
				c.t.Fatal(err)
			}
			c.held = db
		}, []problem{{"host.store", doctor.Failed, "does not answer"}}},
		{"a forgotten pause", true, func(c *clinic) { c.shell("errand pause -c " + c.file() + " --reason moving") }, []problem{{"pause", doctor.Warning, "moving"}}},
		{"the runner is missing", false, func(c *clinic) { c.bin = c.t.TempDir() }, []problem{{"start", doctor.Failed, "find errand-runner"}}},
	}
}

func githubFaults() []planted {
	lose := func(c *clinic, name, level string) {
		all := c.github.App().Permissions
		all[name] = level
		c.webhook(http.StatusOK, func() { c.github.GrantPermissions("acme", all) })
	}
	return []planted{
		{"GitHub is down", false, func(c *clinic) {
			c.config["github"] = strings.Replace(c.config["github"], c.github.BaseURL(), "http://127.0.0.1:1", 1)
		},
			[]problem{{"github.reachable", doctor.Failed, "could not be reached"}}},
		{"a wrong App ID", false, func(c *clinic) {
			c.config["github"] = strings.Replace(c.config["github"], "{app_id: ", "{app_id: 9", 1)
		},
			[]problem{{"github.app", doctor.Failed, "does not accept the App's credentials"}}},
		{"another App's key", false, func(c *clinic) { c.write("app.pem", anotherKey(c.t), 0o600) },
			[]problem{{"github.app", doctor.Failed, "does not accept the App's credentials"}}},
		{"a wrong clock", true, (*clinic).wrongClock, []problem{{"host.clock", doctor.Failed, "behind GitHub's"}}},
		{"a clock that drifts", false, func(c *clinic) { c.clock(-40 * time.Second) }, []problem{{"host.clock", doctor.Warning, "ahead of GitHub's"}}},
		{"not installed", true, func(c *clinic) { c.github.Uninstall("acme") }, []problem{{"github.installations", doctor.Failed, "not installed on any account"}}},
		{"a suspended installation", true, func(c *clinic) { c.github.Suspend("acme", true) }, []problem{{"github.installations", doctor.Warning, "on acme is suspended"}}},
		{"a required permission was not accepted", true, func(c *clinic) { lose(c, "contents", "read") }, []problem{{"github.installations", doctor.Failed, "contents: write (granted: read)"}}},
		{"an optional permission was not accepted", true, func(c *clinic) { lose(c, "checks", "none") }, []problem{{"github.installations", doctor.Warning, "checks: read (granted: none)"}}},
		{"an event is not sent", false, func(c *clinic) {
			c.github.ChangeApp(c.original.Permissions, slices.DeleteFunc(slices.Clone(c.original.Events), func(e string) bool { return e == "issue_comment" }))
		}, []problem{{"github.permissions", doctor.Warning, "Webhook events are missing in the App's settings: issue_comment."}}},
		{"the rate limit is nearly used up", false, func(c *clinic) {
			c.fault(simgithub.Fault{Path: "^/rate_limit$", Actor: "app", Status: http.StatusOK, Body: `{"resources": {"core": {"limit": 5000, "remaining": 12, "reset": 1800000000}}}`})
		}, []problem{{"github.rate", doctor.Warning, "acme: 12 of 5000 requests are left"}}},
		{"the machine user was not invited", false, func(c *clinic) {
			c.webhook(http.StatusOK, func() {
				if _, err := c.github.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: "web", Files: map[string]string{"README.md": "x"}}); err != nil {
					c.t.Fatal(err)
				}
			})
		}, []problem{{"github.assignee", doctor.Warning, "acme/web cannot be assigned to worker"}}},
	}
}

// wrongClock makes this host's clock ten minutes slow, as GitHub's answers tell.
func (c *clinic) wrongClock() { c.clock(10 * time.Minute) }

// clock makes GitHub's clock differ from this host's.
func (c *clinic) clock(by time.Duration) {
	c.t.Helper()
	c.fault(simgithub.Fault{Path: "^/rate_limit$", Status: http.StatusOK, Body: "{}", Header: map[string]string{"Date": time.Now().Add(by).UTC().Format(http.TimeFormat)}})
}

func webhookFaults() []planted {
	answered := func(status int32, found string) planted {
		return planted{"webhooks: " + found, true, func(c *clinic) {
			c.broken.Store(status)
			c.webhook(status)
		}, []problem{{"github.deliveries", doctor.Failed, found}}}
	}
	return []planted{
		{"no webhook", true, func(c *clinic) { c.github.SetWebhook("", "") }, []problem{{"github.webhook", doctor.Failed, "has no webhook"}}},
		{"an old webhook address", false, func(c *clinic) { c.github.SetWebhook("https://old.example.org/api/github/hook", "") },
			[]problem{{"github.webhook", doctor.Failed, "to https://old.example.org/api/github/hook, not to http://127.0.0.1:"}}},
		{"no webhook to read", false, func(c *clinic) { c.reads("") }, []problem{{"github.webhook", doctor.Failed, "none that errand could read"}}},
		{"webhooks go to somebody else", false, func(c *clinic) { c.reads("https://relay.example.org/x") }, []problem{{"github.webhook", doctor.Warning, "also sends them to https://relay.example.org/x"}}},
		{"no public_url", false, func(c *clinic) { delete(c.config, "public_url") }, []problem{{"github.webhook", doctor.Warning, "public_url is not set"}}},
		{"another webhook secret", true, func(c *clinic) {
			c.github.SetWebhook(c.proxy+handlers.HookPath, "another-hook-secret")
			c.webhook(0)
		}, []problem{{"github.deliveries", doctor.Failed, "status 400"}}},
		answered(http.StatusUnauthorized, "status 401"),
		answered(http.StatusNotFound, "status 404"),
		answered(http.StatusRequestEntityTooLarge, "status 413"),
		answered(http.StatusBadGateway, "status 502"),
		answered(noAnswer, "no answer"),
	}
}

func hostFaults() []planted {
	return []planted{
		{"a secret that everybody can read", false, func(c *clinic) { c.write("model", "model-key-for-tests", 0o644) }, []problem{{"host.secrets", doctor.Warning, "has access to"}}},
		{"an open data folder", true, func(c *clinic) { c.mode("data", 0o755) }, []problem{{"host.data", doctor.Warning, "(mode 0755)"}}},
		{"an open data folder with an odd name", false, func(c *clinic) {
			c.config["data"] = `"` + c.path("errand's data $(id)") + `"`
			c.write("errand's data $(id)/x", "", 0o600)
			c.mode("errand's data $(id)", 0o755)
		}, []problem{{"host.data", doctor.Warning, "(mode 0755)"}}},
		{"a secret without rights", false, func(c *clinic) {
			c.notRoot()
			c.mode("hook", 0)
		}, []problem{{"config", doctor.Failed, "hook: permission denied; if errand runs as this user"}}},
		{"a store without rights", true, func(c *clinic) {
			c.notRoot()
			c.stop()
			c.mode("data/errand.db", 0)
		}, []problem{{"host.data", doctor.Failed, "errand.db (mode 0000)"}}},
		{"a data folder without rights", false, func(c *clinic) {
			c.notRoot()
			c.write("data/x", "", 0o600)
			c.mode("data", 0o500)
		}, []problem{{"host.data", doctor.Failed, "errand's user cannot read and write"}}},
		{"a store of root's", true, func(c *clinic) {
			c.stop()
			c.giveToNobody("data")
			c.chown("data/errand.db", 0)
		}, []problem{{"host.data", doctor.Failed, "belongs to another user (0)"}}},
		{"data is a file", false, func(c *clinic) { c.write("data", "", 0o600) }, []problem{{"host.data", doctor.Failed, "is not a folder"}}},
		{"a full disk", false, (*clinic).fullDisk, []problem{{"host.disk", doctor.Failed, "are free for"}}},
		{"a damaged store", true, func(c *clinic) {
			if err := os.Mkdir(c.path("backups"), 0o700); err != nil {
				c.t.Fatal(err)
			}
			c.shell("cd backups && errand backup -c " + c.file())
			c.stop()
			c.write("data/errand.db", strings.Repeat("x", 64<<10), 0o600)
		}, []problem{{"host.store", doctor.Failed, "damaged"}}},
		{"no folder for backups", true, func(c *clinic) { c.backups() },
			[]problem{{"backup", doctor.Failed, "does not exist; create it"}, {"backup", doctor.Warning, "The last backup failed: "}}},
		{"backups are open to everybody", true, func(c *clinic) {
			c.write("backups/x", "", 0o600)
			c.mode("backups", 0o755)
			c.backups()
		}, []problem{{"backup", doctor.Failed, "can be used by other users"}, {"backup", doctor.Warning, "The last backup failed: "}}},
	}
}

func vmFaults() []planted {
	cloud := func(old, with string) func(*clinic) {
		return func(c *clinic) {
			c.hetzner("the-token-of-a-project")
			c.config["hetzner"] = strings.Replace(c.config["hetzner"], old, with, 1)
		}
	}
	return []planted{
		{"no isolation", false, func(c *clinic) {
			if err := exec.CommandContext(c.t.Context(), "bwrap", "--unshare-all", "--ro-bind", "/", "/", "true").Run(); err != nil {
				c.t.Skipf("no sandbox isolates here: %v", err)
			}
			c.config["local"] = strings.Replace(c.config["local"], "allow_unsandboxed: true, ", fmt.Sprintf("binds: [{path: '%s'}], ", c.path("bin")), 1)
		}, []problem{{"vms.provider", doctor.Failed, "local.kind is plain"}}},
		{"no agent program", false, func(c *clinic) { c.config["agent"] = "{command: [no-such-agent]}" }, []problem{{"agent.claude", doctor.Failed, "no-such-agent is not installed"}}},
		{"a broken agent program", true, func(c *clinic) { c.write("bin/claude", "#!/bin/sh\necho no node >&2\nexit 3\n", 0o755) },
			[]problem{{"agent.claude", doctor.Warning, "exit status 3: no node"}}},
		{"a revoked model key", true, func(c *clinic) {
			other := "what-the-provider-accepts"
			c.modelKey.Store(&other)
		}, []problem{{"models.anthropic", doctor.Failed, "refuse"}}},
		{"the provider of models is down", false, func(c *clinic) {
			c.config["models"] = strings.Replace(c.config["models"], c.models, "http://127.0.0.1:1", 1)
		},
			[]problem{{"models.anthropic", doctor.Failed, "connection refused"}}},
		{"a refused Hetzner token", false, func(c *clinic) { c.hetzner("wrong") }, []problem{{"vms.token", doctor.Failed, "Hetzner refuses hetzner.token."}}},
		{"a Hetzner token that may only read", false, func(c *clinic) { c.hetzner("a-token-that-reads") }, []problem{{"vms.token", doctor.Failed, "hetzner.token may only read."}}},
		{"Hetzner is down", false, func(c *clinic) {
			c.hetzner("the-token-of-a-project")
			c.config["hetzner"] = strings.Replace(c.config["hetzner"], c.endpoint, "http://127.0.0.1:1", 1)
		},
			[]problem{{"vms.token", doctor.Failed, "connection refused"}}},
		{"no such server type", false, cloud("setup:", "candidates: [cx99/fsn1], setup:"), []problem{{"vms.provider", doctor.Failed, "None of hetzner.candidates"}}},
		{"no such image", false, cloud("setup:", "image: ubuntu-99.04, setup:"), []problem{{"vms.image", doctor.Failed, "There is no image ubuntu-99.04"}}},
	}
}

// pairsOfFaults are two at a time: the cause comes before the consequence, and what stops everything before a detail.
func pairsOfFaults() []planted {
	return []planted{
		{"errand is stopped and webhooks fail", true, func(c *clinic) { c.stop(); c.mustRun = true; c.webhook(0) },
			[]problem{{"github.deliveries", doctor.Failed, "errand does not run. GitHub could not deliver"}}},
		{"a wrong clock and another App's key", false, func(c *clinic) {
			c.wrongClock()
			c.write("app.pem", anotherKey(c.t), 0o600)
		}, []problem{{"host.clock", doctor.Failed, "behind"}, {"github.app", doctor.Failed, "does not accept"}}},
		{"an old webhook address, at which nothing answers", true, func(c *clinic) {
			c.webhook(http.StatusNotFound, func() { c.github.SetWebhook(c.proxy+"/old", ""); c.github.Suspend("acme", false) })
		}, []problem{{"github.webhook", doctor.Failed, "/old, not to "}, {"github.deliveries", doctor.Failed, "status 404"}}},
		{"a permission is missing in the App and the installation", true, func(c *clinic) {
			less := c.github.App().Permissions
			delete(less, "contents")
			c.github.ChangeApp(less, c.original.Events)
			c.webhook(http.StatusOK, func() { c.github.GrantPermissions("acme", less) })
		}, []problem{{"github.permissions", doctor.Failed, "in the App's settings: contents"}, {"github.installations", doctor.Failed, "on acme: contents"}}},
		{"a revoked model key that everybody can read", false, func(c *clinic) { c.write("model", "another-key", 0o644) },
			[]problem{{"models.anthropic", doctor.Failed, "refuse"}}},
		{"a new model key, and no restart", true, func(c *clinic) {
			key := "the-new-model-key"
			c.modelKey.Store(&key)
			c.write("model", key, 0o600)
		}, []problem{{"config", doctor.Failed, "Changed since errand started: "}}},
		{"no network", false, func(c *clinic) {
			for _, key := range []string{"github", "models"} {
				c.config[key] = strings.NewReplacer(c.github.BaseURL(), "http://127.0.0.1:1", c.models, "http://127.0.0.1:1").Replace(c.config[key])
			}
		}, []problem{{"github.reachable", doctor.Failed, "could not be reached"}, {"models.anthropic", doctor.Failed, "connection refused"}}},
		{"a forgotten pause, and a permission", true, func(c *clinic) {
			c.shell("errand pause -c " + c.file())
			less := c.github.App().Permissions
			less["contents"] = "read"
			c.github.GrantPermissions("acme", less)
		}, []problem{{"github.installations", doctor.Failed, "contents: write"}, {"pause", doctor.Warning, "errand is paused"}}},
	}
}

// backups has errand make backups into a folder in which it cannot, and waits until it has tried.
func (c *clinic) backups() {
	c.t.Helper()
	c.config["backup"] = fmt.Sprintf("{folder: '%s'}", c.path("backups"))
	c.serve()
	if c.log.Await(c.t.Context(), regexp.MustCompile("(failed to make a scheduled backup)")) == "" {
		c.t.Fatal("errand tried to make no backup")
	}
}

// mode changes the mode of a file or folder.
func (c *clinic) mode(name string, mode os.FileMode) {
	c.t.Helper()
	if err := os.Chmod(c.path(name), mode); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = os.Chmod(c.path(name), 0o700) }) // so that it can be deleted
}

// notRoot skips a test of what does not stop root.
func (c *clinic) notRoot() {
	if os.Geteuid() == 0 {
		c.t.Skip("root has all rights")
	}
}

// giveToNobody makes the system's account "nobody" the owner of a folder.
func (c *clinic) giveToNobody(name string) {
	c.t.Helper()
	if os.Geteuid() != 0 {
		c.t.Skip("only root can give files away")
	}
	if err := filepath.WalkDir(c.path(name), func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, 65534, -1)
		}
		return err
	}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clinic) chown(name string, uid int) {
	c.t.Helper()
	if err := os.Lchown(c.path(name), uid, -1); err != nil {
		c.t.Fatal(err)
	}
}

// fullDisk puts the data folder on a file system without space.
func (c *clinic) fullDisk() {
	c.t.Helper()
	disk := c.path("disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		c.t.Fatal(err)
	}
	if out, err := exec.CommandContext(c.t.Context(), "mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "none", disk).CombinedOutput(); err != nil {
		c.t.Skipf("no file system can be mounted here: %v: %s", err, out)
	}
	c.t.Cleanup(func() {
		if out, err := exec.Command("umount", disk).CombinedOutput(); err != nil {
			c.t.Errorf("%v: %s", err, out)
		}
	})
	c.config["data"] = filepath.Join(disk, "data")
}
