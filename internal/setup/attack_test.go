package setup_test

import (
	"context"
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

	"github.com/errand-bot/errand/internal/setup/setuptest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// waiting starts a setup and returns the address of its local page.
func (o *office) waiting() (page string, done <-chan error) {
	o.t.Helper()
	o.screen = &setuptest.Screen{}
	o.env.Out = o.screen
	done = o.start(o.t.Context())
	ctx, stop := context.WithTimeout(o.t.Context(), 30*time.Second)
	defer stop()
	if page = o.screen.Await(ctx, setuptest.NextPage); page == "" {
		o.t.Fatalf("no local page:\n%s", o.screen)
	}
	return page, done
}

// TestLocalPageAcceptsOnlyItsOwnAnswers attacks the local page as other users, other sites and by replays. The App can be created
// nevertheless.
func TestLocalPageAcceptsOnlyItsOwnAnswers(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	now := time.Now()
	shift := make(chan time.Duration, 1)
	shift <- 0
	o.env.Now = func() time.Time {
		d := <-shift
		shift <- d
		return now.Add(d)
	}
	o.opts.Skip = []string{"installation", "webhook", "repositories"}
	page, done := o.waiting()
	b := setuptest.NewBrowser(t)
	origin := strings.TrimSuffix(page, page[strings.LastIndex(strings.TrimSuffix(page, "/"), "/"):])
	b.Get(page) // from now on there is a state
	for name, address := range map[string]string{
		"no token": origin + "/", "wrong token": origin + "/" + strings.Repeat("0", 64) + "/", "no state": origin + "/created?code=abc",
		"wrong state": origin + "/created?code=abc&state=" + strings.Repeat("0", 64), "neither": origin + "/created",
	} {
		if got := b.Get(address); got.Status != http.StatusNotFound && got.Status != http.StatusForbidden || strings.Contains(got.Text, "<form") {
			t.Errorf("%s: status %d\n%s", name, got.Status, got.Text)
		}
	}
	for host, want := range map[string]int{"evil.example": http.StatusMisdirectedRequest, "127.0.0.1": http.StatusMisdirectedRequest} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := webtest.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want || strings.Contains(string(text), "state=") {
			t.Errorf("Host %s: status %d\n%s", host, resp.StatusCode, text)
		}
	}
	form := b.Get(page)
	if h := form.Header; h.Get("Referrer-Policy") != "same-origin" || h.Get("Cache-Control") != "no-store" || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("headers: %v", h)
	}
	late := b.Confirm(page)
	<-shift
	shift <- 61 * time.Minute
	if got := b.Get(late); got.Status != http.StatusForbidden {
		t.Errorf("an answer after an hour: status %d", got.Status)
	}
	back := b.Confirm(page, "errand the second") // the first one exists on GitHub
	if got := b.Get(back); got.Status != http.StatusOK || strings.Contains(got.Text, "PRIVATE KEY") {
		t.Errorf("the right answer: status %d\n%s", got.Status, got.Text)
	}
	if err := <-done; err != nil {
		t.Errorf("%v\n%s", err, o.screen)
	}
	if cfg := o.load(); cfg.GitHub.AppID != o.github.App().ID {
		t.Error("the configuration has another App")
	}
}

// TestStateIsUsedOnce checks that GitHub's answer cannot be replayed, whether it failed or not.
func TestStateIsUsedOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	page, done := o.waiting()
	b := setuptest.NewBrowser(t)
	back := b.Confirm(page)
	at, err := url.Parse(back)
	if err != nil {
		t.Fatal(err)
	}
	q := at.Query()
	q.Set("code", "of-somebody-else")
	at.RawQuery = q.Encode()
	if got := b.Get(at.String()); got.Status != http.StatusBadGateway { // GitHub does not know the code
		t.Errorf("a forged code: status %d", got.Status)
	}
	if got := b.Get(back); got.Status != http.StatusForbidden {
		t.Errorf("the state was accepted twice: status %d", got.Status)
	}
	o.screen.Await(t.Context(), regexp.MustCompile(`(does not accept the code of the new App \(status 404\))`))
	select {
	case err := <-done:
		t.Errorf("the setup ended: %v", err)
	default:
	}
}

