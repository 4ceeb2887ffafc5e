package setup_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// answerAll gives answers to all questions, so that the page asks nothing before the App.
func (o *office) answerAll() {
	maps.Copy(o.answers, map[string]string{
		"webhooks": "push", "tls": "proxy", "trusted_proxies": "127.0.0.1", "label": "errand", "agent": "claude", "model_url": "https://api.anthropic.com", "model_auth": "key",
		"vms": "local", "agent_program": "present", "app": "create", "app_name": "errand", "organization": "", "create_label": "yes", "unit": "print",
	})
}

// TestLostCodeStaysInTheAddress: when the exchange of the App's code fails, the page at the address with the code says how to use it.
func TestLostCodeStaysInTheAddress(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.answerAll()
	delete(o.answers, "app")
	o.opts.Skip = []string{"installation", "repositories", "webhook"}
	g, done := o.openPage(t.Context())
	g.Send(g.Asked(t.Context(), "app"), "send")
	g.Await(t.Context(), "Create the GitHub App")
	if err := o.github.Fault(simgithub.Fault{Path: "^/app-manifests/", Status: 404, Count: 1}); err != nil {
		t.Fatal(err)
	}
	if got := g.Get(g.Confirm(g.Address)); got.Status != http.StatusSeeOther { // GitHub refuses the code, which is of no use any more
		t.Errorf("a refused code: status %d\n%s", got.Status, got.Body())
	}
	if err := o.github.Fault(simgithub.Fault{Path: "^/app-manifests/", Status: 500, Count: 1}); err != nil {
		t.Fatal(err)
	}
	g.Await(t.Context(), "Create the GitHub App")
	back := g.Confirm(g.Address, "errand the second")
	at, err := url.Parse(g.Address)
	if err != nil {
		t.Fatal(err)
	}
	got := g.Get(back)
	if got.Status != http.StatusBadGateway || !strings.Contains(got.Text, "with `app: code` and the code in the browser") || !strings.Contains(got.Text, `<a href="`+at.Path+`"`) {
		t.Errorf("status %d, to %q\n%s", got.Status, got.Location, got.Body())
	}
	p := g.Await(t.Context(), "Failed: The GitHub App")
	if got = g.Get(back); got.Status != http.StatusForbidden || !strings.Contains(got.Text, "with `app: code`") {
		t.Errorf("the address again: status %d\n%s", got.Status, got.Body())
	}
	if at, err = url.Parse(back); err != nil {
		t.Fatal(err)
	}
	p = g.Send(p, "again")
	p = g.Send(p, "send", "app", "code")
	g.Send(p, "send", "app_code", at.Query().Get("code"))
	g.Send(g.Await(t.Context(), "The setup is complete"), "stop")
	if err := <-done; err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	if cfg := o.load(); cfg.GitHub.AppID != o.github.App().ID {
		t.Error("the configuration has another App")
	}
}

// TestLateAppIsNotUsed creates an App by a form that the operator has left, and opens GitHub's answer to a form twice.
func TestLateAppIsNotUsed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.answerAll()
	delete(o.answers, "app")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g, done := o.openPage(ctx)
	g.Send(g.Asked(ctx, "app"), "send")
	p := g.Await(ctx, "Create the GitHub App")
	late := g.Confirm(g.Address)
	g.Send(p, "back")
	g.Asked(ctx, "app")
	if got := g.Get(late); got.Status != http.StatusForbidden || !strings.Contains(got.Text, "it is not used: delete it") {
		t.Errorf("status %d\n%s", got.Status, got.Body())
	}
	g.Send(g.Asked(ctx, "app"), "send")
	g.Await(ctx, "Create the GitHub App")
	back := g.Confirm(g.Address, "errand the second")
	for _, want := range []int{http.StatusSeeOther, http.StatusGone} {
		if got := g.Get(back); got.Status != want {
			t.Errorf("status %d, want %d\n%s", got.Status, want, got.Body())
		}
	}
	g.Await(ctx, "The App's installation (8 of 13)")
	stop()
	<-done
}

