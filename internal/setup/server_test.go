package setup_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/setup/setuptest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// TestEventsOfTheServersVersion creates an App on an older and on a newer Enterprise Server, each of which refuses events that it does not know.
func TestEventsOfTheServersVersion(t *testing.T) {
	t.Parallel()
	for version, c := range map[string]struct {
		says         string
		dependencies bool
	}{
		"3.18.4": {"GitHub Enterprise Server 3.18.4 does not know sub_issues and issue_dependencies: the App does without", false},
		"3.19.1": {"GitHub Enterprise Server 3.19.1 does not know sub_issues: the App does without", true},
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, func(c *simgithub.Config) { c.EnterpriseVersion = version })
			o.opts.Skip = []string{"installation", "webhook", "repositories", "service"}
			if err := o.run(); err != nil {
				t.Fatalf("%v\n%s", err, o.screen)
			}
			o.wantOutput("A GitHub Enterprise Server "+version+" answers at "+o.answers["github"], c.says)
			if events := o.github.App().Events; slices.Contains(events, "issue_dependencies") != c.dependencies || slices.Contains(events, "sub_issues") || !slices.Contains(events, "issues") {
				t.Errorf("the App's events are %v", events)
			}
		})
	}
}

// TestAnotherServerInsteadOfGitHub gives the address of a web server that is not GitHub, in a file and on the page, and then of one that is down.
func TestAnotherServerInsteadOfGitHub(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	base := o.answers["github"]
	other := "http://" + setuptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>Hello</html>")) }))
	o.answers["github"] = other
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "github: this is not the API of a GitHub Enterprise Server: "+other+"/api/v3/meta answers without a version") {
		t.Errorf("in a file: %v", err)
	}
	o.answers["github"] = "http://127.0.0.1:1"
	o.answers["app"], o.answers["app_code"] = "code", "a-code"
	if err := o.run(); err == nil || strings.Contains(err.Error(), "reach errand") {
		t.Errorf("a server that is down: %v", err)
	}
	o.wantOutput("Not checked: ask for the version of the Enterprise Server", "[6/13]")

	o = newOffice(t)
	o.answerAll()
	delete(o.answers, "github")
	delete(o.answers, "public_url")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g, done := o.openPage(ctx)
	p := g.Send(g.Asked(ctx, "github"), "send", "github", other, "public_url", "http://localhost:1")
	wantProblem(t, p, "github", "this is not the API of a GitHub Enterprise Server")
	g.Send(p, "send", "github", base)
	g.Await(ctx, "Create the GitHub App")
	stop()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("the setup ended with %v", err)
	}
	o.wantOutput("A GitHub Enterprise Server 3.18.0 answers at " + base)
}

// TestTakenPort sets errand up where another program has the port: in a terminal and on the page the operator chooses again, and a file is only
// told. A program that answers 200 to everything is not taken for errand.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	taken := setuptest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	o.opts.Skip = []string{"installation", "repositories", "service"}
	o.answers["listen"] = taken
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	o.wantOutput("another program uses "+taken+" now", "errand is not running yet, so no webhook can arrive")
	if strings.Contains(o.screen.String(), "and errand is running") {
		t.Errorf("another program is taken for errand:\n%s", o.screen)
	}

	o.opts.Force = true
	delete(o.answers, "listen")
	o.answerAll()
	o.env.Interactive, o.env.In = true, strings.NewReader(taken+"\n127.0.0.1:1\n")
	if err := o.run(); err != nil || o.load().Listen != "127.0.0.1:1" {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	o.env.In = strings.NewReader(taken + "\n\n") // kept
	if err := o.run(); err != nil || o.load().Listen != taken {
		t.Fatalf("%v\n%s", err, o.screen)
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g, done := o.openPage(ctx)
	p := g.Send(g.Asked(ctx, "listen"), "send", "listen", taken)
	wantProblem(t, p, "listen", "another program uses "+taken+" now; keep it only if that program ends before errand starts")
	g.Send(p, "send")
	g.Send(g.Await(ctx, "The setup is complete"), "stop")
	if err := <-done; err != nil {
		t.Errorf("%v\n%s", err, o.screen)
	}
}
