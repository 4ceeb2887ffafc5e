package setup_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/setup/setuptest"
)

// openPage starts a setup whose questions are asked on a page, without a terminal.
func (o *office) openPage(ctx context.Context) (g *setuptest.Guide, done <-chan error) {
	o.t.Helper()
	o.screen = &setuptest.Screen{}
	o.env.Out = o.screen
	o.opts.Web = true
	done = o.start(ctx)
	wait, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	return setuptest.NewGuide(o.t, o.screen.Await(wait, setuptest.NextPage)), done
}

// problem returns the error beside a field.
func problem(t *testing.T, p setuptest.Page, key string) string {
	t.Helper()
	_, field, ok := strings.Cut(p.Text, `<div id="`+key+`-hint">`)
	if !ok {
		t.Fatalf("the page does not ask for %s:\n%s", key, p.Body())
	}
	field, _, _ = strings.Cut(field, "</div>")
	if m := regexp.MustCompile(`<p class="error">(.*)</p>`).FindStringSubmatch(field); m != nil {
		return m[1]
	}
	return ""
}

// wantProblem checks the error beside a field.
func wantProblem(t *testing.T, p setuptest.Page, key, want string) {
	t.Helper()
	if got := problem(t, p, key); want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("%s: the error is %q, want %q", key, got, want)
	}
}

// TestSetupOnAPage plays a complete setup in a browser: with wrong answers, questions that follow from others, a second tab and
// reloads. The same answers in a file make the same configuration.
func TestSetupOnAPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	answers := o.answers
	o.answers = nil
	g, done := o.openPage(t.Context())
	const secret = "model-key-for-tests"

	p := g.Asked(t.Context(), "github")
	if !strings.Contains(p.Text, "<title>How GitHub and people reach errand (1 of 13)") {
		t.Errorf("the title does not say where the setup is:\n%.1000s", p.Text)
	}
	first := p
	if f := p.Guide(t); f.Get("webhooks") != "push" || f.Get("github") != "https://github.com" || f.Get("trusted_proxies") != "127.0.0.1" {
		t.Errorf("the defaults are %v", f)
	}
	p = g.Send(p, "send", "github", answers["github"], "public_url", "http://example.org/<path>", "listen", "127.0.0.1:1", "data", answers["data"])
	wantProblem(t, p, "public_url", "without a path")
	wantProblem(t, p, "github", "")
	if f := p.Guide(t); f.Get("public_url") != "http://example.org/<path>" || f.Get("github") != answers["github"] {
		t.Errorf("the earlier answers are %v", f)
	}
	p = g.Send(p, "send", "public_url", "http://localhost:1")
	p = g.Send(g.Asked(t.Context(), "assignee"), "send", "assignee", "worker")
	if old := g.Send(first, "send", "public_url", "https://other.example"); !strings.Contains(old.Text, "That form was used already") {
		t.Errorf("the form of another tab was used:\n%s", old.Body())
	}
	p = g.Send(p, "send", "model_key", "wrong-key")
	wantProblem(t, p, "model_key", "the provider refuses the key")
	p = g.Send(p, "send", "model_key", secret)
	p = g.Send(p, "send", "vms", "hetzner")
	if f := p.Guide(t); !f.Has("hetzner_token") || f.Get("vms") != "hetzner" {
		t.Errorf("the further questions are %v", f)
	}
	p = g.Send(p, "send", "vms", "local", "agent_program", "present")
	p = g.Send(g.Asked(t.Context(), "app_name"), "send", "app_name", "Errand of ACME")

	g.Await(t.Context(), "Create the GitHub App")
	if back := g.Get(g.Confirm(g.Address)); back.Status != http.StatusSeeOther || strings.Contains(back.Text, "PRIVATE KEY") {
		t.Errorf("after the creation: status %d\n%s", back.Status, back.Body())
	}
	g.Await(t.Context(), "The App's installation (8 of 13)")
	install := regexp.MustCompile(`<a href="(http\S+/installations/new)"`).FindStringSubmatch(g.Await(t.Context(), "/installations/new").Text)
	g.Install(install[1], "ada", "acme/shop", "ada/shop")
	p = g.Send(g.Asked(t.Context(), "create_label"), "send")
	p = g.Send(g.Asked(t.Context(), "user"), "send", "user", answers["user"])
	p = g.Send(p, "send")
	p = g.Await(t.Context(), "The setup is complete. Start errand:")
	if !strings.Contains(p.Text, "serve -c "+o.dir+"/config.yml") || !strings.Contains(p.Text, "the report") || !strings.Contains(p.Text, "User=") ||
		!strings.Contains(p.Text, "arrive, choose Run the setup again.") {
		t.Errorf("the last page lacks what the terminal prints:\n%s", p.Body())
	}
	if p = g.Send(p, "stop"); !strings.Contains(p.Text, "You can close this page") {
		t.Errorf("the setup did not end:\n%s", p.Body())
	}
	if err := <-done; err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	checkFiles(t, o)
	for _, text := range []string{secret, "wrong-key", "PRIVATE KEY", strings.TrimSpace(o.read("webhook-secret")), strings.TrimSpace(o.read("client-secret"))} {
		if strings.Contains(g.Seen.String(), text) {
			t.Errorf("a page shows the secret %q", text)
		}
	}
	if strings.Contains(g.Seen.String(), "--skip") {
		t.Error("a page tells of flags for what its buttons do")
	}
	answers["app_name"] = "Errand of ACME"
	wantSameByFile(o, answers)
}

