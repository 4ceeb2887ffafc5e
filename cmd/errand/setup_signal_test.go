package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/setup/setuptest"
)

// TestSetupSurvivesSignals: however often somebody presses Ctrl-C while GitHub answers with the App's credentials, and even if the
// terminal goes away, setup stores them before it ends.
func TestSetupSurvivesSignals(t *testing.T) {
	t.Parallel()
	for name, signals := range map[string][]syscall.Signal{
		"Ctrl-C twice":           {syscall.SIGINT, syscall.SIGINT},
		"Ctrl-C twice, --web":    {syscall.SIGINT, syscall.SIGINT},
		"the end of a terminal":  {syscall.SIGHUP},
		"stopped by a service":   {syscall.SIGTERM, syscall.SIGTERM},
		"everything, repeatedly": {syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := build(t)
			c := newClinic(t, bin)
			github, asked, answer := slowExchange(t, c.github.BaseURL())
			models := strings.Split(c.config["models"], "'")[1]
			c.write("answers.yml", "github: "+github+"\npublic_url: https://errand.example.org\nlisten: 127.0.0.1:1\nlabel: errand\nassignee: ''\ntrusted_proxies: ''\n"+
				"model_url: "+models+"\nmodel_key: 'file:"+c.path("model")+"'\napp_name: errand two\n"+
				"webhooks: push\ntls: proxy\ndata: "+c.path("data")+"\nagent: claude\nmodel_auth: key\nvms: local\nagent_program: present\napp: create\norganization: ''\n", 0o600)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			t.Cleanup(cancel)
			var screen setuptest.Screen
			cmd := exec.CommandContext(ctx, bin, "setup", "--dir", c.path("made"), "--answers", c.path("answers.yml"))
			if strings.HasSuffix(name, "--web") {
				cmd.Args = append(cmd.Args, "--web")
			}
			cmd.Env, cmd.Stdout, cmd.Stderr = os.Environ(), &screen, &screen
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			browser := setuptest.NewGuide(t, screen.Await(ctx, setuptest.NextPage))
			browser.Await(ctx, "Create the GitHub App")
			back := browser.Confirm(browser.Address)
			go func() { // setup may end before it has answered the browser
				if resp, err := webtest.Client().Get(back); err == nil {
					_ = resp.Body.Close()
				}
			}()
			<-asked
			for _, s := range signals {
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			close(answer)
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != cli.ExitFailed || !strings.Contains(screen.String(), "interrupted") {
				t.Errorf("setup ended with %v:\n%s", err, screen.String())
			}
			if pem, err := os.ReadFile(filepath.Join(c.path("made"), "app.pem")); err != nil || !strings.Contains(string(pem), "PRIVATE KEY") {
				t.Errorf("the App's key is lost (%v):\n%s", err, screen.String())
			}
		})
	}
}

// slowExchange returns the address of a GitHub that answers the exchange of a code only once answer is closed. It reports that the
// exchange was asked for.
func slowExchange(t *testing.T, github string) (address string, asked, answer chan struct{}) {
	t.Helper()
	target, err := url.Parse(github)
	if err != nil {
		t.Fatal(err)
	}
	asked, answer = make(chan struct{}), make(chan struct{})
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/app-manifests/") {
			close(asked)
			<-answer
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked, answer
}
