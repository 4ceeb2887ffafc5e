package setup_test

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/setup/setuptest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// TestAnswersAreChecked gives wrong answers: the setup names them before it does anything.
func TestAnswersAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change map[string]string // "" removes an answer
		want   []string
	}{
		"missing":             {map[string]string{"public_url": "", "model_key": ""}, []string{"public_url: an answer is missing", "model_key: an answer is missing", "--answers"}},
		"unknown":             {map[string]string{"publik_url": "x", "color": "red"}, []string{"color: no question has this key\npublik_url: no question has this key"}},
		"path":                {map[string]string{"public_url": "https://example.org/errand"}, []string{"public_url: ", "without a path"}},
		"query":               {map[string]string{"public_url": "https://example.org?x=1"}, []string{"without a path"}},
		"no TLS":              {map[string]string{"public_url": "http://example.org"}, []string{"public_url: ", "begins with https://"}},
		"password":            {map[string]string{"public_url": "https://a:b@example.org"}, []string{"public_url: "}},
		"no address":          {map[string]string{"public_url": "example.org"}, []string{"public_url: ", "https://"}},
		"not public":          {map[string]string{"github": "https://github.com", "public_url": "https://localhost"}, []string{"GitHub cannot reach this address"}},
		"GitHub without TLS":  {map[string]string{"github": "http://ghes.example"}, []string{"github: "}},
		"ghe.com":             {map[string]string{"github": "https://acme.ghe.com"}, []string{"manual way"}},
		"lines in the label":  {map[string]string{"label": "'a\n\n  b'"}, []string{"label: ", "one line"}},
		"long label":          {map[string]string{"label": strings.Repeat("x", 51)}, []string{"label: ", "at most 50"}},
		"login":               {map[string]string{"assignee": "@worker"}, []string{"assignee: ", "without @"}},
		"organization":        {map[string]string{"organization": "../settings"}, []string{"organization: "}},
		"name":                {map[string]string{"app_name": strings.Repeat("x", 35)}, []string{"app_name: ", "at most 34"}},
		"proxies":             {map[string]string{"trusted_proxies": "127.0.0.1,proxy"}, []string{"trusted_proxies: ", `"proxy"`}},
		"relative data":       {map[string]string{"data": "data"}, []string{"data: ", "begins with /"}},
		"port":                {map[string]string{"listen": "127.0.0.1:0"}, []string{"listen: "}},
		"model without TLS":   {map[string]string{"model_url": "http://models.example"}, []string{"model_url: ", "the key travels there"}},
		"agent":               {map[string]string{"agent": "hal"}, []string{"agent: ", "claude"}},
		"secret in the file":  {map[string]string{"model_key": "sk-the-key-itself"}, []string{"model_key: write env:NAME or file:/path"}},
		"secret is missing":   {map[string]string{"model_key": "file:/does/not/exist"}, []string{"model_key: open /does/not/exist"}},
		"two keys in a file":  {map[string]string{"model_key": "env:TWO"}, []string{"model_key: a key is one line"}},
		"a page as a token":   {map[string]string{"vms": "hetzner", "hetzner_token": "env:PAGE"}, []string{"hetzner_token: a key is one line"}},
		"a megabyte of a key": {map[string]string{"model_key": "file:/dev/zero"}, []string{"model_key: /dev/zero is larger than 65536 bytes"}},
		"empty variable":      {map[string]string{"model_key": "env:EMPTY"}, []string{"EMPTY is not set"}},
		"cloud without token": {map[string]string{"vms": "hetzner"}, []string{"hetzner_token: an answer is missing"}},
		"existing App":        {map[string]string{"app": "existing"}, []string{"app_id: an answer is missing", "private_key: an", "webhook_secret: an"}},
		"App ID":              {map[string]string{"app": "existing", "app_id": "errand"}, []string{"app_id: ", "settings page"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.env.Lookup = func(name string) (string, bool) {
				v, ok := map[string]string{"TWO": "first-key\nsecond-key\n", "PAGE": "<html>Sign in</html>"}[name]
				return v, ok
			}
			maps.Copy(o.answers, c.change)
			maps.DeleteFunc(o.answers, func(_, v string) bool { return v == "" })
			err := o.run()
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "the-key-itself") {
					t.Errorf("got %v, want %q", err, want)
				}
			}
			if entries, err := os.ReadDir(o.dir); err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != "setup.lock" }) {
				t.Errorf("files were written: %v", entries)
			}
		})
	}
}

