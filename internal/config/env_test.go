package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/config"
)

func TestRepoEnv(t *testing.T) {
	t.Parallel()
	text := "env:\n  SERVICE_HOST: localhost\n  lower_1: |\n    two\n    lines\n  EMPTY: ''\n  GITHUB_STEP: x\n  LDFLAGS: -s\ncheck:\n- lint {changed_files} && for m in {affected_modules}; do (cd \"$m\"); done\n"
	s, err := config.ParseRepo([]byte(text), operator(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"SERVICE_HOST": "localhost", "lower_1": "two\nlines\n", "EMPTY": "", "GITHUB_STEP": "x", "LDFLAGS": "-s"}
	if diff := cmp.Diff(want, s.Env); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
}

func TestRepoEnvReportsProblems(t *testing.T) {
	t.Parallel()
	secret := func(text string) bool {
		return strings.Contains(text, "TOKEN=\"hunter") || strings.Contains(text, "sk-live")
	}
	const own = "errand or a program of the agents sets or reads "
	tests := map[string]struct{ text, want string }{
		"a number":            {"env:\n  PORT: 80\n", "line 2: env.PORT: write a text, in quotes if it looks like a number"},
		"a list":              {"env: [A=b]\n", "line 1: env: write a mapping"},
		"no name":             {"env:\n  A-B: x\n", `line 2: env.A-B: "A-B" cannot be the name of a variable`},
		"PATH":                {"env:\n  A: b\n  PATH: /evil\n", "line 3: env.PATH: " + own + "PATH"},
		"of the loader":       {"env: {LD_PRELOAD: ./x.so}\n", "line 1: env.LD_PRELOAD: " + own},
		"of git":              {"env: {GIT_SSH_COMMAND: x}\n", "line 1: env.GIT_SSH_COMMAND: " + own},
		"of the agent":        {"env: {ANTHROPIC_BASE_URL: https://evil.example}\n", "line 1: env.ANTHROPIC_BASE_URL: " + own},
		"of another agent":    {"env: {OPENAI_API_KEY: x}\n", "line 1: env.OPENAI_API_KEY: " + own},
		"of errand":           {"env: {ERRAND_RUN: x}\n", "line 1: env.ERRAND_RUN: " + own},
		"of node":             {"env: {NODE_OPTIONS: --require=x}\n", "line 1: env.NODE_OPTIONS: " + own},
		"of the shell":        {"env: {BASH_ENV: x}\n", "line 1: env.BASH_ENV: " + own},
		"a proxy, lower case": {"env: {https_proxy: x}\n", "line 1: env.https_proxy: " + own},
		"long":                {"env: {A: " + strings.Repeat("x", 9000) + "}\n", "line 1: env.A: the value is longer than 8192 bytes"},
		"a secret by value":   {"env:\n  A: sk-live-1\n", "line 2: env.A: the value looks like a secret, which everybody who can read the repository knows; remove it, replace it at its source, and ask the operator of errand for an entry under test_env"},
		"a secret by name":    {"env:\n  TOKEN: hunter2\n", "line 2: env.TOKEN: the value looks like a secret"},
		"in set-up":           {"setup: ['lint {changed_files}']\n", "line 1: setup[0]: {changed_files} can be used in check only"},
		"in quotes":           {"check: ['lint \"{changed_files}\"']\n", "line 1: check[0]: write {changed_files} as a word of its own, outside of quotes"},
		"in single quotes":    {"check: [\"lint '{affected_modules}'\"]\n", "line 1: check[0]: write {affected_modules} as a word of its own"},
		"within a word":       {"check: ['lint --files={changed_files}']\n", "line 1: check[0]: write {changed_files} as a word of its own"},
		"assigned":            {"check: ['FILES={changed_files} make']\n", "line 1: check[0]: write {changed_files} as a word of its own"},
		"in a here-document":  {"check: [\"cat <<E\\n{changed_files}\\nE\"]\n", "line 1: check[0]: write {changed_files} as a word of its own"},
		"in a comment":        {"check: [\"lint # {changed_files}\"]\n", "line 1: check[0]: write {changed_files} as a word of its own"},
		"the second is wrong": {"check: [\"lint {changed_files} \\\"it's {changed_files}\\\"\"]\n", "line 1: check[0]: write {changed_files} as a word of its own"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := config.ParseRepo([]byte(tt.text), operator(), secret)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("says\n%v\nwant\n%s", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the secret is repeated: %v", err)
			}
			if diff := cmp.Diff(operator(), got); diff != "" {
				t.Errorf("an invalid file changes settings (-want +got):\n%s", diff)
			}
		})
	}
}

