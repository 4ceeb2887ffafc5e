package setup_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/setup"
)

// TestSetupCreatesAppAndConfiguration plays whole setups, for a person's App and for an organization's.
func TestSetupCreatesAppAndConfiguration(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string]string{"person": "ada", "organization": "acme"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			if name == "organization" {
				o.answers["organization"] = owner
			}
			o.answers["app_name"] = "Errand of ACME"
			if err := o.run(); err != nil {
				t.Fatalf("%v\n%s", err, o.screen)
			}
			app, cfg := o.github.App(), o.load()
			if app.Owner != owner || app.Slug != "errand-of-acme" || app.WebhookURL != "http://localhost:1/api/github/hook" {
				t.Errorf("the App is %+v", app)
			}
			if cfg.GitHub.AppID != app.ID || cfg.GitHub.WebhookSecret.Reveal() != app.WebhookSecret || cfg.GitHub.PrivateKey.Reveal() != strings.TrimSpace(string(app.PEM)) {
				t.Errorf("the configuration has App %d and other secrets, or another ID than %d", cfg.GitHub.AppID, app.ID)
			}
			app = o.github.App()
			if cfg.GitHub.ClientSecret.Reveal() != app.ClientSecret || cfg.Admin.SignIn || len(app.CallbackURLs) != 1 || app.CallbackURLs[0] != "http://localhost:1/login/github/callback" {
				t.Errorf("people cannot sign in later: secret %s, on %v, callbacks %v", cfg.GitHub.ClientSecret, cfg.Admin.SignIn, app.CallbackURLs)
			}
			if cfg.Trigger.Label != "errand" || cfg.Trigger.Assignee != "worker" || cfg.PublicURL != "http://localhost:1" {
				t.Errorf("the configuration is %+v %s", cfg.Trigger, cfg.PublicURL)
			}
			o.wantOutput("ssh -N -L", "acme/shop: created the label", "ada/shop: issues can be assigned to worker", "errand is not running yet",
				"the report", "serve -c "+filepath.Join(o.dir, "config.yml"), "User=")
			checkFiles(t, o)
		})
	}
}

// checkFiles checks that only the owner can read the files, and that no secret is in the output or in the progress.
func checkFiles(t *testing.T, o *office) {
	t.Helper()
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v (%v)", e.Name(), info.Mode(), err)
		}
		names += " " + e.Name()
	}
	if diff := cmp.Diff(" admin-token app.pem client-secret config.yml model-key setup.json setup.lock webhook-secret", names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for _, name := range []string{"admin-token", "app.pem", "client-secret", "model-key", "webhook-secret"} {
		secret := strings.TrimSpace(o.read(name))
		if strings.Contains(o.screen.String(), secret) || strings.Contains(o.read("setup.json"), secret) || strings.Contains(o.read("config.yml"), secret) {
			t.Errorf("the secret in %s is also in the output, the progress or the configuration", name)
		}
	}
}

// TestSetupCanBeRepeated checks that a second setup changes nothing.
func TestSetupCanBeRepeated(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	if err := o.run(); err != nil {
		t.Fatal(err)
	}
	before := map[string]string{}
	for _, name := range []string{"admin-token", "app.pem", "client-secret", "config.yml", "model-key", "webhook-secret"} {
		before[name] = o.read(name)
	}
	app := o.github.App().ID
	o.answers = nil // everything is known
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	if err := os.WriteFile(filepath.Join(o.dir, "config.yml"), []byte(strings.Replace(before["config.yml"], "github:\n", "github:\n  webhooks: poll\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	before["config.yml"] = o.read("config.yml")
	if err := o.run(); err != nil {
		t.Fatalf("with webhooks from GitHub's log: %v\n%s", err, o.screen)
	}
	o.wantOutput("errand reads webhooks from GitHub's log")
	o.wantOutput("config.yml exists and is not changed", "Done before.", `acme/shop: has the label "errand"`)
	for name, text := range before {
		if o.read(name) != text {
			t.Errorf("%s was changed", name)
		}
	}
	if o.github.App().ID != app {
		t.Error("a second App was created")
	}
}

// TestInterruptionLosesNothing interrupts a setup at the beginning of each step, and then runs it again.
func TestInterruptionLosesNothing(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 13; n++ {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			header := "\n[" + strconv.Itoa(n) + "/13]"
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			o.env.Out = writerFunc(func(p []byte) (int, error) {
				if strings.HasPrefix(string(p), header) {
					stop()
				}
				return o.screen.Write(p)
			})
			err := o.runUntil(ctx)
			if err == nil || !strings.Contains(err.Error(), "interrupted; run the same command again") {
				t.Errorf("the setup was not interrupted: %v", err)
			}
			first := o.github.App().ID
			if err := o.run(); err != nil {
				t.Fatalf("%v\n%s", err, o.screen)
			}
			if n > 6 && o.github.App().ID != first {
				t.Error("a second App was created")
			}
			if cfg := o.load(); cfg.GitHub.AppID != o.github.App().ID {
				t.Errorf("the configuration has App %d, not %d", cfg.GitHub.AppID, o.github.App().ID)
			}
		})
	}
}

// writerFunc is a function as an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestOneSetupAtATime(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ctx, stop := context.WithCancel(t.Context())
	done := o.start(ctx)
	o.screen.Await(ctx, regexp.MustCompile(`(\[6/13\])`))
	if err := <-o.start(ctx); err == nil || !strings.Contains(err.Error(), setup.ErrLocked.Error()) {
		t.Errorf("the second setup ended with %v", err)
	}
	stop()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "interrupted; run the same command again") {
		t.Errorf("the first setup ended with %v", err)
	}
}

