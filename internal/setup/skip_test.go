package setup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/setup"
)

// TestEveryStepCanBeSkipped leaves each step out, without the answers that it asks for: the setup ends, says what is left to do, and what was left
// out can be made up for.
func TestEveryStepCanBeSkipped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lacks      []string // answers
		incomplete bool
		says       string
		check      func(config.Config) bool
	}{
		"address": {
			[]string{"public_url", "listen", "data"}, false, "so it reads webhooks from GitHub's log (github.webhooks: poll).",
			func(c config.Config) bool {
				return c.GitHub.Webhooks == config.WebhooksPoll && c.Listen == "127.0.0.1:8080"
			},
		},
		"trigger":      {[]string{"assignee"}, false, "", func(c config.Config) bool { return c.Trigger.Label == "errand" }},
		"model":        {[]string{"model_key"}, true, "There is no key of a model provider, without which errand does not start.", nil},
		"vms":          {[]string{"vms"}, false, "", func(c config.Config) bool { return c.Provider == config.ProviderLocal }},
		"vms, chosen":  {nil, true, "There is no Hetzner Cloud token, so no configuration can be written", nil},
		"program":      {nil, false, "", nil},
		"app":          {nil, true, "There is no GitHub App, without which errand does not start. If somebody else creates it", nil},
		"config":       {nil, true, "The configuration was not written", nil},
		"installation": {nil, false, "- Install the App on your repositories: http://", nil},
		"repositories": {nil, false, `- In each repository, create the label "errand" and add worker with the triage role.`, nil},
		"service":      {nil, false, "", nil},
		"checks":       {nil, false, "- Check everything: `errand doctor -c ", nil},
		"start":        {nil, false, "", nil},
		"webhook":      {nil, false, "- Prove that webhooks arrive, once errand runs: `errand setup --dir ", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			step, chosen, _ := strings.Cut(name, ", ")
			if chosen != "" {
				o.answers["vms"] = "hetzner"
			}
			kept := map[string]string{}
			for _, key := range c.lacks {
				if v, ok := o.answers[key]; ok {
					kept[key] = v
				}
				delete(o.answers, key)
			}
			before := o.github.App().ID
			o.opts.Skip = []string{step}
			if step != "installation" && step != "repositories" {
				o.opts.Skip = append(o.opts.Skip, "installation")
			}
			if err := o.run(); err != nil {
				t.Fatalf("%v\n%s", err, o.screen)
			}
			o.wantOutput("Skipped.", c.says)
			_, err := os.Stat(filepath.Join(o.dir, "config.yml"))
			if c.incomplete != (err != nil) || c.incomplete != strings.Contains(o.screen.String(), "\nThe setup is not complete: there is no configuration") {
				t.Errorf("%v\n%s", err, o.screen)
			}
			if c.check != nil && !c.check(o.load()) {
				t.Errorf("the configuration is\n%s", o.read("config.yml"))
			}
			if c.incomplete {
				o.wantOutput("Not possible yet, without the configuration.", "To continue, run `/opt/errand/bin/errand setup --dir "+o.dir+"`")
				if setup.Unfinished(o.dir) == "" {
					t.Error("nothing is missing")
				}
			}
			if step == "app" && o.github.App().ID != before {
				t.Error("an App was created")
			}
			o.opts.Skip, o.opts.Force = []string{"installation"}, !c.incomplete
			if chosen != "" {
				if left := setup.Unfinished(o.dir); left != "the token of Hetzner Cloud (step vms)" {
					t.Errorf("missing: %q", left)
				}
				o.answers["vms"] = "local"
			}
			for key, v := range kept {
				o.answers[key] = v
			}
			if err := o.run(); err != nil {
				t.Fatalf("%v\n%s", err, o.screen)
			}
			if cfg := o.load(); cfg.PublicURL != "http://localhost:1" || cfg.Trigger.Assignee != "worker" || !cfg.Models["anthropic"].Key.Set() || setup.Unfinished(t.TempDir()) != "" {
				t.Errorf("the configuration is\n%s", o.read("config.yml"))
			}
		})
	}
}

// TestAllStepsSkipped leaves everything out, without any answer, in a file and by the buttons of the page. Nothing is made.
func TestAllStepsSkipped(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	before := o.github.App().ID
	o.answers, o.opts.Skip = map[string]string{"github": o.answers["github"]}, setup.StepNames()
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	o.wantOutput("The setup is not complete", "There is no GitHub App")
	o.answers, o.opts.Skip = nil, []string{"program"}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g, done := o.openPage(ctx)
	for _, key := range []string{"github", "label", "model_key", "vms", "app"} {
		g.Send(g.Asked(ctx, key), "skip")
	}
	p := g.Await(ctx, "<h2>The setup is not complete</h2>")
	if !strings.Contains(p.Text, "choose Run the setup again") {
		t.Errorf("the last page:\n%s", p.Body())
	}
	g.Send(p, "again")
	g.Send(g.Asked(ctx, "github"), "skip")
	g.Asked(ctx, "label")
	stop()
	<-done
	if entries, err := os.ReadDir(o.dir); err != nil || len(entries) != 2 || o.github.App().ID != before { // the lock and the progress
		t.Errorf("files %v, %v; App %d, before %d", entries, err, o.github.App().ID, before)
	}
}

