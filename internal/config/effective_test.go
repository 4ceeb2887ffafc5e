package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/errand-bot/errand/internal/config"
)

// effective returns the settings of a configuration by their keys.
func effective(t *testing.T, path string, env map[string]string) map[string]config.Setting {
	t.Helper()
	list, err := config.Effective(path, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	byKey := map[string]config.Setting{}
	for _, s := range list {
		if _, twice := byKey[s.Key]; twice {
			t.Errorf("%s is listed twice", s.Key)
		}
		byKey[s.Key] = s
	}
	return byKey
}

// exampleEnv has the secrets of config.example.yml.
func exampleEnv(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"ERRAND_PRIVATE_KEY": appKey(t), "ERRAND_WEBHOOK_SECRET": "hook-secret-for-tests", "ERRAND_ADMIN_TOKEN": "admin-token-for-tests", "ANTHROPIC_API_KEY": "model-key-for-tests",
	}
}

// TestEffectiveHasEveryKey: every key of config.example.yml is listed, with its line, and so is every key of the types; without a file, all
// are defaults with the values that the example documents.
func TestEffectiveHasEveryKey(t *testing.T) {
	t.Parallel()
	const example = "../../config.example.yml"
	data, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	got := effective(t, example, exampleEnv(t))
	keys := 0
	var visit func(key string, v any)
	visit = func(key string, v any) {
		s, ok := got[key]
		if section, isMap := v.(map[string]any); isMap && len(section) > 0 && !ok {
			for name, sub := range section {
				visit(strings.TrimPrefix(key+"."+name, "."), sub)
			}
			return
		}
		keys++
		if !ok {
			t.Errorf("%s is in the example and not listed", key)
			return
		}
		if s.Line == 0 || !strings.Contains(strings.Split(string(data), "\n")[s.Line-1], key[strings.LastIndex(key, ".")+1:]+":") && !strings.HasPrefix(key, "prices.") {
			t.Errorf("%s: line %d is another one", key, s.Line)
		}
	}
	visit("", tree)
	if keys < 150 {
		t.Errorf("only %d keys were checked", keys)
	}
	everyType(t, "", reflect.TypeFor[config.Config](), got)
	t.Logf("PROOF: %d keys of the example are listed with their lines", keys)
}

// everyType checks that each key of a type is listed.
func everyType(t *testing.T, prefix string, typ reflect.Type, got map[string]config.Setting) {
	t.Helper()
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, ok := config.Key(f)
		if !ok {
			continue
		}
		key, found := strings.TrimPrefix(prefix+"."+name, "."), false
		for listed := range got {
			found = found || listed == key || strings.HasPrefix(listed, key+".") || strings.HasPrefix(listed, key+"[")
		}
		if !found {
			t.Errorf("%s is not listed", key)
		}
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[config.Secret]() {
			everyType(t, key, f.Type, got)
		}
	}
}