// TestExistingConfigurationIsKept checks that a configuration is replaced only with --force, and that the App stays then.
func TestExistingConfigurationIsKept(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(o.dir, "config.yml")
	if err := os.WriteFile(broken, []byte("limit: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "limit: this key is unknown") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a broken configuration: %v", err)
	}
	if text := o.read("config.yml"); text != "limit: 3\n" {
		t.Errorf("the configuration was changed: %s", text)
	}
	o.opts.Force = true
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	app := o.github.App().ID
	old, err := filepath.Glob(broken + ".*.old")
	if err != nil || len(old) != 1 {
		t.Errorf("the old configuration is not kept: %v %v", old, err)
	}
	o.answers["label"] = "bot"
	if err := os.Remove(filepath.Join(o.dir, "setup.json")); err != nil {
		t.Fatal(err)
	}
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	if cfg := o.load(); cfg.Trigger.Label != "bot" || cfg.GitHub.AppID != app || o.github.App().ID != app {
		t.Errorf("with --force the App changed from %d to %d, label %q", app, cfg.GitHub.AppID, cfg.Trigger.Label)
	}
}

// TestSecretsAreNotReplaced starts with the secret of another App in the folder.
func TestSecretsAreNotReplaced(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.dir, "webhook-secret"), []byte("the-secret-of-another-app"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := o.github.App()
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "so a new App was not created") || o.github.App().ID != before.ID {
		t.Errorf("a new App: %v", err)
	}
	o.write("app.pem", string(before.PEM))
	o.write("hook", before.WebhookSecret)
	o.answers["app"], o.answers["app_id"] = "existing", strconv.FormatInt(before.ID, 10)
	o.answers["private_key"], o.answers["webhook_secret"] = "file:"+o.path("app.pem"), "file:"+o.path("hook")
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "exists with another secret") {
		t.Errorf("an existing App: %v", err)
	}
	if got := o.read("webhook-secret"); got != "the-secret-of-another-app" {
		t.Errorf("the secret was replaced by %s", got)
	}
}

// TestTerminalLosesNoToken ends the input at the question for the App, which another App's key rules out: the token that was typed before is
// stored, and the mistake is named at once.
func TestTerminalLosesNoToken(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.answerAll()
	o.answers["vms"] = "hetzner"
	for _, key := range []string{"agent_program", "app", "app_name"} {
		delete(o.answers, key)
	}
	token := strings.Repeat("t", 64)
	o.env.Interactive, o.env.In = true, strings.NewReader("present\n"+token+"\ncreate\n")
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.dir, "app.pem"), []byte("of another App"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "the input has ended") {
		t.Errorf("got %v", err)
	}
	o.wantOutput("app.pem exists, so a new App was not created")
	if o.read("hetzner-token") != token+"\n" || strings.Contains(o.screen.String(), "Name of the App") {
		t.Errorf("the token is lost, or further questions were asked:\n%s", o.screen)
	}
}

// TestSetupWithoutPublicAddress sets up errand where GitHub cannot reach it.
func TestSetupWithoutPublicAddress(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	delete(o.answers, "public_url")
	o.answers["webhooks"] = "poll"
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	cfg := o.load()
	if cfg.GitHub.Webhooks != config.WebhooksPoll || cfg.PublicURL != "" || len(cfg.TrustedProxies) > 0 || o.github.App().WebhookURL != handlers.NoHook {
		t.Errorf("the configuration is %+v, the webhook %s", cfg.GitHub, o.github.App().WebhookURL)
	}
	o.wantOutput("errand reads webhooks from GitHub's log")
}

// TestSetupWithOwnCertificate sets up errand that serves HTTPS itself.
func TestSetupWithOwnCertificate(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	delete(o.answers, "listen")
	o.opts.Skip = []string{"installation", "webhook", "repositories"}
	o.answers["tls"] = "acme"
	for address, want := range map[string]string{
		"http://localhost:1": "write https:// and a host name", "https://192.0.2.1": "write https:// and a host name", "https://errand.example.org:8443": "without a port",
	} {
		o.answers["public_url"] = address
		if err := o.run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", address, err, want)
		}
	}
	o.answers["public_url"] = "https://errand.example.org"
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	if cfg := o.load(); cfg.TLSHost() != "errand.example.org" || cfg.Listen != ":443" || len(cfg.TrustedProxies) > 0 {
		t.Errorf("the configuration is %+v, listen %s", cfg.TLS, cfg.Listen)
	}
	o.wantOutput("ListenStream=443")
}

// TestAnotherAgentGetsAnotherKey changes the agent with --force: the earlier provider's address and key are not used for the new one.
func TestAnotherAgentGetsAnotherKey(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.opts.Skip = []string{"installation", "webhook", "repositories", "service"}
	o.answers["model_url"], o.answers["model_auth"] = "https://models.example", "key"
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	for _, key := range []string{"model_url", "model_auth", "model_key"} {
		delete(o.answers, key)
	}
	o.opts.Force, o.answers["agent"] = true, "codex"
	if err := o.run(); err == nil {
		t.Error("the earlier key was used")
	}
	if old, err := filepath.Glob(filepath.Join(o.dir, "model-key.*.old")); err != nil || len(old) != 1 {
		t.Errorf("the earlier key is not kept: %v %v", old, err)
	}
	if strings.Contains(o.read("setup.json"), "models.example") {
		t.Errorf("the progress is %s", o.read("setup.json"))
	}
	o.answers["model_key"] = "file:" + o.path("model")
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	if m := o.load().Models["openai"]; m.URL != "https://api.openai.com" {
		t.Errorf("the model is %+v", m)
	}
}
