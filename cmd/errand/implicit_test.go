package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
)

// TestConfigurationOfSetupIsTheDefault uses a configuration that errand setup wrote without naming it, in folders with and without a config.yml.
func TestConfigurationOfSetupIsTheDefault(t *testing.T) {
	const own = "data: '%s'\ngithub: {app_id: 1, private_key: 'env:ERRAND_PRIVATE_KEY', webhook_secret: 'env:ERRAND_WEBHOOK_SECRET'}\n" +
		"admin: {token: 'env:ERRAND_ADMIN_TOKEN'}\nmodels: {anthropic: {url: 'http://127.0.0.1:1', key: 'env:ANTHROPIC_API_KEY'}}\n"
	of := func(data string) string { return fmt.Sprintf(own, data) }
	for name, c := range map[string]struct {
		setup, here string // contents of the two files; empty: there is none
		args        string // default check-config
		code        int
		out         string
		errs        []string // SETUP and HERE stand for the paths
		not         string
	}{
		"none":                  {code: cli.ExitFailed, errs: []string{"open config.yml: no such file"}, not: "using"},
		"of setup":              {setup: of("/of/setup"), out: "/of/setup", errs: []string{"errand: using SETUP\n"}},
		"of this folder":        {here: of("data-here"), out: "data-here", errs: []string{"errand: using HERE\n"}},
		"of another program":    {setup: of("/of/setup"), here: "github: {user: ada}\ndata: 1\n", out: "/of/setup", errs: []string{"errand: using SETUP\n"}},
		"not even YAML":         {setup: of("/of/setup"), here: "\x00{[", out: "/of/setup", errs: []string{"errand: using SETUP\n"}},
		"a megabyte":            {setup: of("/of/setup"), here: strings.Repeat("x: y\n", 200_000), out: "/of/setup", errs: []string{"errand: using SETUP\n"}},
		"two":                   {setup: of("/of/setup"), here: of("/of/here"), code: cli.ExitUsage, errs: []string{"both SETUP and the config.yml in this folder", "with -c"}},
		"two, one broken":       {setup: of("/of/setup"), here: "github:\n  app_id: 1\n ]: x", code: cli.ExitUsage, errs: []string{"both SETUP and"}},
		"two, one named":        {setup: of("/of/setup"), here: of("/of/here"), args: "check-config -c config.yml", out: "/of/here", not: "using"},
		"a relative folder":     {setup: of("data"), code: cli.ExitFailed, errs: []string{"SETUP: `data: data` means another folder", "absolute path"}},
		"the default folder":    {setup: strings.Replace(of(""), "data: ''\n", "", 1), code: cli.ExitFailed, errs: []string{"`data: errand-data`"}},
		"a relative one, named": {setup: of("data"), args: "check-config -c SETUP", out: "data      data", not: "using"},
		"broken":                {setup: of("/of/setup") + "x: y\n", code: cli.ExitFailed, errs: []string{"errand: using SETUP\n", "x: this key is unknown"}},
		"serve":                 {setup: of("/of/setup") + "x: y\n", args: "serve", code: cli.ExitFailed, errs: []string{"errand: SETUP cannot be used"}, not: "using"},
		"logs of a folder":      {setup: of("data"), args: "logs acme/shop#1 --data .", code: cli.ExitFailed, errs: []string{"there is no transcript of this task"}, not: "using"},
		"a command below":       {setup: of("/of/setup"), args: "rotate webhook-secret", code: cli.ExitFailed, errs: []string{"errand: using SETUP\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			setup, here := filepath.Join(t.TempDir(), "config.yml"), t.TempDir()
			t.Chdir(here)
			for path, text := range map[string]string{setup: c.setup, "config.yml": c.here} {
				if text == "" {
					continue
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.args == "" {
				c.args = "check-config"
			}
			var out, errs bytes.Buffer
			w := cli.World{
				Args: strings.Fields(strings.ReplaceAll(c.args, "SETUP", setup)), In: strings.NewReader(""), Out: &out, Err: &errs, Lookup: clitest.Lookup(clitest.Secrets(t)),
			}
			root := cli.Root(w, checkCommand(w), logsCommand(w), rotateCommand(w), serveCommand(w))
			useSetupConfig(root, w, setup)
			if code := cli.Execute(t.Context(), w, root); code != c.code || !strings.Contains(out.String(), c.out) || c.not != "" && strings.Contains(errs.String(), c.not) {
				t.Errorf("code %d, errors:\n%s\noutput:\n%s", code, errs.String(), out.String())
			}
			for _, want := range c.errs {
				if want = strings.NewReplacer("SETUP", setup, "HERE", filepath.Join(here, "config.yml")).Replace(want); !strings.Contains(errs.String(), want) {
					t.Errorf("%q is missing in:\n%s", want, errs.String())
				}
			}
		})
	}
}
