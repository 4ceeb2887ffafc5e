package setup_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/cli/clitest"
	"github.com/errand-bot/errand/internal/clock"
)

// TestPastedKeyIsDiscarded pastes a private key where its file is asked for. No line of it reaches another question.
func TestPastedKeyIsDiscarded(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	key := strings.TrimSpace(string(o.github.App().PEM))
	o.write("app.pem", key)
	for k, v := range map[string]string{
		"webhooks": "push", "tls": "proxy", "trusted_proxies": "127.0.0.1", "label": "errand", "agent": "claude", "model_url": "https://api.anthropic.com",
		"model_auth": "key", "vms": "local", "agent_program": "present", "user": o.answers["user"], "app": "existing", "app_id": strconv.FormatInt(o.github.App().ID, 10),
	} {
		o.answers[k] = v
	}
	o.opts.Skip = []string{"installation", "webhook", "repositories", "service"}
	keyboard, screen := clitest.NewTerminal(t)
	o.env.Interactive, o.env.In = true, screen
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	done := o.start(ctx)
	for _, c := range []struct{ await, enter string }{
		{`(Private key of the existing App)[^\n]*: $`, key}, // its last line is not complete
		{`(cannot be entered here)(?s:.*)Private key[^\n]*: $`, "MIIEowIBAAKCAQEA\n"},
		{`(not the secret itself)(?s:.*)Private key[^\n]*: $`, "file:" + o.path("app.pem") + "\n"},
		{`(Webhook secret of the existing App)[^\n]*: $`, o.github.App().WebhookSecret + "\n"},
	} {
		if o.screen.Await(ctx, regexp.MustCompile(c.await)) == "" {
			t.Fatalf("no %q:\n%s", c.await, o.screen)
		}
		if _, err := keyboard.WriteString(c.enter); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	for _, line := range strings.Split(key, "\n")[1:] {
		if strings.Contains(o.screen.String()+o.read("setup.json")+o.read("config.yml"), line) || o.read("webhook-secret") == line+"\n" {
			t.Errorf("a line of the key is in the output or in a file:\n%s", o.screen)
		}
	}
	if n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCINQ); err != nil || n != 0 {
		t.Errorf("%d bytes are left for the shell (%v)", n, err)
	}
}

// TestInterruptionRestoresTheEcho: after Ctrl-C at the question for a secret, the terminal shows again what is typed.
func TestInterruptionRestoresTheEcho(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.answerAll()
	delete(o.answers, "model_key")
	_, screen := clitest.NewTerminal(t)
	o.env.Interactive, o.env.In = true, screen
	echoes := func() bool {
		state, err := unix.IoctlGetTermios(int(screen.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return state.Lflag&unix.ECHO != 0
	}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	done := o.start(ctx)
	o.screen.Await(ctx, regexp.MustCompile(`(API key)[^\n]* \(not shown\): $`))
	for echoes() { // the question is shown just before
		if err := clock.Sleep(ctx, time.Millisecond); err != nil {
			t.Fatal("the secret would be shown")
		}
	}
	stop()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "interrupted; run the same command again") || !echoes() {
		t.Errorf("got error %v, and an echo: %v", err, echoes())
	}
}
