package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/doctor"
)

// expected are the warnings of a clinic in which nothing is wrong: tests may run as root, and its agents are harmless.
func expected(f doctor.Finding) bool {
	return f.Check == "host.user" || f.Found == "Agents run without isolation."
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

// TestDoctorWithoutTemporaryFolder: a folder for temporary files that is missing, or that this user cannot write to, is a finding and no end of the report.
func TestDoctorWithoutTemporaryFolder(t *testing.T) {
	c := newClinic(t, build(t))
	c.behindProxy()
	t.Setenv("TMPDIR", c.path("missing"))
	_, r := c.doctor()
	list := c.problems(r)
	if len(list) == 0 || list[0].Check != "start" || list[0].Status != doctor.Failed || !strings.Contains(list[0].Found, "make a temporary folder") {
		t.Fatalf("got %+v", list)
	}
	c.follow(list[0])
	if _, r = c.doctor(); len(c.problems(r)) > 0 {
		t.Errorf("after the advice was followed: %+v", c.problems(r))
	}
}

// TestDoctorOfUntrustedCertificate: doctor names the certificate as the cause if this host does not trust GitHub's.
func TestDoctorOfUntrustedCertificate(t *testing.T) {
	t.Parallel()
	c := newClinic(t, build(t))
	github := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(github.Close)
	github.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.config["github"] = strings.Replace(c.config["github"], c.github.BaseURL(), github.URL, 1)
	_, r := c.doctor()
	if list := c.problems(r); len(list) == 0 || !strings.Contains(list[0].Found, "This host does not trust GitHub's certificate") || !strings.Contains(list[0].Fix, "update-ca-certificates") {
		t.Errorf("got %+v", list)
	}
}

// TestDoctorAdaptsCommands: the commands of an advice can be copied as they are.
func TestDoctorAdaptsCommands(t *testing.T) {
	t.Parallel()
	const advice = "`systemctl restart errand`, `errand resume acme/shop`, `cd /b && errand backup`, `sudo -u '#7' errand doctor`, `journalctl -u errand | grep backup`, `sudo -u errand errand doctor -c x`"
	here, err := filepath.Abs(cli.DefaultConfig)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := strings.Replace(advice, "errand backup`", "errand backup -c "+here+"`", 1)
	for name, row := range map[string]struct{ path, container, want string }{
		"the default file": {cli.DefaultConfig, "", elsewhere},
		"another file": {"/etc/my errand.yml", "", "`systemctl restart errand`, `errand resume -c '/etc/my errand.yml' acme/shop`, `cd /b && errand backup -c '/etc/my errand.yml'`, " +
			"`sudo -u '#7' errand doctor -c '/etc/my errand.yml'`, `journalctl -u errand | grep backup`, `sudo -u errand errand doctor -c x`"},
		"a container": {cli.DefaultConfig, "docker", strings.Replace(elsewhere, "systemctl", "docker compose", 1)},
	} {
		r := doctor.Report{Findings: []doctor.Finding{{Fix: advice}}}
		examination{path: row.path}.adapt(cli.World{Lookup: func(string) (string, bool) { return row.container, row.container != "" }}, &r)
		if got := r.Findings[0].Fix; got != row.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