// TestPageTakesNoSecretsFromFiles: the operator of a page can enter a secret, but a file with answers cannot have one. A question may
// apply only after an answer on the page.
func TestPageTakesNoSecretsFromFiles(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.opts.Web = true
	o.answers["model_key"] = "sk-the-key-itself"
	if err := <-o.start(t.Context()); err == nil || !strings.Contains(err.Error(), "model_key: write env:NAME or file:/path") {
		t.Errorf("got %v", err)
	}
	o.answers["model_key"], o.answers["hetzner_token"] = "file:"+o.path("model"), strings.Repeat("t", 64)
	o.answerAll()
	delete(o.answers, "vms")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g, done := o.openPage(ctx)
	g.Send(g.Asked(ctx, "vms"), "send", "vms", "hetzner")
	g.Await(ctx, "hetzner_token: write env:NAME or file:/path")
	stop()
	<-done
	if _, err := os.Stat(filepath.Join(o.dir, "hetzner-token")); err == nil {
		t.Error("the token is stored")
	}
}

// TestAnswersFileIsYAML checks values that are no texts.
func TestAnswersFileIsYAML(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"label: [a, [b]]\n": "label: write one value", "label: {a: b}\n": "label: write one value", "label: a\nlabel: b\n": "already",
		"- a\n": "answers.yml", strings.Repeat("# long\n", 10<<10): "larger than",
	} {
		o := newOffice(t)
		o.answers = nil
		o.write("answers.yml", text)
		o.opts.Answers = o.path("answers.yml")
		if err := o.run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want %q", text, err, want)
		}
	}
}

// TestNamesWithSpecialCharacters checks that names which mean something in YAML reach the configuration unchanged.
func TestNamesWithSpecialCharacters(t *testing.T) {
	t.Parallel()
	for _, label := range []string{`a: b # c`, `"quoted" \ {x}`, `{{.Agent}}`, `- list`, `true`, `ü 🤖 <&>`, `*x &y !z %`} {
		o := newOffice(t)
		o.answers["label"] = "'" + label + "'"
		o.dir = filepath.Join(t.TempDir(), "a folder: # with \"specials\"")
		o.opts.Dir, o.opts.Skip = o.dir, []string{"installation", "webhook", "repositories", "service"}
		if err := o.run(); err != nil {
			t.Fatalf("%s: %v\n%s", label, err, o.screen)
		}
		if got := o.load().Trigger.Label; got != label {
			t.Errorf("label %q, want %q", got, label)
		}
	}
}

// toGitHubCom sends requests for github.com's API to a simulator.
type toGitHubCom struct{ base string }

func (x toGitHubCom) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != "api.github.com" {
		return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: os.ErrNotExist}
	}
	base, err := url.Parse(x.base)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.URL.Path, r.Host = "http", base.Host, "/api/v3"+r.URL.Path, base.Host
	return webtest.Transport().RoundTrip(r)
}

// manifestOf is a manifest as it is posted by hand.
const manifestOf = `{"name": "errand", "url": "https://example.org", "hook_attributes": {"url": "https://errand.example.org/api/github/hook"},
"redirect_url": "http://127.0.0.1:8099/created", "default_permissions": {"issues": "write", "contents": "write", "pull_requests": "write"}}`

