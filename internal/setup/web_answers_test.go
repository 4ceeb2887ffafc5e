package setup_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/config"
)

// TestAnswersDependOnEachOther changes answers on which others depend, leaves the page in the middle, and comes back. Nobody gets a key
// that was entered for another provider.
func TestAnswersDependOnEachOther(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	base := o.answers["github"]
	o.answers = nil
	var keys []string
	o.env.TryModels = func(_ context.Context, cfg config.Config) map[string]error {
		for name, m := range cfg.Models {
			keys = append(keys, name+" "+m.Key.Reveal())
		}
		return nil
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.dir, "setup.json"), []byte(`{"answers": {"label": "errand", "data": "nowhere"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g, done := o.openPage(ctx)

	p := g.Asked(ctx, "github")
	wantProblem(t, p, "data", "The earlier answer is not valid any more")
	p = g.Send(p, "send", "github", base, "tls", "acme", "public_url", "https://errand.example.org")
	if f := p.Guide(t); f.Get("listen") != ":443" || f.Has("trusted_proxies") || !strings.Contains(p.Text, "Your other answers have changed this default") {
		t.Errorf("the default for listen is %q with the questions %v", f.Get("listen"), f)
	}
	p = g.Send(p, "send", "webhooks", "poll")
	if f := p.Guide(t); f.Get("listen") != "127.0.0.1:8080" || f.Has("public_url") || f.Get("github") != base {
		t.Errorf("with webhooks from the log the questions are %v", f)
	}
	p = g.Send(p, "send", "webhooks", "carrier pigeon")
	wantProblem(t, p, "webhooks", "write push or poll")
	p = g.Send(p, "send", "webhooks", "poll", "listen", "")
	wantProblem(t, p, "listen", "an answer is required")
	g.Send(p, "send", "listen", "127.0.0.1:1")

	g.Send(g.Asked(ctx, "label"), "send", "label", "")
	p = g.Send(g.Asked(ctx, "model_key"), "send", "model_url", "http://models.example", "model_key", "key-for-anthropic")
	wantProblem(t, p, "model_url", "the key travels there")
	if strings.Contains(p.Text, "key-for-anthropic") {
		t.Errorf("the page shows the key:\n%s", p.Body())
	}
	if !strings.Contains(p.Text, "An earlier entry is kept") {
		t.Errorf("the key has to be entered again:\n%s", p.Body())
	}
	p = g.Send(p, "send", "agent", "codex", "model_url", "https://api.anthropic.com")
	if f := p.Guide(t); f.Get("model_url") != "https://api.openai.com" || f.Has("model_auth") {
		t.Errorf("the questions for codex are %v", f)
	}
	p = g.Send(p, "send", "model_url", "https://api.openai.com")
	wantProblem(t, p, "model_key", "an answer is required")
	g.Send(p, "send", "model_key", "key-for-openai")
	g.Asked(ctx, "vms")
	stop()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "interrupted; run the same command again") {
		t.Errorf("the setup ended with %v", err)
	}
	if diff := cmp.Diff([]string{"openai key-for-openai"}, keys); diff != "" {
		t.Errorf("keys that were tried (-want +got):\n%s", diff)
	}

	wantEarlierAnswers(o, base)
}

// wantEarlierAnswers checks that a further setup shows what the first one was told, without secrets.
func wantEarlierAnswers(o *office, base string) {
	t := o.t
	t.Helper()
	again, stopAgain := context.WithCancel(t.Context())
	defer stopAgain()
	g, done := o.openPage(again)
	p := g.Asked(again, "github")
	if f := p.Guide(t); f.Get("github") != base || f.Get("webhooks") != "poll" || f.Get("listen") != "127.0.0.1:1" {
		t.Errorf("the earlier answers are %v", f)
	}
	g.Send(p, "send")
	p = g.Send(g.Asked(again, "label"), "send")
	if f := g.Asked(again, "agent").Guide(t); f.Get("agent") != "codex" || f.Has("model_key") {
		t.Errorf("the earlier answers are %v", f)
	}
	if strings.Contains(p.Text, "nowhere") || strings.Contains(o.read("setup.json"), "key-for") {
		t.Errorf("the progress is %s", o.read("setup.json"))
	}
	stopAgain()
	<-done
}

// TestRescuedCredentialsAreRemoved has a page repeat the step that could not store the App's credentials: no copy of them is left.
func TestRescuedCredentialsAreRemoved(t *testing.T) {
	o := newOffice(t)
	t.Setenv("TMPDIR", o.files)
	blocked := filepath.Join(o.dir, "setup.json")
	o.env.Transport = afterwards(func() {
		_ = os.Remove(blocked)
		_ = os.MkdirAll(filepath.Join(blocked, "full"), 0o700)
	})
	o.answerAll()
	o.opts.Skip = []string{"installation", "repositories", "webhook"}
	g, done := o.openPage(t.Context())
	g.Await(t.Context(), "Create the GitHub App")
	g.Get(g.Confirm(g.Address))
	p := g.Await(t.Context(), "its credentials are in "+o.files)
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	g.Send(p, "again")
	g.Send(g.Await(t.Context(), "The setup is complete"), "stop")
	if err := <-done; err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	if left, err := filepath.Glob(o.path("errand-setup.json-*")); err != nil || len(left) > 0 {
		t.Errorf("a copy of the credentials is left: %v %v", left, err)
	}
	if cfg := o.load(); cfg.GitHub.AppID != o.github.App().ID {
		t.Error("the configuration has another App")
	}
}

// TestStoredKeyIsReadFromItsFile replaces a key in its file after it was entered, and then pays the model in another way: the page uses the
// file, and asks for another key.
func TestStoredKeyIsReadFromItsFile(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.answerAll()
	for _, key := range []string{"label", "model_key", "model_auth", "app"} {
		delete(o.answers, key)
	}
	var keys []string
	o.env.TryModels = func(_ context.Context, cfg config.Config) map[string]error {
		m := cfg.Models["anthropic"]
		keys = append(keys, "key "+m.Key.Reveal()+", token "+m.Subscription.Token.Reveal())
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g, done := o.openPage(ctx)
	g.Send(g.Asked(ctx, "label"), "send")
	g.Send(g.Asked(ctx, "model_key"), "send", "model_key", "first")
	g.Send(g.Asked(ctx, "app"), "back")
	if err := os.WriteFile(filepath.Join(o.dir, "model-key"), []byte("second\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.Send(g.Asked(ctx, "label"), "send")
	g.Send(g.Asked(ctx, "model_auth"), "send")
	g.Send(g.Asked(ctx, "app"), "back")
	g.Send(g.Asked(ctx, "label"), "send")
	p := g.Send(g.Asked(ctx, "model_auth"), "send", "model_auth", "subscription")
	wantProblem(t, p, "model_key", "")
	g.Send(p, "send", "model_key", "third")
	g.Asked(ctx, "app")
	stop()
	<-done
	if diff := cmp.Diff([]string{"key first, token ", "key second, token ", "key , token third"}, keys); diff != "" {
		t.Errorf("keys that were tried (-want +got):\n%s", diff)
	}
	if old, err := filepath.Glob(filepath.Join(o.dir, "model-key.*.old")); err != nil || len(old) != 1 || o.read("model-key") != "third\n" {
		t.Errorf("the earlier key is not kept: %v %v", old, err)
	}
}
