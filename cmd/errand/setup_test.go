package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/forge/manifest"
	"github.com/errand-bot/errand/internal/setup"
)

func TestPrintManifest(t *testing.T) {
	t.Parallel()
	server := func(version string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"installed_version": %q}`, version)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	for github, c := range map[string]struct{ errs, events string }{
		"https://github.com": {"", `"sub_issues","issue_dependencies"`},
		server("3.18.2"):     {"GitHub Enterprise Server 3.18.2 does not know sub_issues and issue_dependencies: ", `"workflow_run","repository"`},
		server("3.20.0"):     {"GitHub Enterprise Server 3.20.0 does not know sub_issues: ", `"workflow_run","issue_dependencies","repository"`},
		"http://127.0.0.1:1": {"connection refused\nThe version of this GitHub Enterprise Server is not known", `"workflow_run","repository"`},
	} {
		code, out, errs := call(t, nil, "setup", "--print-manifest", "--name", "errand of acme", "--public-url", "https://errand.example.org/", "--github", github, "--redirect", "http://127.0.0.1:9/created")
		var m manifest.Manifest
		if err := json.Unmarshal([]byte(out), &m); err != nil || code != 0 || !strings.Contains(errs, c.errs) || c.errs == "" && errs != "" {
			t.Fatalf("%s: code %d, errors %q: %v\n%s", github, code, errs, err, out)
		}
		if m.Name != "errand of acme" || m.Hook.URL != "https://errand.example.org/api/github/hook" || !m.Hook.Active || m.Public || m.RedirectURL != "http://127.0.0.1:9/created" ||
			m.Permissions["contents"] != "write" {
			t.Errorf("%s: the manifest is %+v", github, m)
		}
		if events, err := json.Marshal(m.Events); err != nil || !strings.Contains(string(events), c.events) {
			t.Errorf("%s: the events are %s, want %s in them (%v)", github, events, c.events, err)
		}
	}
	if code, out, errs := call(t, nil, "setup", "--print-manifest", "--public-url", "https://errand.example.org", "--github", server("")); code != 1 || out != "" || !strings.Contains(errs, "--github: this is not the API") {
		t.Errorf("another server: code %d, output %q, errors %q", code, out, errs)
	}
	for name, c := range map[string]struct {
		args []string
		err  string
	}{
		"no address":    {nil, "needs --public-url"},
		"with a path":   {[]string{"--public-url", "https://example.org/x"}, "--public-url: "},
		"long name":     {[]string{"--public-url", "https://example.org", "--name", strings.Repeat("x", 35)}, "--name: "},
		"no GitHub":     {[]string{"--public-url", "https://example.org", "--github", "ghes"}, "--github: "},
		"no redirect":   {[]string{"--public-url", "https://example.org", "--redirect", "/created"}, "--redirect: "},
		"two arguments": {[]string{"one"}, "takes no arguments"},
	} {
		code, out, errs := call(t, nil, append([]string{"setup", "--print-manifest"}, c.args...)...)
		if code != 2 || out != "" || !strings.Contains(errs, c.err) {
			t.Errorf("%s: code %d, output %q, errors %q", name, code, out, errs)
		}
	}
}

// TestSetupOfAnExistingApp sets up errand for the App of a clinic, as somebody without a browser does. check-config and doctor find
// nothing wrong afterwards.
func TestSetupOfAnExistingApp(t *testing.T) {
	t.Parallel()
	c := newClinic(t, build(t))
	dir := c.path("made")
	models := c.config["models"]
	_, models, _ = strings.Cut(models, "url: '")
	models, _, _ = strings.Cut(models, "'")
	var answers strings.Builder
	for key, value := range map[string]string{
		"github": c.github.BaseURL(), "public_url": "http://localhost:1", "listen": "127.0.0.1:1", "assignee": "worker", "model_url": models,
		"model_key": "file:" + c.path("model"), "app": "existing", "app_id": strconv.FormatInt(c.github.App().ID, 10), "private_key": "file:" + c.path("app.pem"),
		"webhook_secret": "env:HOOK",
	} {
		answers.WriteString(key + ": '" + value + "'\n")
	}
	c.write("answers.yml", answers.String(), 0o600)
	c.github.SetWebhook("http://localhost:1/api/github/hook", "")
	env := map[string]string{"HOOK": "hook-secret-for-tests"}
	args := []string{"setup", "--dir", dir, "--answers", c.path("answers.yml")}
	code, out, errs := callIn(t, c.bin, env, append(args, "--skip", "checks")...)
	if code != 0 || errs != "" {
		t.Fatalf("code %d, errors %q\n%s", code, errs, out)
	}
	file := filepath.Join(dir, "config.yml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "local: "+c.config["local"]+"\n"...) // there is no real agent here
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := call(t, nil, "check-config", "-c", file); code != 0 || !strings.HasPrefix(out, "ok: ") {
		t.Errorf("check-config: code %d, errors %q\n%s", code, errs, out)
	}
	code, out, errs = callIn(t, c.bin, env, args...) // with the checks of doctor
	if code != 0 || !strings.Contains(out, "checked without a running errand: 0 failed") {
		t.Errorf("code %d, errors %q\n%s", code, errs, out)
	}
	var report bytes.Buffer
	if code := run(context.Background(), cli.World{Args: []string{"doctor", "--json", "-c", file}, BinDir: c.bin, Out: &report, Err: &report, Lookup: os.LookupEnv}); code != 0 {
		t.Errorf("doctor: code %d", code)
	}
	var r doctor.Report
	if err := json.Unmarshal(report.Bytes(), &r); err != nil || r.Count(doctor.Failed) > 0 {
		t.Errorf("%v\n%s", err, report.String())
	}
	c.github.SetWebhook("https://elsewhere.example/api/github/hook", "")
	if code, _, errs := callIn(t, c.bin, env, args...); code != 1 || !strings.Contains(errs, "github.webhook failed: correct this as described above") {
		t.Errorf("with another webhook: code %d, errors %q", code, errs)
	}
	if code, _, errs := callIn(t, c.bin, env, append(args, "--skip", "apps")...); code != 1 || !strings.Contains(errs, "--skip apps: write one of address, trigger") {
		t.Errorf("--skip apps: code %d, errors %q", code, errs)
	}
}

// TestFlagsOfSetupAreAnswers gives answers by flags. With a file of answers nothing is asked, even in a terminal.
func TestFlagsOfSetupAreAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "answers.yml")
	if err := os.WriteFile(file, []byte("github: https://ghes.example\npublic_url: https://errand.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	setup := func(args ...string) (int, string) {
		var out bytes.Buffer
		args = append([]string{"setup", "--dir", filepath.Join(dir, "made"), "--answers", file}, args...)
		code := run(t.Context(), cli.World{Args: args, In: strings.NewReader(""), Terminal: true, Out: &out, Err: &out, Lookup: os.LookupEnv})
		return code, out.String()
	}
	if code, out := setup(); code != 1 || !strings.Contains(out, "needs other answers:\nmodel_key: an answer is missing") {
		t.Errorf("without flags: code %d\n%s", code, out)
	}
	code, out := setup("--github", "http://ghes.example", "--public-url", "errand.example", "--name", strings.Repeat("x", 35))
	for _, want := range []string{`github: "http://ghes.example": write`, `public_url: "errand.example": write`, "app_name: "} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("code %d, %q is missing in:\n%s", code, want, out)
		}
	}
}

// TestDoctorNamesTheUnfinishedSetup: without a configuration, doctor says what the setup in its folder lacks, and which command continues it.
func TestDoctorNamesTheUnfinishedSetup(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "errand")
	code, out, errs := call(t, nil, "setup", "--dir", dir, "--public-url", "https://errand.example.org", "--skip", strings.Join(setup.StepNames(), ","))
	if code != 0 || errs != "" || !strings.Contains(out, "The setup is not complete") {
		t.Fatalf("code %d, errors %q\n%s", code, errs, out)
	}
	path := filepath.Join(dir, "config.yml")
	if code, out, _ := call(t, nil, "doctor", "-c", path); code != 1 || !strings.Contains(out, "Run `errand setup`, which writes a configuration") {
		t.Errorf("nothing was answered: code %d\n%s", code, out)
	}
	if code, out, errs = call(t, nil, "setup", "--dir", dir, "--answers", os.DevNull, "--public-url", "https://errand.example.org", "--skip", "model,app"); code != 0 {
		t.Fatalf("code %d, errors %q\n%s", code, errs, out)
	}
	code, out, _ = call(t, nil, "doctor", "-c", path)
	for _, want := range []string{"It lacks: the GitHub App (step app), the key of a model provider (step model).", "`errand setup --dir " + dir + "`"} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("code %d, want %q in\n%s", code, want, out)
		}
	}
}