// wantSameByFile checks that a file with answers makes the configuration that exists.
func wantSameByFile(o *office, answers map[string]string) {
	o.t.Helper()
	made := o.read("config.yml")
	o.answers, o.opts.Web, o.opts.Force = answers, false, true
	if err := o.run(); err != nil {
		o.t.Fatalf("%v\n%s", err, o.screen)
	}
	if diff := cmp.Diff(o.read("config.yml"), made); diff != "" {
		o.t.Errorf("the configuration by a file with answers (-) and on the page (+):\n%s", diff)
	}
}

// TestPageRefusesOthers attacks the page as other sites, as another user of this host and with broken forms. No answer is taken.
func TestPageRefusesOthers(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.answers = nil
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g, done := o.openPage(ctx)
	form := g.Asked(ctx, "github").Guide(t)
	at, err := url.Parse(g.Address)
	if err != nil {
		t.Fatal(err)
	}
	own := "http://" + at.Host
	form.Set("public_url", "https://errand.example.org")
	form.Set("do", "send")
	with := func(key, value string) url.Values {
		v := url.Values{}
		for k := range form {
			v.Set(k, form.Get(k))
		}
		v.Set(key, value)
		return v
	}
	for name, c := range map[string]struct {
		method, path, host, origin, body string
		status                           int
	}{
		"another site":        {origin: "https://evil.example", status: http.StatusForbidden},
		"another port":        {origin: "http://127.0.0.1:1", status: http.StatusForbidden},
		"a sandboxed site":    {origin: "null", status: http.StatusForbidden},
		"no origin":           {origin: "-", status: http.StatusForbidden},
		"a rebound name":      {host: "evil.example:" + at.Port(), origin: "http://evil.example:" + at.Port(), status: http.StatusMisdirectedRequest},
		"another user":        {path: "/" + strings.Repeat("0", 64) + "/", status: http.StatusNotFound},
		"another user's look": {method: http.MethodGet, path: "/" + strings.Repeat("0", 64) + "/version", status: http.StatusNotFound},
		"a link":              {method: http.MethodPut, status: http.StatusMethodNotAllowed},
		"a megabyte":          {body: with("label", strings.Repeat("x", 1<<20)).Encode(), status: http.StatusRequestEntityTooLarge},
		"no form":             {body: "%zz", status: http.StatusBadRequest},
		"no number":           {body: with("id", "first").Encode(), status: http.StatusBadRequest},
		"no button":           {body: with("do", "").Encode(), status: http.StatusBadRequest},
		"a foreign button":    {body: with("do", "back").Encode(), status: http.StatusBadRequest}, // this is the first step
		"the end":             {body: with("do", "stop").Encode(), status: http.StatusBadRequest},
		"an old form":         {body: with("id", "0").Encode(), status: http.StatusSeeOther},
	} {
		if c.body == "" {
			c.body = form.Encode()
		}
		r, err := http.NewRequestWithContext(ctx, orElse(c.method, http.MethodPost), own+orElse(c.path, at.Path), strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if c.origin != "-" {
			r.Header.Set("Origin", orElse(c.origin, own))
		}
		r.Host = orElse(c.host, at.Host)
		resp, err := webtest.Transport().RoundTrip(r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		token := strings.Trim(at.Path, "/")
		if resp.StatusCode != c.status || strings.Contains(string(text), token) && c.status != http.StatusSeeOther {
			t.Errorf("%s: status %d, want %d\n%s", name, resp.StatusCode, c.status, text)
		}
	}
	g.Asked(ctx, "github")
	stop()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("the setup ended with %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(o.dir, "setup.json")); err == nil && strings.Contains(string(text), "errand.example.org") {
		t.Errorf("an answer was taken: %s", text)
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// TestFailedStepOnAPage repeats a step that failed, skips one, and goes back to the questions. Ctrl-C then loses nothing.
func TestFailedStepOnAPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.answers["label"], o.answers["unit"], o.answers["create_label"] = "bot", "print", "yes"
	for key, value := range map[string]string{
		"webhooks": "push", "tls": "proxy", "trusted_proxies": "127.0.0.1", "agent": "claude", "model_url": "https://models.example", "model_auth": "key", "vms": "local",
	} {
		o.answers[key] = value
	}
	delete(o.answers, "model_url")
	tried := 0
	usual := o.env.TryModels
	o.env.TryModels = func(ctx context.Context, cfg config.Config) map[string]error {
		if tried++; tried == 1 {
			return map[string]error{"anthropic": errors.New("the provider is <away>")}
		}
		return usual(ctx, cfg)
	}
	o.failed = []string{"github.app"}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g, done := o.openPage(ctx)

	p := g.Send(g.Asked(ctx, "model_url"), "send", "model_url", "https://models.example")
	if !strings.Contains(p.Text, "the provider is &lt;away&gt;") || !strings.Contains(p.Text, "Failed: The model (3 of 13)") {
		t.Errorf("the failure is not shown:\n%s", p.Body())
	}
	p = g.Send(p, "back")
	p = g.Asked(ctx, "model_url")
	if got := p.Guide(t).Get("model_url"); got != "https://models.example" {
		t.Errorf("the earlier answer is %q", got)
	}
	p = g.Send(p, "send")
	p = g.Send(p, "send", "agent_program", "present")
	p = g.Send(g.Asked(ctx, "app_name"), "send")
	if err := g.Get(g.Confirm(g.Address)); err.Status != http.StatusSeeOther {
		t.Errorf("status %d", err.Status)
	}
	p = g.Send(g.Await(ctx, "Skip this step"), "skip") // the installation, while the setup waits for it
	p = g.Await(ctx, "github.app failed: correct this as described above, and choose Try again")
	if tried := o.doctors; tried != 1 {
		t.Errorf("the checks were made %d times", tried)
	}
	g.Await(ctx, "Try again")
	g.Send(p, "again")
	p = g.Await(ctx, "github.app failed")
	stop()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "github.app failed") {
		t.Errorf("the setup ended with %v", err)
	}
	if o.doctors != 2 {
		t.Errorf("the checks were made %d times", o.doctors)
	}

	app := o.github.App().ID
	g, done = o.openPage(t.Context())
	g.Send(g.Await(t.Context(), "(8 of 13)"), "skip")
	g.Send(g.Await(t.Context(), "github.app failed"), "skip")
	p = g.Await(t.Context(), "The setup is complete")
	if !strings.Contains(p.Text, "done before") || !strings.Contains(p.Text, ">skipped<") {
		t.Errorf("the steps are:\n%s", p.Body())
	}
	o.failed = nil
	g.Send(p, "again") // skips nothing that was skipped before
	g.Send(g.Await(t.Context(), "The App's installation (8 of 13)"), "skip")
	g.Send(g.Await(t.Context(), "The setup is complete"), "stop")
	if err := <-done; err != nil || o.github.App().ID != app {
		t.Errorf("%v; App %d, then %d", err, app, o.github.App().ID)
	}
}