// TestEffectiveOrigins: each value has its origin, and no secret is shown in any form.
func TestEffectiveOrigins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	write(t, token, "token-in-a-file-for-tests\n")
	file := filepath.Join(dir, "config.yml")
	write(t, file, `listen: 127.0.0.1:9000
github: {app_id: 7, private_key: env:ERRAND_PRIVATE_KEY, webhook_secret: env:ERRAND_WEBHOOK_SECRET}
admin:
  token: file:`+token+`
agent:
  env: {COLOR: "never", GH_TOKEN: ghp_Wz8kQ2nVxB5tYr7LmP3sHd9JfG6cA1eN4uKo, COPY: model-key-for-tests}
models:
  anthropic:
    url: https://user:pass-word@models.example
    key: env:ANTHROPIC_API_KEY
prices:
  own-model: {input: 1.5, output: 3}
local:
  kind: plain
  binds: [{path: /opt/go}, {path: /var/cache, writable: true}]
limits: {duration: 90m, cost: 12.5}
hetzner: {token: env:NOT_THERE}
trust: {allow_users: [ada, "grace"]}
test_env: {acme/shop: {DB: a-password-in-the-file, KEY: env:ANTHROPIC_API_KEY}}
`)
	env := exampleEnv(t)
	got := effective(t, file, env)
	for key, want := range map[string][2]string{
		"listen":                              {"127.0.0.1:9000", "c.yml:1"},
		"github.app_id":                       {"7", "c.yml:2"},
		"github.private_key":                  {"(set)", "environment variable ERRAND_PRIVATE_KEY (c.yml:2)"},
		"github.url":                          {"https://github.com", "default"},
		"admin.token":                         {"(set)", "file " + token + " (c.yml:4)"},
		"admin.listen":                        {`""`, "default"},
		"agent.env.COLOR":                     {"never", "c.yml:6"},
		"agent.env.GH_TOKEN":                  {"(set, not shown)", "c.yml:6"},
		"agent.env.COPY":                      {"(set, not shown)", "c.yml:6"},
		"models.anthropic.url":                {"(set, not shown)", "c.yml:9"},
		"models.anthropic.key":                {"(set)", "environment variable ANTHROPIC_API_KEY (c.yml:10)"},
		"models.anthropic.api":                {`""`, "default"},
		"prices.own-model":                    {"{input: 1.5, output: 3}", "c.yml:12"},
		"local.binds[0].path":                 {"/opt/go", "c.yml:15"},
		"local.binds[0].writable":             {"false", "default"},
		"local.binds[1].writable":             {"true", "c.yml:15"},
		"local.path":                          {"[]", "default"},
		"limits.duration":                     {"1h30m", "c.yml:16"},
		"limits.cost":                         {"12.5", "c.yml:16"},
		"limits.cost_per_day":                 {"50", "default"},
		"hetzner.token":                       {"(not read, because it is not used)", "environment variable NOT_THERE (c.yml:17)"},
		"trust.allow_users":                   {"[ada, grace]", "c.yml:18"},
		"submodules":                          {"{}", "default"},
		"test_env.acme/shop.DB":               {"(set, not shown)", "c.yml:19"},
		"test_env.acme/shop.KEY":              {"(set)", "environment variable ANTHROPIC_API_KEY (c.yml:19)"},
		"enabled":                             {"true", "default"},
		"models.anthropic.subscription.token": {"(not set)", "default"},
	} {
		if s, ok := got[key]; !ok || s.Text() != want[0] || s.OriginText("c.yml") != want[1] {
			t.Errorf("%s: got %q from %q, want %q", key, s.Text(), s.OriginText("c.yml"), want)
		}
	}
	encoded, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	all := string(encoded) + fmt.Sprintf("%+v %#v", got, got)
	for _, s := range got {
		all += s.Text() + s.OriginText(file)
	}
	for _, secret := range []string{"token-in-a-file", "pass-word", "ghp_", "a-password-in", "hook-secret", "model-key-for", "PRIVATE KEY"} {
		if strings.Contains(all, secret) {
			t.Errorf("%q is shown", secret)
		}
	}
}

// TestEffectiveOfExampleHidesNothing: no value of the example looks like a secret.
func TestEffectiveOfExampleHidesNothing(t *testing.T) {
	t.Parallel()
	secret := regexp.MustCompile(`(key|token|secret)$`)
	for key, s := range effective(t, "../../config.example.yml", exampleEnv(t)) {
		if s.Secret != secret.MatchString(key) {
			t.Errorf("%s: secret is %v", key, s.Secret)
		}
	}
}

// TestEffectiveOfInvalidFile: a file with mistakes has no effective values; the error names the lines.
func TestEffectiveOfInvalidFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yml")
	write(t, file, "limits:\n  turn: 3\n")
	none := func(string) (string, bool) { return "", false }
	if list, err := config.Effective(file, none); err == nil || !strings.Contains(err.Error(), "line 2: limits.turn") || list != nil {
		t.Errorf("got %v, %v", list, err)
	}
}
