package setup_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/setup"
)

// newTerminal returns both ends of a terminal: the keyboard, and what a program reads.
func newTerminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	return keyboard, screen
}

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
	keyboard, screen := newTerminal(t)
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

// TestTypedAheadIsDiscarded: neither what the terminal holds nor what was read from it before is an answer to a later question.
func TestTypedAheadIsDiscarded(t *testing.T) {
	t.Parallel()
	keyboard, screen := newTerminal(t)
	in := bufio.NewReader(io.MultiReader(strings.NewReader("n\ny\n"), screen))
	if line, err := in.ReadString('\n'); err != nil || line != "n\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	if _, err := keyboard.WriteString("y\ny"); err != nil {
		t.Fatal(err)
	}
	if err := setup.DiscardTyped(screen, in); err != nil {
		t.Fatal(err)
	}
	if _, err := keyboard.WriteString("later\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := in.ReadString('\n'); err != nil || line != "later\n" {
		t.Errorf("got %q, %v", line, err)
	}
}