// TestSetupWithoutBrowser uses a code of github.com, and then the credentials that the first setup stored.
func TestSetupWithoutBrowser(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	m, err := simgithub.ParseManifest(manifestOf)
	if err != nil {
		t.Fatal(err)
	}
	code, err := o.github.CreateApp("acme", m)
	if err != nil {
		t.Fatal(err)
	}
	o.env.Transport = toGitHubCom{o.github.BaseURL()}
	o.answers["github"], o.answers["public_url"] = "https://github.com", "https://errand.example.org/"
	o.answers["app"], o.answers["app_code"] = "code", code
	o.opts.Skip = []string{"installation"}
	o.failed = []string{"github.installations", "github.deliveries"} // neither is a failure of this setup
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	app, cfg := o.github.App(), o.load()
	if cfg.GitHub.AppID != app.ID || cfg.GitHub.URL != "https://github.com" || cfg.PublicURL != "https://errand.example.org" {
		t.Errorf("the configuration is %+v %s", cfg.GitHub, cfg.PublicURL)
	}
	o.wantOutput("Its settings: https://github.com/organizations/acme/settings/apps/errand\n")

	again := newOffice(t)
	again.env.Transport, again.opts.Skip = o.env.Transport, o.opts.Skip
	maps.Copy(again.answers, map[string]string{
		"github": "https://github.com", "public_url": "https://errand.example.org", "app": "existing", "app_id": strconv.FormatInt(app.ID+1, 10),
		"private_key": "file:" + filepath.Join(o.dir, "app.pem"), "webhook_secret": "file:" + filepath.Join(o.dir, "webhook-secret"),
	})
	if err := again.run(); err == nil || !strings.Contains(err.Error(), "compare app_id and private_key") {
		t.Errorf("with another App's ID: %v", err)
	}
	again.answers["app_id"] = strconv.FormatInt(app.ID, 10)
	if err := again.run(); err != nil {
		t.Fatalf("%v\n%s", err, again.screen)
	}
	if got := again.load().GitHub; got.AppID != app.ID || got.PrivateKey.Reveal() != cfg.GitHub.PrivateKey.Reveal() {
		t.Errorf("the configuration is %+v", got)
	}
	again.failed = []string{"github.app"}
	if err := again.run(); err == nil || !strings.Contains(err.Error(), "github.app failed") {
		t.Errorf("with a failed check: %v", err)
	}
}

// TestTerminal types answers: wrong ones are asked again, and Enter keeps defaults.
func TestTerminal(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	base := o.answers["github"]
	o.answers = nil
	o.env.Interactive = true
	o.env.In = strings.NewReader(strings.Join([]string{
		"nonsense", base, "", "", // github, webhooks, tls
		"", "https://example.org/path", "http://localhost:1", // public_url
		"127.0.0.1:1", "-", "", // listen, trusted_proxies, data
		"-", "worker", // label, assignee
		"", "", "", "wrong-key", "model-key-for-tests", // agent, model_url, model_auth, model_key
		"", "present", "", "errand 2", "acme", // vms, agent_program, app, app_name, organization
		"", "", // user, unit
	}, "\n") + "\n")
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	cfg := o.load()
	if cfg.Trigger.Label != "" || cfg.Trigger.Assignee != "worker" || len(cfg.TrustedProxies) != 0 || cfg.Models["anthropic"].Key.Reveal() != "model-key-for-tests" {
		t.Errorf("the configuration is %+v", cfg)
	}
	if o.github.App().Slug != "errand-2" || o.github.App().Owner != "acme" {
		t.Errorf("the App is %+v", o.github.App())
	}
	o.wantOutput("an answer is required", "without a path", "the provider refuses the key. Enter another one", "[errand; - for none]")
	if strings.Contains(o.screen.String()+o.read("setup.json"), "model-key-for-tests") {
		t.Error("the key is in the output or in the progress")
	}

	o = newOffice(t)
	o.answers, o.env.Interactive, o.env.In = nil, true, strings.NewReader("https://github.com\n")
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "the input has ended") {
		t.Errorf("the end of the input: %v", err)
	}
}

