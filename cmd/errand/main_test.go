package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
)

// call runs the program as a function.
func call(t *testing.T, env map[string]string, args ...string) (code int, out, err string) {
	t.Helper()
	return callIn(t, "", env, args...)
}

// callIn is call with the folder of errand-runner.
func callIn(t *testing.T, bin string, env map[string]string, args ...string) (code int, out, err string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), cli.World{Args: args, BinDir: bin, In: strings.NewReader(""), Out: &o, Err: &e, Lookup: clitest.Lookup(env)})
	return code, o.String(), e.String()
}

func TestRun(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.yml")
	if err := os.WriteFile(bad, []byte("limits:\n  turn: 3\ndata: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args     []string
		code     int
		out, err []string
	}{
		"help":                 {args: nil, code: 0, out: []string{"Begin with `errand setup`", "Set errand up:\n  check-config ", "See what it does:\n  audit ", "Additional Commands:\n  completion "}},
		"version":              {args: []string{"version"}, code: 0, out: []string{"errand ", "(go1."}},
		"the example":          {args: []string{"check-config", "-c", "../../config.example.yml"}, code: 0, out: []string{"ok: ../../config.example.yml", "listen    127.0.0.1:8080", "data      errand-data", "provider  local"}},
		"everything wrong":     {args: []string{"check-config", "-c", bad}, code: 1, err: []string{"bad.yml cannot be used:\nline 2: limits.turn: this key is unknown; did you mean turns?\nline 3: data: write a text"}},
		"serve refuses it":     {args: []string{"serve", "-c", bad}, code: 1, err: []string{"line 2: limits.turn"}},
		"no file":              {args: []string{"check-config", "-c", "none.yml"}, code: 1, err: []string{"open the configuration: open none.yml", "`errand setup` writes one; -c names another file"}},
		"what is hardly meant": {args: []string{"check-config", "-c", "testdata/open.yml"}, code: 0, out: []string{"ok: ", "provider  hetzner", "warning: hetzner.egress: agents reach every host", "warning: hetzner.setup: ", "warning: hetzner.ssh_from: "}},
		"logs of nothing":      {args: []string{"logs", "acme/shop"}, code: 2, err: []string{`as OWNER/REPO#N, but got ["acme/shop"]`}},
		"logs of a level":      {args: []string{"logs", "acme/shop#1", "--level", "loud", "--data", "."}, code: 2, err: []string{`level "loud": write debug, info, warn or error`}},
		"logs of unknown task": {args: []string{"logs", "acme/shop#1", "--data", filepath.Dir(bad)}, code: 1, err: []string{"there is no transcript of this task: "}},
		"summary of unknown":   {args: []string{"logs", "acme/shop#1", "--summary", "--data", filepath.Dir(bad)}, code: 1, err: []string{"there is no summary of this task: acme/shop#1"}},
		"summary, followed":    {args: []string{"logs", "acme/shop#1", "--summary", "--follow", "--data", "."}, code: 2, err: []string{"cannot be used with --follow"}},
		"logs without a file":  {args: []string{"logs", "acme/shop#1", "-c", "none.yml"}, code: 1, err: []string{"Alternatively set the data folder with --data"}},
		"costs":                {args: []string{"simulate-costs", "--seed", "3", "--generate", "burst"}, code: 0, out: []string{"10 tasks on cx43 in fsn1, at EUR 0.0256 an hour", "before tax", "delete at once, archive", "parking, archive", "always on"}},
		"costs as JSON":        {args: []string{"simulate-costs", "--json"}, code: 0, out: []string{`"policy": "always on"`, `"currency": "EUR"`}},
		"a trace to write":     {args: []string{"simulate-costs", "--write"}, code: 0, out: []string{`{"task":"task-01","at":"2026-11-`, `{"after":"0s","takes":"5m0s"}`}},
		"no such generator":    {args: []string{"simulate-costs", "--generate", "dream-team"}, code: 1, err: []string{"write one of small-team, burst"}},
		"no such type":         {args: []string{"simulate-costs", "--type", "cx99"}, code: 1, err: []string{"cx99 cannot be ordered in fsn1"}},
		"a trace of nonsense":  {args: []string{"simulate-costs", "--trace", bad}, code: 1, err: []string{"bad.yml: line 1: "}},
		"two traces":           {args: []string{"simulate-costs", "--trace", bad, "--generate", "burst"}, code: 1, err: []string{"trace", "generate"}},
		"unknown command":      {args: []string{"frobnicate"}, code: 2, err: []string{"unknown command \"frobnicate\"\nSee `errand --help`."}},
		"misspelled command":   {args: []string{"srve"}, code: 2, err: []string{`unknown command "srve"; did you mean serve?`}},
		"wrong use of one":     {args: []string{"init"}, code: 2, err: []string{"See `errand init --help`."}},
		"unknown flag":         {args: []string{"serve", "--port=1"}, code: 2, err: []string{"unknown flag: --port"}},
		"a superfluous word":   {args: []string{"check-config", "x.yml"}, code: 2, err: []string{`check-config takes no arguments, got "x.yml"`}},
		"a flag with no file":  {args: []string{"serve", "-c"}, code: 2, err: []string{"flag needs an argument"}},
	}
	env := clitest.Secrets(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, err := call(t, env, tt.args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d\n%s%s", code, tt.code, out, err)
			}
			for _, want := range tt.out {
				if !strings.Contains(out, want) {
					t.Errorf("does not print %q:\n%s", want, out)
				}
			}
			for _, want := range tt.err {
				if !strings.Contains(err, want) {
					t.Errorf("does not complain %q:\n%s", want, err)
				}
			}
			for _, secret := range []string{"hook-secret-for-tests", "admin-token-for-tests", "model-key-for-tests", "PRIVATE KEY-"} {
				if strings.Contains(out+err, secret) {
					t.Errorf("prints a secret: %s%s", out, err)
				}
			}
		})
	}
}

func TestMissingSecretsAreNamed(t *testing.T) {
	t.Parallel()
	code, _, err := call(t, nil, "check-config", "-c", "../../config.example.yml")
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for name := range clitest.Secrets(t) {
		if !strings.Contains(err, "the environment variable "+name+" is not set; set it, or write file:/path") {
			t.Errorf("does not name %s:\n%s", name, err)
		}
	}
	if n := strings.Count(err, "line "); n != 4 {
		t.Errorf("%d lines are named, want 4:\n%s", n, err)
	}
}