// TestFaultyAnswersToTheCode has GitHub answer the exchange of the code wrongly. The setup says what to do.
func TestFaultyAnswersToTheCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault simgithub.Fault
		want  string
	}{
		"not found": {simgithub.Fault{Status: 404}, "does not accept the code"}, "error 500": {simgithub.Fault{Status: 500, After: true}, "generate a private key"},
		"error 403": {simgithub.Fault{Status: 403}, "GitHub answered with status 403"},
		"HTML":      {simgithub.Fault{Status: 200, Body: "<html>Sign in</html>", Header: map[string]string{"Content-Type": "text/html"}}, "generate a private key"},
		"empty":     {simgithub.Fault{Status: 201, Body: "{}"}, "lacks the App's ID"}, "cut": {simgithub.Fault{Cut: true, After: true}, "generate a private key"},
		"redirect":  {simgithub.Fault{Status: 302, Body: "{}", Header: map[string]string{"Location": "http://127.0.0.1:1/"}}, "status 302"},
		"too large": {simgithub.Fault{Status: 201, Body: `{"pem":"` + strings.Repeat("x", 2<<20) + `"}`}, "generate a private key"},
		"limit":     {simgithub.Fault{Primary: true}, "status 403"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			c.fault.Path = "^/app-manifests/"
			if err := o.github.Fault(c.fault); err != nil {
				t.Fatal(err)
			}
			o.answers["app"], o.answers["app_code"] = "code", "a-code"
			err := o.run()
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "Sign in") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, err := os.Stat(filepath.Join(o.dir, "setup.reserve")); err == nil {
				t.Error("the reserved space is not freed")
			}
			if strings.Contains(o.read("setup.json"), "a-code") {
				t.Error("the code is remembered")
			}
			if _, err := os.Stat(filepath.Join(o.dir, "config.yml")); err == nil {
				t.Error("there is a configuration without an App")
			}
		})
	}
}

// afterwards runs a function after the answer to the exchange of a code.
type afterwards func()

func (f afterwards) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := webtest.Transport().RoundTrip(r)
	if strings.Contains(r.URL.Path, "/app-manifests/") {
		f()
	}
	return resp, err
}

// TestCredentialsSurviveAFolderThatCannotBeWritten makes the progress unwritable at the moment at which GitHub shows the private key.
func TestCredentialsSurviveAFolderThatCannotBeWritten(t *testing.T) {
	o := newOffice(t)
	t.Setenv("TMPDIR", o.files)
	blocked := filepath.Join(o.dir, "setup.json")
	o.env.Transport = afterwards(func() { // works for root, too
		_ = os.Remove(blocked)
		_ = os.MkdirAll(filepath.Join(blocked, "full"), 0o700)
	})
	page, done := o.waiting()
	b := setuptest.NewBrowser(t)
	if got := b.Get(b.Confirm(page)); got.Status != http.StatusBadGateway {
		t.Errorf("status %d", got.Status)
	}
	err := <-done
	if err == nil {
		t.Fatal("the setup succeeded")
	}
	m := regexp.MustCompile(`its credentials are in (\S+)\. Correct`).FindStringSubmatch(err.Error())
	if m == nil {
		t.Fatalf("the error does not name the file: %v", err)
	}
	info, err := os.Stat(m[1])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(m[1], blocked); err != nil {
		t.Fatal(err)
	}
	app := o.github.App().ID
	o.env.Transport = webtest.Transport()
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	if cfg := o.load(); cfg.GitHub.AppID != app || o.github.App().ID != app {
		t.Error("another App was created")
	}
}

// TestCredentialsWaitForTheirFiles blocks the file of the private key after the App was created.
func TestCredentialsWaitForTheirFiles(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	blocked := filepath.Join(o.dir, "app.pem")
	o.env.Transport = afterwards(func() { _ = os.MkdirAll(filepath.Join(blocked, "full"), 0o700) })
	page, done := o.waiting()
	setuptest.NewBrowser(t).CreateApp(page)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "Nothing is lost: the App's credentials are in "+filepath.Join(o.dir, "setup.json")) {
		t.Errorf("the setup ended with %v", err)
	}
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	app := o.github.App().ID
	o.env.Transport = webtest.Transport()
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	if cfg := o.load(); cfg.GitHub.AppID != app || strings.Contains(o.read("setup.json"), "PRIVATE KEY") {
		t.Error("another App was created, or the progress still has its key")
	}
}

// TestInterruptionDuringTheExchange interrupts the setup while GitHub answers with the credentials.
func TestInterruptionDuringTheExchange(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o.env.Transport = before(stop)
	done := o.start(ctx)
	setuptest.NewBrowser(t).CreateApp(o.screen.Await(t.Context(), setuptest.NextPage))
	if err := <-done; err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("the setup ended with %v", err)
	}
	app := o.github.App().ID
	o.env.Transport = webtest.Transport()
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	if cfg := o.load(); cfg.GitHub.AppID != app || o.github.App().ID != app {
		t.Error("another App was created")
	}
}

// before runs a function before the exchange of a code.
type before func()

func (f before) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/app-manifests/") {
		f()
	}
	return webtest.Transport().RoundTrip(r)
}