// TestCorrectedConfigurationIsLoadedAgain corrects the configuration while the page shows a failed step: the step uses it then. A mistake in
// it is shown, and nothing is lost.
func TestCorrectedConfigurationIsLoadedAgain(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.answerAll()
	o.opts.Skip = []string{"installation", "webhook"}
	o.answers["label"], o.answers["assignee"], o.failed = "old", "", []string{"github.app"}
	g, done := o.openPage(t.Context())
	g.Await(t.Context(), "Create the GitHub App")
	g.Get(g.Confirm(g.Address))
	p := g.Await(t.Context(), "github.app failed")
	path, text := filepath.Join(o.dir, "config.yml"), o.read("config.yml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("limit: 3\n")
	g.Send(p, "again")
	p = g.Await(t.Context(), "limit: this key is unknown")
	if !strings.Contains(p.Text, "Correct it and choose Try again") {
		t.Errorf("the page does not say how to continue:\n%s", p.Body())
	}
	o.failed = nil
	write(strings.Replace(text, `label: "old"`, `label: "new"`, 1))
	g.Send(p, "again")
	p = g.Await(t.Context(), `set the label "new" on an issue`)
	write("limit: 3\n")
	g.Send(p, "again")
	p = g.Await(t.Context(), "limit: this key is unknown")
	write(text)
	g.Send(p, "again")
	g.Send(g.Await(t.Context(), `set the label "old" on an issue`), "stop")
	if err := <-done; err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
}

// TestUserIsAskedAfterASkip skips a step while it asks for the user that runs errand: the next step that needs it asks again. In the end that
// user runs the setup again.
func TestUserIsAskedAfterASkip(t *testing.T) {
	t.Parallel()
	who := nobody(t)
	o := newOffice(t)
	o.answerAll()
	o.answers["agent_program"] = "install"
	delete(o.answers, "user")
	o.opts.Skip = []string{"installation", "repositories"}
	g, done := o.openPage(t.Context())
	g.Send(g.Asked(t.Context(), "user"), "skip")
	g.Await(t.Context(), "Create the GitHub App")
	g.Get(g.Confirm(g.Address))
	p := g.Asked(t.Context(), "user")
	if !strings.Contains(p.Text, "The service (10 of 13)") {
		t.Errorf("another step asks for the user:\n%s", p.Body())
	}
	g.Send(p, "send", "user", who.Username)
	g.Await(t.Context(), "close this page, and run `sudo -u nobody /opt/errand/bin/errand setup --dir "+o.dir+"`") // root cannot run it again
	lock, err := os.Open(filepath.Join(o.dir, "setup.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	p = g.Await(t.Context(), "The setup is complete")
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil || strings.Contains(p.Text, "Run the setup again</button>") {
		t.Errorf("the command would fail (%v):\n%s", err, p.Body())
	}
	g.Send(p, "stop")
	if err := <-done; err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	wantOwner(t, who.Uid, o.dir)
}

// TestBackAfterAnApp leads back to the questions after the App was created: its GitHub stays, and the page says which address its webhook
// needs now. A step that was skipped is played again.
func TestBackAfterAnApp(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.answerAll()
	base := o.answers["github"]
	delete(o.answers, "github")
	delete(o.answers, "public_url")
	o.answers["agent_program"] = "install"
	o.env.Install = func(context.Context, string, string) error { return errors.New("the registry is away") }
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g, done := o.openPage(ctx)
	g.Send(g.Asked(ctx, "github"), "send", "github", base, "public_url", "http://localhost:1")
	const failed = "Failed: The agent's program"
	g.Send(g.Await(ctx, failed), "skip")
	g.Await(ctx, "Create the GitHub App")
	if err := os.WriteFile(filepath.Join(o.dir, "config.yml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g.Get(g.Confirm(g.Address))
	g.Send(g.Await(ctx, "Failed: The configuration"), "back")
	p := g.Asked(ctx, "public_url")
	if p.Guide(t).Has("github") {
		t.Errorf("the page asks for another GitHub:\n%s", p.Body())
	}
	g.Send(p, "send", "public_url", "http://localhost:2")
	g.Send(g.Await(ctx, failed), "skip")
	p = g.Await(ctx, "Failed: The configuration")
	for _, want := range []string{base + "</a> is kept, because the App exists there", "/api/github/hook", "http://localhost:2/", o.github.App().Slug} {
		if !strings.Contains(p.Text, want) {
			t.Errorf("the page lacks %q:\n%s", want, p.Body())
		}
	}
	stop()
	<-done
}

// TestSkipEndsAProgram skips a step while a program works for it, which then fails in its own words: the step is skipped, not failed. An
// App whose credentials could not be stored is shown even so.
func TestSkipEndsAProgram(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.answerAll()
	o.opts.Skip = []string{"installation", "webhook", "repositories"}
	o.env.Doctor = func(ctx context.Context, _ string) (string, []string, error) {
		<-ctx.Done()
		return "", nil, errors.New("signal: killed")
	}
	blocked := filepath.Join(o.dir, "app.pem")
	exchanging, left := make(chan struct{}), make(chan struct{})
	o.env.Transport = before(func() {
		close(exchanging)
		<-left
	})
	g, done := o.openPage(t.Context())
	p := g.Await(t.Context(), "Create the GitHub App")
	back := g.Confirm(g.Address)
	go func() { // the browser waits for the exchange
		resp, err := webtest.Client().Get(back)
		if err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-exchanging
	if err := os.MkdirAll(filepath.Join(blocked, "full"), 0o700); err != nil {
		t.Error(err)
	}
	form := p.Guide(t)
	form.Set("do", "back")
	g.Post(g.Address, form)
	close(left)
	p = g.Await(t.Context(), "Nothing is lost: the App's credentials are in")
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	g.Send(p, "again")
	g.Send(g.Await(t.Context(), "Checks (11 of 13)"), "skip")
	p = g.Await(t.Context(), "The setup is complete")
	if strings.Contains(o.screen.String(), "signal: killed") || strings.Count(o.screen.String(), "[1/13]") != 1 {
		t.Errorf("the step failed, or the problem with the credentials was not shown:\n%s", o.screen)
	}
	g.Send(p, "stop")
	if err := <-done; err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
}