// tested reads an operator's file that has more in it.
func tested(t *testing.T, more string) (config.Config, error) {
	t.Helper()
	vars := map[string]string{"KEY": appKey(t), "HOOK": "hook-secret-for-tests", "TOKEN": "admin-token-for-tests", "MODEL": "model-key-1", "DB": "tulip-marmelade"}
	text := "github: {app_id: 1, private_key: env:KEY, webhook_secret: env:HOOK}\nadmin: {token: env:TOKEN}\nmodels: {anthropic: {url: https://api.example, key: env:MODEL}}\n" + more
	return config.Parse([]byte(text), func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
}

func TestOperatorsTests(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	content := "-----BEGIN KEY-----\nAbcdefgh12345678ijkl\n-----END KEY-----\nhost: localhost\nurl=https://service1.example/token\ndsn=postgres://u:p4ss@db/test\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := tested(t, "test_env:\n  acme/*: {DB_PASSWORD: env:DB, MODE: everywhere}\n  acme/shop: {MODE: here-alone}\ntest_files:\n  Acme/Shop: {config/test.key: file:"+file+"}\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"DB_PASSWORD": "tulip-marmelade", "MODE": "here-alone"}, c.TestEnv.For("acme/shop")); diff != "" {
		t.Errorf("the named repository (-want +got):\n%s", diff)
	}
	if got := c.TestEnv.For("ACME/other")["MODE"]; got != "everywhere" {
		t.Errorf("a repository of the pattern has %q", got)
	}
	if len(c.TestEnv.For("evil/shop"))+len(c.TestFiles.For("acme/other")) != 0 {
		t.Error("other repositories get something")
	}
	if diff := cmp.Diff(map[string]string{"config/test.key": content}, c.TestFiles.For("acme/shop")); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	secrets := c.Secrets()
	for text, want := range map[string]bool{
		"tulip-marmelade": true, "here-alone": true, "everywhere": true, "Abcdefgh12345678ijkl": true, "postgres://u:p4ss@db/test": true,
		"localhost": false, "https://service1.example/token": false, "-----BEGIN": false,
	} {
		if got := slices.Contains(secrets, text); got != want {
			t.Errorf("%q is to be blanked: %v", text, got)
		}
	}
	if s := c.TestEnv["acme/*"]["MODE"].String(); strings.Contains(s, "every") {
		t.Errorf("a value is printed: %s", s)
	}
}

func TestOperatorsTestsReportProblems(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"no repository":     {"test_env: {shop: {A: long-enough}}", `test_env.shop: "shop": write OWNER/REPO`},
		"taken":             {"test_env: {a/b: {HOME: /long-enough}}", "test_env.a/b.HOME: errand or a program of the agents sets or reads HOME"},
		"short":             {"test_env: {a/b: {A: short}}", "test_env.a/b.A: a value of fewer than 8 characters cannot be redacted reliably"},
		"not set":           {"test_env: {a/b: {A: env:NOTHING}}", "test_env.a/b.A: the environment variable NOTHING is not set"},
		"no file":           {"test_files: {a/b: {x: file:/nowhere}}", "test_files.a/b.x: open /nowhere"},
		"an empty file":     {"test_files: {a/b: {x: file:" + empty + "}}", "test_files.a/b.x: " + empty + " is empty"},
		"in this file":      {"test_files: {a/b: {x: content}}", "test_files.a/b.x: this file must not contain secrets"},
		"outside":           {"test_files: {a/b: {../x: env:DB}}", `test_files.a/b.../x: "../x": write a plain path`},
		"absolute":          {"test_files: {a/b: {/etc/x: env:DB}}", `test_files.a/b./etc/x: "/etc/x": write a plain path`},
		"git's own":         {"test_files: {a/b: {.Git/config: env:DB}}", `test_files.a/b..Git/config: ".Git/config": write a plain path`},
		"rules of git":      {"test_files: {a/b: {x/.gitattributes: env:DB}}", `test_files.a/b.x/.gitattributes: "x/.gitattributes": write a plain path`},
		"needs quoting":     {"test_files: {a/b: {'a b': env:DB}}", `test_files.a/b.a b: "a b": write a plain path`},
		"like an option":    {"test_files: {a/b: {-x: env:DB}}", `test_files.a/b.-x: "-x": write a plain path`},
		"a value of a list": {"test_env: {a/b: [x]}", "test_env.a/b: write a mapping"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tested(t, tt.text+"\n")
			if err == nil || !strings.Contains(err.Error(), ": "+tt.want) {
				t.Errorf("says\n%v\nwant\n%s", err, tt.want)
			}
		})
	}
}