// TestInvalidEarlierAnswer: an earlier answer that is not valid any more is asked again in a terminal, and reported without one.
func TestInvalidEarlierAnswer(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.dir, "setup.json"), []byte(`{"answers": {"agent": "nonsense"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "agent: ") || !strings.Contains(err.Error(), "--answers") {
		t.Errorf("without a terminal: %v", err)
	}
	o.env.Interactive, o.env.In = true, strings.NewReader(strings.Repeat("\n", 100)) // defaults
	o.opts.Skip = []string{"program", "installation", "webhook", "repositories", "service"}
	if err := o.run(); err != nil {
		t.Errorf("in a terminal: %v", err)
	}
	o.wantOutput(`The earlier answer "nonsense" for agent is not valid any more`)
	if got := o.read("setup.json"); strings.Contains(got, "nonsense") {
		t.Errorf("the new answer is not stored: %s", got)
	}
}

// TestWrongModelKey checks that a refused key can be corrected in the file that was named.
func TestWrongModelKey(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.opts.Skip = []string{"installation", "webhook", "repositories", "service"}
	o.write("model", "another-key")
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "the provider refuses the key: correct model_key") {
		t.Errorf("the setup ended with %v", err)
	}
	o.write("model", "model-key-for-tests")
	o.answers["model_auth"] = "subscription"
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	if m := o.load().Models["anthropic"]; m.Subscription.Token.Reveal() != "model-key-for-tests" || m.Key.Set() {
		t.Errorf("the model is %+v", m)
	}
}

// TestWebhookIsProven runs a setup while errand serves: GitHub repeats the ping of the App's creation.
func TestWebhookIsProven(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		want   string
	}{"arrives": {http.StatusOK, `repeated the webhook "ping", and it arrived`}, "wrong secret": {http.StatusBadRequest, `failed: `}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.opts.Skip = []string{"installation", "repositories"}
			if err := o.run(); err != nil {
				t.Fatal(err)
			}
			o.wantOutput("errand is not running yet")
			address := serveHook(t, c.status)
			o.github.SetWebhook("http://"+address+"/api/github/hook", "")
			o.answers["listen"] = address
			o.opts.Force = true
			err := o.run()
			if got := o.screen.String(); err != nil {
				got = err.Error()
				if !strings.Contains(got, c.want) || c.status == http.StatusOK {
					t.Errorf("got %s", got)
				}
			} else if !strings.Contains(got, c.want) {
				t.Errorf("the output lacks %q:\n%s", c.want, got)
			}
			var events []string
			for _, d := range o.github.Deliveries() {
				if d.Redelivery {
					events = append(events, d.Event)
				}
			}
			if diff := cmp.Diff([]string{"ping"}, events); diff != "" {
				t.Errorf("repeated webhooks (-want +got):\n%s", diff)
			}
		})
	}
}

// serveHook serves errand's health check, and answers webhooks with a status.
func serveHook(t *testing.T, status int) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Server", "errand") })
	mux.HandleFunc("POST /api/github/hook", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	return setuptest.Serve(t, mux)
}

// TestInstallationIsAwaited checks the end of the wait for an installation: it names the page, even if the wait is over before GitHub answers.
func TestInstallationIsAwaited(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.env.Wait = time.Nanosecond
	page, done := o.waiting()
	setuptest.NewBrowser(t).CreateApp(page)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "not installed on any account") {
		t.Errorf("the setup ended with %v", err)
	}
	o.wantOutput("Install the App on your repositories")
}

// TestAnswersInInstallGuide checks the examples of answers in docs/install.md: with the secrets that they name, nothing is missing.
func TestAnswersInInstallGuide(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(manual), "\n### Without a terminal\n")
	part, _, _ = strings.Cut(part, "\n### Questions\n")
	all := ""
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(part, -1)
	for _, m := range blocks {
		all += m[1]
	}
	if len(blocks) != 2 {
		t.Fatalf("found %d examples", len(blocks))
	}
	o := newOffice(t)
	m, err := simgithub.ParseManifest(manifestOf)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.github.CreateApp("acme", m); err != nil {
		t.Fatal(err)
	}
	app := o.github.App()
	o.write("app.pem", string(app.PEM))
	o.write("answers.yml", strings.NewReplacer("file:/root/app.pem", "file:"+o.path("app.pem"), "123456", strconv.FormatInt(app.ID, 10)).Replace(all))
	o.answers, o.opts.Answers = nil, o.path("answers.yml")
	o.env.Transport, o.opts.Skip = toGitHubCom{o.github.BaseURL()}, []string{"installation", "service"}
	o.env.Lookup = func(name string) (string, bool) {
		return map[string]string{"ANTHROPIC_API_KEY": "model-key-for-tests", "WEBHOOK_SECRET": app.WebhookSecret}[name], true
	}
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	if cfg := o.load(); cfg.Trigger.Assignee != "errand-worker" || cfg.GitHub.AppID != app.ID {
		t.Errorf("the configuration is %+v", cfg)
	}
}
