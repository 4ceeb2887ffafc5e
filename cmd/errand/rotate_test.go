package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/provenance"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// TestRotationLosesNoWebhook: while the webhook secret is replaced, with the restart that this needs, errand answers every webhook of
// GitHub's with success, and afterwards it does not accept the previous secret.
func TestRotationLosesNoWebhook(t *testing.T) {
	t.Parallel()
	bin := build(t)
	c := newClinic(t, bin)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ln.Close(), socket.Close() })
	c.config["listen"], c.config["timing"] = ln.Addr().String(), "{shutdown: 2s}"
	file := c.file()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	restart := func() *process {
		cmd := exec.CommandContext(ctx, bin, "serve", "-c", file)
		cmd.Env = os.Environ()
		inherits(t, cmd, socket)
		return begin(t, cmd)
	}
	p := restart()
	c.github.SetWebhook("http://"+ln.Addr().String()+handlers.HookPath, "")
	before, stop := len(c.github.Deliveries()), sendWebhooks(ctx, c)
	text := rotate(ctx, file, func() {
		p.stop(t)
		p = restart()
	})
	for _, want := range []string{"contains a new secret", "accepts both secrets", "signs with the new secret", "and it arrived", "previous secret is removed", "code 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %q, want %q", text, want)
		}
	}
	p.stop(t)
	p = restart()
	stop()
	c.github.Suspend("acme", false)
	if err := c.github.WaitHooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	sent := c.github.Deliveries()[before:]
	for _, d := range sent {
		if d.StatusCode != 200 {
			t.Errorf("webhook %s was answered with %d %s", d.Event, d.StatusCode, d.Status)
		}
	}
	if len(sent) < 3 {
		t.Errorf("GitHub sent %d webhooks, want more", len(sent))
	}
	if now := strings.Fields(string(read(t, c.path("hook")))); len(now) != 1 || len(now[0]) != 64 || now[0] != c.github.App().WebhookSecret {
		t.Errorf("the file has %d secrets, want that of GitHub", len(now))
	}
	if strings.Contains(text, c.github.App().WebhookSecret) {
		t.Error("the secret is printed")
	}
	if err := sendWebhook("http://"+ln.Addr().String()+handlers.HookPath, guidOf(1)); err == nil { // signed with the first secret
		t.Error("the previous secret is still accepted")
	}
	p.stop(t)
}

// sendWebhooks has GitHub send webhooks all the time, until the function that it returns is called.
func sendWebhooks(ctx context.Context, c *clinic) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(50 * time.Millisecond) // fewer than GitHub's log lists at once until it is read again
		defer tick.Stop()
		for range 100_000 {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			c.github.Suspend("acme", false)
			if c.github.WaitHooks(ctx) != nil {
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// rotate replaces the webhook secret, and restarts errand when the command asks for it. It returns what the command prints, and its code.
func rotate(ctx context.Context, file string, restart func()) string {
	out, in := io.Pipe()
	go func() {
		code := run(ctx, cli.World{
			Args: []string{"rotate", "webhook-secret", "-c", file}, In: strings.NewReader(""), Out: in, Err: in, Lookup: os.LookupEnv,
		})
		_, _ = fmt.Fprintf(in, "code %d", code)
		_ = in.Close()
	}()
	text := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "Now restart errand") {
			restart()
		}
	}
	return text
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRotateRefuses: what cannot be rotated is refused with a remedy, and changes nothing.
func TestRotateRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(c *clinic)
		args   []string
		code   int
		want   string
	}{
		"nothing":      {args: nil, code: cli.ExitUsage, want: "webhook-secret, tether-key or provenance-key"},
		"another":      {args: []string{"app-key"}, code: cli.ExitUsage, want: `but got "app-key"`},
		"a surplus":    {args: []string{"webhook-secret", "x"}, code: cli.ExitUsage, want: "takes no arguments"},
		"errand ended": {args: []string{"webhook-secret", "--wait", "1ms"}, code: cli.ExitFailed, want: "restart it, and run this command again; nothing was changed at GitHub"},
		"poll": {func(c *clinic) { c.reads(hookURL) }, []string{"webhook-secret"}, cli.ExitFailed,
			"needs no secret"},
		"three secrets": {func(c *clinic) { c.write("hook", strings.Repeat("hook-secret-for-tests\n", 3), 0o600) }, []string{"webhook-secret"}, cli.ExitFailed,
			"contains 3 lines: write at most 2"},
		"a short second one": {func(c *clinic) { c.write("hook", "hook-secret-for-tests\nshort\n", 0o600) }, []string{"webhook-secret"}, cli.ExitFailed,
			"fewer than 16 characters"},
		"two at once": {func(c *clinic) { c.lock() }, []string{"webhook-secret", "--wait", "1ms"}, cli.ExitFailed,
			"another process is replacing the webhook secret"},
		"no data folder": {func(c *clinic) { c.write("plain", "", 0o600); c.config["data"] = c.path("plain/data") }, []string{"tether-key"}, cli.ExitFailed,
			"not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, "errand")
			if tt.change != nil {
				tt.change(c)
			}
			args := append([]string{"rotate"}, tt.args...)
			if tt.code != cli.ExitUsage {
				args = append(args, "-c", c.file())
			}
			code, _, errs := callIn(t, c.bin, nil, args...)
			if code != tt.code || !strings.Contains(errs, tt.want) {
				t.Errorf("got code %d and %q, want %q", code, errs, tt.want)
			}
			if c.github.App().WebhookSecret != "hook-secret-for-tests" {
				t.Error("the secret at GitHub was changed")
			}
		})
	}
}

