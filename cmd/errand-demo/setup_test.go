package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/setup/setuptest"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// TestTrialCleansUp starts the simulators for errand setup, and stops them while errand runs, while it does not, and when that cannot be known.
func TestTrialCleansUp(t *testing.T) {
	for name, c := range map[string]struct {
		config      string // FOLDER stands for the setup's folder; empty: setup was not completed
		running     bool
		kept        bool
		said, fails string
	}{
		"not set up":         {},
		"errand was stopped": {config: validConfig, kept: false},
		"errand runs":        {config: validConfig, running: true, kept: true, said: "errand still runs, so its files were not deleted. Stop it, and delete DIR"},
		"a broken setup":     {config: "data: 1\nx: y", kept: true, fails: "x: this key is unknown"},
		"VMs of a cloud": {
			config: validConfig + "provider: hetzner\nhetzner: {token: 'file:FOLDER/secret'}\n", kept: true,
			fails: "the VMs of hetzner were not deleted\nThe files were not deleted, because agents may still use them. When none works any more, delete DIR",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			program(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			screen := &setuptest.Screen{}
			done := make(chan error, 1)
			go func() { done <- run(ctx, []string{"-setup"}, screen) }()
			folder := screen.Await(ctx, regexp.MustCompile(`setup --dir (\S+) --answers \S+`))
			dir := filepath.Dir(folder)
			screen.Await(ctx, regexp.MustCompile(`(deletes) `+regexp.QuoteMeta(dir)))
			if c.config != "" {
				store := setUp(t, folder, strings.ReplaceAll(c.config, "FOLDER", folder))
				if !c.running {
					if err := store.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			stop()
			err := <-done
			if c.fails = strings.ReplaceAll(c.fails, "DIR", dir); c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("got error %v, want %q", err, c.fails)
			}
			if _, err = os.Stat(dir); (err == nil) != c.kept || !strings.Contains(screen.String(), strings.ReplaceAll(c.said, "DIR", dir)) {
				t.Errorf("kept: %v\n%s", err, screen)
			}
		})
	}
}

const validConfig = "data: FOLDER/data\nlisten: 127.0.0.1:1\ngithub: {app_id: 1, private_key: 'file:FOLDER/pem', webhook_secret: 'file:FOLDER/secret'}\n" +
	"admin: {token: 'file:FOLDER/secret'}\nmodels: {anthropic: {url: 'http://127.0.0.1:1', key: 'file:FOLDER/secret'}}\nlocal: {kind: plain}\n"

// setUp writes what a setup and a started errand leave behind, and returns the open store.
func setUp(t *testing.T, folder, config string) *boltkv.DB {
	t.Helper()
	store, err := boltkv.Open(filepath.Join(folder, "data", "errand.db"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // it may be closed already
	for name, text := range map[string]string{"config.yml": config, "pem": rsatest.PEM(), "secret": "a-secret-for-tests"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// TestTrialNeedsErrand refuses to start without the program that is to be tried.
func TestTrialNeedsErrand(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-setup"}, &out); err == nil || !strings.Contains(err.Error(), "make build") || out.Len() > 0 {
		t.Errorf("got %v, and printed %q", err, out.String())
	}
}

func TestTrialHasNoOtherModes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-setup", "-interactive"}, {"-setup", "-keep", "here"}} {
		if _, err := parse(args, io.Discard); err == nil || !strings.Contains(err.Error(), "no other flag") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// program creates errand's programs next to the test program; they are not started.
func program(t *testing.T) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"errand", "errand-runner"} {
		path := filepath.Join(filepath.Dir(exe), name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		})
	}
}