// TestWrongHetznerToken gives a token that Hetzner refuses, in a file, in a terminal and on the page: it is refused at the question, before an App
// is created.
func TestWrongHetznerToken(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.answerAll()
	o.answers["vms"], o.answers["hetzner_token"] = "hetzner", "file:"+o.path("hetzner")
	o.opts.Skip = []string{"installation", "repositories", "webhook", "service"}
	o.write("hetzner", "a-wrong-token")
	before := o.github.App().ID
	const refused = "Hetzner refuses hetzner.token. Create a token with read and write permission in the project's security settings at Hetzner"
	if err := o.run(); err == nil || !strings.Contains(err.Error(), refused+": correct hetzner_token") || o.github.App().ID != before {
		t.Errorf("in a file: %v", err)
	}
	delete(o.answers, "hetzner_token")
	delete(o.answers, "app")
	o.env.Interactive, o.env.In = true, strings.NewReader("another-wrong-token\n")
	if err := o.run(); err == nil || o.github.App().ID != before {
		t.Errorf("in a terminal: %v", err)
	}
	o.wantOutput(refused + ". Enter another one.")

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g, done := o.openPage(ctx)
	p := g.Send(g.Asked(ctx, "hetzner_token"), "send", "hetzner_token", "a-wrong-token")
	wantProblem(t, p, "hetzner_token", "Hetzner refuses hetzner.token.")
	if strings.Contains(p.Text, "a-wrong-token") {
		t.Error("the page shows the token")
	}
	g.Send(p, "send", "hetzner_token", "hetzner-token-for-tests")
	g.Asked(ctx, "app")
	stop()
	<-done
	if o.read("hetzner-token") != "hetzner-token-for-tests\n" {
		t.Errorf("the stored token is %q", o.read("hetzner-token"))
	}
	if err := os.WriteFile(filepath.Join(o.dir, "hetzner-token"), []byte("now-wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.opts.Web, o.env.Interactive = false, false
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "write another one to "+o.dir+"/hetzner-token, or delete that file and ") {
		t.Errorf("a stored token: %v", err)
	}
}

// TestHetznerIsDown tries a token while Hetzner does not answer: the operator can go on with it, by a flag, a word or a button. A limit stops nobody.
func TestHetznerIsDown(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.answerAll()
	o.answers["vms"], o.answers["hetzner_token"] = "hetzner", "file:"+o.path("hetzner")
	skip := []string{"installation", "repositories", "webhook", "service"}
	o.opts.Skip = skip
	o.write("hetzner", "token-1")
	down := errors.New("dial tcp: connection refused")
	o.env.TryVMs = func(context.Context, string) (string, error) { return "", down }
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "connection refused: check status.hetzner.com and this host's network") ||
		!strings.Contains(err.Error(), "To go on with it untried, continue with --skip vms") {
		t.Errorf("in a file: %v", err)
	}
	o.opts.Skip = append(slices.Clone(skip), "vms")
	if err := o.run(); err != nil || o.load().Hetzner.Token.Reveal() != "token-1" {
		t.Errorf("%v\n%s", err, o.screen)
	}
	o.wantOutput("Hetzner's token was not tried; `errand doctor` tries it.")

	o.opts.Skip, o.opts.Force = skip, true
	o.env.Interactive, o.env.In = true, strings.NewReader("perhaps\nagain\nskip\n")
	o.write("hetzner", "token-2")
	if err := o.run(); err != nil || o.load().Hetzner.Token.Reveal() != "token-2" {
		t.Errorf("%v\n%s", err, o.screen)
	}
	if n := strings.Count(o.screen.String(), "How to continue (again, skip, back or stop) [stop]: "); n != 3 {
		t.Errorf("the operator was asked %d times:\n%s", n, o.screen)
	}

	delete(o.answers, "hetzner_token")
	if err := os.Remove(filepath.Join(o.dir, "hetzner-token")); err != nil {
		t.Fatal(err)
	}
	g, done := o.openPage(t.Context())
	g.Send(g.Asked(t.Context(), "hetzner_token"), "send", "hetzner_token", "token-3")
	g.Send(g.Await(t.Context(), "connection refused"), "skip")
	g.Send(g.Await(t.Context(), "The setup is complete"), "stop")
	if err := <-done; err != nil || o.load().Hetzner.Token.Reveal() != "token-3" {
		t.Errorf("%v\n%s", err, o.screen)
	}

	o.opts.Web, o.env.Interactive, down = false, false, fleet.ErrLimited
	if err := o.run(); err != nil {
		t.Error(err)
	}
	o.wantOutput("Not checked: " + fleet.ErrLimited.Error())
}
