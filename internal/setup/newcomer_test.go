package setup_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/setup/setuptest"
)

// TestMegabyteAsAToken pastes a megabyte as a token on the page and in a terminal: it is refused, and the question can be answered after that.
func TestMegabyteAsAToken(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.answerAll()
	o.answers["vms"] = "hetzner"
	delete(o.answers, "app")
	huge := strings.Repeat("t", 1<<20)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g, done := o.openPage(ctx)
	form := g.Asked(ctx, "hetzner_token").Guide(t)
	form.Set("do", "send")
	form.Set("hetzner_token", huge)
	if p := g.Post(g.Address, form); p.Status != http.StatusRequestEntityTooLarge || !strings.Contains(p.Text, "Go back and correct them") || strings.Contains(p.Text, "tttt") {
		t.Errorf("status %d\n%.2000s", p.Status, p.Body())
	}
	p := g.Send(g.Asked(ctx, "hetzner_token"), "send", "hetzner_token", huge[:3000])
	wantProblem(t, p, "hetzner_token", "at most 2000 characters")
	p = g.Send(p, "send", "hetzner_token", "two words")
	wantProblem(t, p, "hetzner_token", "a key is one line")
	stop()
	<-done
	o.opts.Web = false
	o.env.Interactive, o.env.In = true, strings.NewReader(huge+"\ngood-token\n")
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "the input has ended") { // at the question for the App
		t.Errorf("in a terminal: %v", err)
	}
	if o.read("hetzner-token") != "good-token\n" || strings.Contains(o.screen.String(), "tttt") {
		t.Errorf("the token is %.100q", o.read("hetzner-token"))
	}
}

// TestInterruptionWhileATokenIsTried interrupts the request for a token, and a step that waits for a decision. A further setup asks for nothing twice.
func TestInterruptionWhileATokenIsTried(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.answerAll()
	o.answers["vms"] = "hetzner"
	usual := o.env.TryVMs
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o.env.TryVMs = func(ctx context.Context, _ string) (string, error) {
		stop()
		return "", clock.Sleep(ctx, 1<<40)
	}
	o.env.Interactive, o.env.In = true, strings.NewReader("hetzner-token-for-tests\n")
	if err := <-o.start(ctx); err == nil || !strings.Contains(err.Error(), "interrupted; run the same command again") {
		t.Errorf("during the request: %v", err)
	}
	o.env.TryVMs = usual
	o.answers["model_key"] = "env:MISSING_AFTER_ALL"
	o.env.Lookup = func(string) (string, bool) { return "wrong", true }
	in, typist, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), typist.Close() }()
	o.env.In, o.screen = in, &setuptest.Screen{}
	o.env.Out = o.screen
	ctx, stop = context.WithCancel(t.Context())
	defer stop()
	done := o.start(ctx)
	o.screen.Await(ctx, regexp.MustCompile(`(How to continue) \(again, skip, back or stop\) \[stop\]: $`))
	stop()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "the provider refuses the key: correct model_key") {
		t.Errorf("at a decision: %v", err)
	}
	if _, err := os.Stat(filepath.Join(o.dir, "config.yml")); err == nil {
		t.Error("a configuration was written")
	}
}
