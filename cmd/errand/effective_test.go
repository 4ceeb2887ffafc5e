package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
	"github.com/errand-bot/errand/internal/config"
)

// TestConfig: config lists the values of the file, and with --effective also the defaults, each with its origin and without secrets.
func TestConfig(t *testing.T) {
	t.Parallel()
	file := clitest.Config(t, "127.0.0.1:9000", "")
	for name, c := range map[string]struct {
		args        []string
		code        int
		out, absent []string
		err         string
	}{
		"file": {
			out: []string{"KEY ", "listen  ", file + ":1\n", "(set)", "environment variable ERRAND_ADMIN_TOKEN (" + file + ":3)"}, absent: []string{"default", "limits."},
		},
		"effective":    {args: []string{"--effective"}, out: []string{"limits.cost ", "default\n", "environment variable ERRAND_PRIVATE_KEY", "hetzner.token ", "(not set)"}},
		"no file":      {args: []string{"-c", "none.yml"}, code: cli.ExitFailed, err: "open none.yml"},
		"a word":       {args: []string{"limits"}, code: cli.ExitUsage, err: "config takes no arguments"},
		"JSON of file": {args: []string{"--json"}, out: []string{`"origin": "env"`, `"from": "ERRAND_ADMIN_TOKEN"`, `"line": 3`}, absent: []string{`"default"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := call(t, clitest.Secrets(t), append([]string{"config", "-c", file}, c.args...)...)
			if code != c.code || !strings.Contains(errs, c.err) {
				t.Errorf("got code %d, errors %q", code, errs)
			}
			for _, want := range c.out {
				if !strings.Contains(out, want) {
					t.Errorf("lacks %q:\n%s", want, out)
				}
			}
			for _, absent := range append(c.absent, "-for-tests", "PRIVATE KEY-") {
				if strings.Contains(out, absent) {
					t.Errorf("contains %q:\n%s", absent, out)
				}
			}
		})
	}
}

// TestConfigJSON: the JSON can be read back, and has a value of the type that the key has.
func TestConfigJSON(t *testing.T) {
	t.Parallel()
	code, out, errs := call(t, clitest.Secrets(t), "config", "--effective", "--json", "-c", "../../config.example.yml")
	var list struct {
		File     string
		Settings []config.Setting
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 || list.File != "../../config.example.yml" {
		t.Fatalf("code %d, %v, %s", code, err, errs)
	}
	found := map[string]any{}
	for _, s := range list.Settings {
		found[s.Key] = s.Value
	}
	want := map[string]any{"enabled": true, "limits.cost": 10.0, "limits.duration": "2h", "trusted_proxies": []any{}}
	for key := range found {
		if _, checked := want[key]; !checked {
			delete(found, key)
		}
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}