// lock does what a rotation does that is under way: it locks the folder of the secret.
func (c *clinic) lock() {
	f, err := os.Open(c.dir)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = f.Close() })
}

// TestRotationContinues: a rotation that failed at GitHub leaves both secrets in the file, and the next one continues with them.
func TestRotationContinues(t *testing.T) {
	t.Parallel()
	bin := build(t)
	for name, fault := range map[string]simgithub.Fault{
		"GitHub refuses the secret":      {Path: "^/app/hook/config$", Method: "PATCH", Status: 422, Body: "{}"},
		"GitHub does not repeat":         {Path: "/attempts$", Status: 422, Body: "{}"},
		"GitHub's log cannot be read":    {Path: "^/app/hook/deliveries$", Status: 404, Body: "{}"},
		"GitHub cannot reach errand now": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, bin)
			c.write("hook", strings.Repeat("n", 32)+"\nhook-secret-for-tests\n", 0o640) // as after an interruption
			c.serve()
			if fault.Path != "" {
				c.github.SetWebhook("http://"+c.config["listen"]+handlers.HookPath, "")
				c.fault(fault)
			} else {
				c.github.SetWebhook("http://127.0.0.1:1"+handlers.HookPath, "")
			}
			code, out, errs := callIn(t, c.bin, nil, "rotate", "webhook-secret", "-c", c.file())
			if code != cli.ExitFailed || !strings.Contains(errs, "run this command again") {
				t.Errorf("got code %d, %q and %q, want a failure with the remedy", code, out, errs)
			}
			if n := len(strings.Fields(string(read(t, c.path("hook"))))); n != 2 {
				t.Errorf("the file has %d secrets, want both", n)
			}
			c.github.ClearFaults() // the running errand, too, reads the log
			c.github.SetWebhook("http://"+c.config["listen"]+handlers.HookPath, "")
			code, out, errs = callIn(t, c.bin, nil, "rotate", "webhook-secret", "-c", c.file())
			if code != cli.ExitOK || !strings.Contains(out, "and it arrived") {
				t.Errorf("got code %d, %q and %q, want success", code, out, errs)
			}
			if got := string(read(t, c.path("hook"))); got != strings.Repeat("n", 32)+"\n" || c.github.App().WebhookSecret != strings.Repeat("n", 32) {
				t.Errorf("got the file %q, want the new secret, also at GitHub", got)
			}
			if info, err := os.Stat(c.path("hook")); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("got mode %v (%v), want it kept", info.Mode(), err)
			}
		})
	}
}

// TestRotateTetherKey: the previous key stays until errand starts while no agent works.
func TestRotateTetherKey(t *testing.T) {
	t.Parallel()
	c := newClinic(t, build(t))
	if err := os.MkdirAll(c.path("data"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.write("data/tether_key", strings.Repeat("o", 32), 0o600)
	if code, out, errs := callIn(t, c.bin, nil, "rotate", "tether-key", "-c", c.file()); code != cli.ExitOK || !strings.Contains(out, "Restart errand") {
		t.Fatalf("got code %d, %q and %q", code, out, errs)
	}
	both := read(t, c.path("data/tether_key"))
	if len(both) != 64 || string(both[32:]) != strings.Repeat("o", 32) || string(both[:32]) == strings.Repeat("o", 32) {
		t.Fatalf("got a file of %d bytes, want a new key and the previous one", len(both))
	}
	if code, _, errs := callIn(t, c.bin, nil, "rotate", "tether-key", "-c", c.file()); code != cli.ExitFailed || !strings.Contains(errs, "while no agent works") {
		t.Errorf("a second rotation: got code %d and %q", code, errs)
	}
	if again := read(t, c.path("data/tether_key")); !bytes.Equal(again, both) {
		t.Error("a refused rotation changed the file")
	}
	c.serve()
	if now := read(t, c.path("data/tether_key")); !bytes.Equal(now, both[:32]) {
		t.Errorf("after a start without agents: got a file of %d bytes, want the new key", len(now))
	}
}

// TestRotateProvenanceKey: the public keys are printed, and every rotation keeps the previous ones.
func TestRotateProvenanceKey(t *testing.T) {
	t.Parallel()
	c := newClinic(t, build(t))
	if err := os.MkdirAll(c.path("data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for want := range 2 {
		code, out, errs := callIn(t, c.bin, nil, "rotate", "provenance-key", "-c", c.file())
		list, err := provenance.ParseKeys([]byte(out[max(0, strings.Index(out, "{")):]))
		if code != cli.ExitOK || err != nil || len(list) != want+2 || !list[0].Retired.IsZero() || list[1].Retired.IsZero() {
			t.Fatalf("rotation %d: got code %d, %d keys, %v: %q %q", want+1, code, len(list), err, out, errs)
		}
	}
}
