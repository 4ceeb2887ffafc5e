package config_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/state/settings"
)

// appKey returns a private key in the format of GitHub's download.
func appKey(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// env returns an environment for tests.
func env(t *testing.T) func(string) (string, bool) {
	vars := map[string]string{"KEY": appKey(t), "HOOK": "hook-secret-for-tests", "SHORT": "short", "TOKEN": "admin-token-for-tests", "MODEL": "model-key-1", "EMPTY": ""}
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

// minimalConfig is the smallest valid configuration.
const minimalConfig = `agent: {adapter: command, command: [agent]}
github:
  app_id: 12
  private_key: env:KEY
  webhook_secret: env:HOOK
admin:
  token: env:TOKEN
`

func TestParseKeepsDefaults(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte(minimalConfig+"limits: {turns: 60, expire: 30d}\nlocal: {kind: plain}\n"), env(t))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default().Limits
	want.Turns, want.Expire = 60, 30*24*time.Hour
	if diff := cmp.Diff(want, c.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(config.Default().Timing, c.Timing); diff != "" {
		t.Errorf("timing (-want +got):\n%s", diff)
	}
	if c.Local.Kind != "plain" || c.Local.IdleExit != config.Default().Local.IdleExit {
		t.Errorf("local = %+v", c.Local)
	}
	if c.GitHub.WebhookSecret.Reveal() != "hook-secret-for-tests" || c.Agent.Adapter != "command" {
		t.Errorf("secret or agent are lost: %+v", c)
	}
}

func TestOtherAdapterDropsTheDefaultProgram(t *testing.T) {
	t.Parallel()
	_, err := config.Parse([]byte(strings.Replace(minimalConfig, ", command: [agent]", "", 1)), env(t))
	if err == nil || !strings.Contains(err.Error(), "agent.command: the adapter \"command\" needs a program") {
		t.Errorf("error = %v", err)
	}
	c, err := config.Parse([]byte(minimalConfig), env(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"agent"}, c.Agent.Command); diff != "" || c.Agent.Model != "" {
		t.Errorf("agent = %+v\n%s", c.Agent, diff)
	}
}

func TestParseReportsProblems(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ add, want string }{
		"unknown key, near one":    {"limits:\n  turn: 3\n", "line 9: limits.turn: this key is unknown; did you mean turns?"},
		"unknown key at the top":   {"color: red\n", "line 8: color: this key is unknown; the keys are enabled, "},
		"a word for a number":      {"limits:\n  turns: many\n", "line 9: limits.turns: write a whole number"},
		"a fraction for a number":  {"limits:\n  turns: 1.5\n", "line 9: limits.turns: write a whole number"},
		"a number for a duration":  {"limits:\n  duration: 7200\n", "line 9: limits.duration: write a duration such as 90s"},
		"a negative duration":      {"limits:\n  duration: -2h\n", "line 9: limits.duration: write a duration"},
		"a word for a bool":        {"enabled: maybe\n", "line 8: enabled: write true or false"},
		"yes is a word":            {"enabled: yes\n", "line 8: enabled: write true or false"},
		"a text for a list":        {"local:\n  path: /usr\n", "line 9: local.path: write a list, such as [a, b]"},
		"a list for a mapping":     {"limits: [1]\n", "line 8: limits: write a mapping with the keys turns, "},
		"a mapping for a text":     {"data: {a: b}\n", "line 8: data: write a text"},
		"a number for a text":      {"trigger:\n  label: 5\n", "line 9: trigger.label: write a text, in quotes"},
		"in a list":                {"local:\n  binds:\n  - path: /a\n  - pth: /b\n", "line 11: local.binds[1].pth: this key is unknown; did you mean path?"},
		"in a mapping by name":     {"models:\n  one:\n    uri: x\n", "line 10: models.one.uri: this key is unknown; did you mean url?"},
		"no value":                 {"limits:\n", "line 8: limits: the value is missing; write a mapping with the keys turns, "},
		"a key twice":              {"data: a\ndata: b\n", "line 9: "},
		"an anchor":                {"data: &a b\n", "line 8: data: anchors, aliases and tags are not supported"},
		"a header":                 {"models:\n  one: {url: 'https://m', key: env:MODEL, header: 'X: y'}\n", `line 9: models.one.header: "X: y": write the name of a header`},
		"no YAML":                  {"data: [\n", "line 8: "},
		"a second document":        {"---\ndata: x\n", "line 9: this is a second document"},
		"a secret in the file":     {"models:\n  one: {url: 'https://m', key: sk-123}\n", "line 9: models.one.key: this file must not contain secrets; write env:NAME or file:/path"},
		"a value with real GitHub": {"models:\n  one: {url: 'https://m', key: 'value:sk-123'}\n", "line 9: models.one.key: this file must not contain secrets"},
		"a variable that is not":   {"models:\n  one: {url: 'https://m', key: env:NONE}\n", "line 9: models.one.key: the environment variable NONE is not set"},
		"a variable without value": {"models:\n  one: {url: 'https://m', key: env:EMPTY}\n", "line 9: models.one.key: the environment variable EMPTY is not set"},
		"a file that is not":       {"models:\n  one: {url: 'https://m', key: file:/no/such}\n", "line 9: models.one.key: open /no/such"},
		"a bad address":            {"listen: here\n", `line 8: listen: "here": write HOST:PORT`},
		"a proxy by name":          {"trusted_proxies: [127.0.0.1, proxy]\n", `line 8: trusted_proxies[1]: "proxy": write an address or a range of addresses`},
		"a bad range of proxies":   {"trusted_proxies: [10.0.0.0/33]\n", `line 8: trusted_proxies[0]: "10.0.0.0/33": write an address or a range of addresses`},
		"everybody as a proxy":     {"trusted_proxies: ['0.0.0.0/0']\n", `line 8: trusted_proxies[0]: "0.0.0.0/0": this matches every address`},
		"everybody of IPv6":        {"trusted_proxies: ['::/0']\n", `line 8: trusted_proxies[0]: "::/0": this matches every address`},
		"the same address twice":   {"listen: 127.0.0.1:1\nadmin2: x\n", "line 9: admin2: this key is unknown; did you mean admin?"},
		"a bad name":               {"deployment: My Errand\n", "line 8: deployment: "},
		"a bad provider":           {"provider: moon\n", `line 8: provider: "moon": write local or hetzner`},
		"no token":                 {"provider: hetzner\n", "hetzner.token: write env:NAME or file:/path"},
		"a bad candidate":          {"provider: hetzner\nhetzner:\n  token: env:MODEL\n  candidates: [cx43]\n", `line 11: hetzner.candidates[0]: "cx43": write TYPE/LOCATION`},
		"a bad range":              {"provider: hetzner\nhetzner:\n  token: env:MODEL\n  ssh_from: [here]\n", `line 11: hetzner.ssh_from[0]: "here": write a range of addresses`},
		"a huge setup":             {"provider: hetzner\nhetzner:\n  token: env:MODEL\n  setup: " + strings.Repeat("x", 17000) + "\n", "line 11: hetzner.setup: write a shell script, at most 16384 bytes; use `bake` for a longer one"},
		"no way to a VM":           {"provider: hetzner\nhetzner:\n  token: env:MODEL\n  ipv4: false\n", "line 9: hetzner.network: required without IPv4"},
		"a group without repos":    {"bake:\n  web: {script: 'true'}\n", "line 9: bake.web.repos: write at least one repository"},
		"a host with a scheme":     {"egress:\n  allow: [a.org, 'https://a.org']\n", `line 9: egress.allow[1]: "https://a.org": write a host in lower case`},
		"no such group of hosts":   {"egress:\n  allow: [go, docker]\n", `line 9: egress.allow[1]: "docker": write a host in lower case, such as proxy.example.org, *.example.org or example.org:8443, or a group: containers, debian`},
		"hosts without OWNER/REPO": {"egress:\n  repositories:\n    acme: [a.org]\n", `line 10: egress.repositories.acme: "acme": write OWNER/REPO`},
		"no hours":                 {"limits:\n  vm_hours: 0\n", "line 9: limits.vm_hours: must be greater than zero"},
		"no limit at all":          {"limits:\n  vms: 0\n", "line 9: limits.vms: must be greater than zero"},
		"no duration at all":       {"limits:\n  stall: 0s\n", "line 9: limits.stall: must be greater than zero"},
		"no money":                 {"limits:\n  cost: 0\n", "line 9: limits.cost: write a number of dollars"},
		"reminded too late":        {"limits:\n  remind: 20d\n", "line 9: limits.remind: must be shorter"},
		"a template":               {"repository:\n  branch: 'x/{nummer}'\n", "line 9: repository.branch: expand template"},
		"an empty template":        {"repository:\n  title: ''\n", "line 9: repository.title: write a template"},
		"a plan mode":              {"repository:\n  plan: three-step\n", "line 9: repository.plan: "},
		"a pattern":                {"gate:\n  secrets_allowed_in: [a, '[']\n", "line 9: gate.secrets_allowed_in[1]: glob \"[\" is not valid"},
		"an old key":               {"repository:\n  protected: [a]\n", "line 9: repository.protected: this key was replaced; write gate.protected, and exceptions in gate.unprotected, instead"},
		"more than can be read":    {"gate:\n  max_bytes: 99999999\n", "line 9: gate.max_bytes: write a number of bytes from 1 to 67108864"},
		"no paths at all":          {"gate:\n  max_paths: 0\n", "line 9: gate.max_paths: write a number from 1 to 20000"},
		"no sweep":                 {"timing:\n  sweep: 0s\n", "line 9: timing.sweep: must be greater than zero"},
		"polls out of order":       {"timing:\n  poll_fast: 2m\n", "line 9: timing.poll_fast: cannot be longer than timing.poll_slow"},
		"a removed key":            {"timing: {gather: 1m, retry: 2s}\n", "line 8: timing.retry: this key was removed: errand decides when a failed job is retried. Delete the line"},
		"nested too deep":          {"data: " + strings.Repeat("[", 300) + "\n", "line 8: the nesting is too deep"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse([]byte(minimalConfig+tt.add), env(t))
			var bad *config.Invalid
			if !errors.As(err, &bad) {
				t.Fatalf("error = %v, want an Invalid", err)
			}
			if len(bad.Problems) != 1 || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("says\n%s\nwant\n%s", err, tt.want)
			}
			if strings.Contains(err.Error(), "sk-123") {
				t.Errorf("repeats a secret: %s", err)
			}
		})
	}
}

func TestParseReportsAllProblems(t *testing.T) {
	t.Parallel()
	_, err := config.Parse([]byte("log:\n  level: loud\ngithub:\n  app_id: 0\n  private_key: env:HOOK\n"), env(t))
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		`admin.token: write env:NAME or file:/path, or serve the pages on a separate address with admin.listen`,
		`models.anthropic: the agent claude needs it (for every step that agent.models does not name); write its url and key`,
		`line 2: log.level: "loud": write debug, info, warn or error`,
		`line 3: github.webhook_secret: write env:NAME or file:/path; without a secret anybody could forge webhooks`,
		`line 4: github.app_id: write the App's number from its settings page`,
		`line 5: github.private_key: env:HOOK does not contain a private key in PEM form; use the .pem file that GitHub generated`,
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestWebhookModes: only an errand to which GitHub sends webhooks needs a secret for them.
func TestWebhookModes(t *testing.T) {
	t.Parallel()
	const line = "  webhook_secret: env:HOOK\n"
	if !strings.Contains(minimalConfig, line) {
		t.Fatal("the minimal configuration has no webhook secret")
	}
	for name, tt := range map[string]struct{ lines, want string }{
		"push":                {line + "  webhooks: push\n", ""},
		"push by default":     {line, ""},
		"push, no secret":     {"  webhooks: push\n", "github.webhook_secret: write env:NAME"},
		"poll, no secret":     {"  webhooks: poll\n", ""},
		"poll, with secret":   {line + "  webhooks: poll\n", ""},
		"neither":             {line + "  webhooks: pull\n", `github.webhooks: "pull": write push or poll`},
		"empty":               {line + "  webhooks: ''\n", `github.webhooks: "": write push or poll`},
		"poll, a weak secret": {"  webhook_secret: env:SHORT\n  webhooks: poll\n", "github.webhook_secret: env:SHORT contains fewer than 16"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse([]byte(strings.Replace(minimalConfig, line, tt.lines, 1)), env(t))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestShortSecretsAreRefused(t *testing.T) {
	t.Parallel()
	_, err := config.Parse([]byte(strings.NewReplacer("env:HOOK", "env:SHORT", "env:TOKEN", "env:SHORT").Replace(minimalConfig)), env(t))
	want := "line 5: github.webhook_secret: env:SHORT contains fewer than 16 characters; create one with `openssl rand -hex 32`\n" +
		"line 7: admin.token: env:SHORT contains fewer than 16 characters; create one with `openssl rand -hex 32`"
	if err == nil || err.Error() != want {
		t.Errorf("says\n%v\nwant\n%s", err, want)
	}
}

func TestEmptyFileIsAllDefaults(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# only a comment\n", "---\n", "{}\n"} {
		_, err := config.Parse([]byte(text), env(t))
		if err == nil || !strings.Contains(err.Error(), "github.app_id: write the App's number") {
			t.Errorf("%q: error = %v, want what is missing", text, err)
		}
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := config.Load(filepath.Join(dir, "none.yml"), env(t)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	secret, file := filepath.Join(dir, "hook"), filepath.Join(dir, "c.yml")
	write(t, secret, "\n from-a-file-for-tests \n")
	write(t, file, strings.Replace(minimalConfig, "env:HOOK", "file:"+secret, 1))
	c, err := config.Load(file, env(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.GitHub.WebhookSecret.Reveal(); got != "from-a-file-for-tests" {
		t.Errorf("secret = %q", got)
	}
	write(t, secret, " \n")
	if _, err := config.Load(file, env(t)); err == nil || !strings.Contains(err.Error(), "line 5: github.webhook_secret: "+secret+" is empty") {
		t.Errorf("an empty secret: %v", err)
	}
	write(t, file, minimalConfig+"# "+strings.Repeat("x", 300<<10))
	if _, err := config.Load(file, env(t)); err == nil || !strings.Contains(err.Error(), "larger than 256 KiB") {
		t.Errorf("a large file: %v", err)
	}
	if err := os.Chmod(file, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(file, env(t)); os.Geteuid() != 0 && (!errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "Run this as the user that runs errand")) {
		t.Errorf("a file of another user: %v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSecretsAreNotPrinted prints secrets in every usual way, such as formatting, JSON and YAML.
func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	local := strings.Replace(minimalConfig, "github:", "github:\n  url: http://127.0.0.1:1", 1)
	c, err := config.Parse([]byte(strings.Replace(local, "env:TOKEN", "'value:admin-token-for-tests'", 1)+"models:\n  one: {url: 'https://m', key: env:MODEL}\n"), env(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{appKey(t), "hook-secret-for-tests", "admin-token-for-tests", "model-key-1"}, c.Secrets()); diff != "" {
		t.Fatalf("secrets (-want +got):\n%s", diff)
	}
	inJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	inYAML, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	hidden := struct{ c config.Config }{c}
	printed := map[string]string{
		"json": string(inJSON), "yaml": string(inYAML), "%v": fmt.Sprintf("%v", c), "%+v": fmt.Sprintf("%+v", c), "%#v": fmt.Sprintf("%#v", c),
		"unexported": fmt.Sprintf("%+v %#v", hidden, hidden), "%s": fmt.Sprintf("%s", c.GitHub.WebhookSecret), "%q": fmt.Sprintf("%q", c.GitHub.WebhookSecret), "%x": fmt.Sprintf("%x", c.Admin.Token),
		"pointer": fmt.Sprintf("%+v", &c.GitHub), "String": c.Admin.Token.String(),
	}
	for how, text := range printed {
		for _, secret := range []string{"hook-secret-for-tests", "model-key-1", "PRIVATE KEY"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %q:\n%s", how, secret, text)
			}
		}
		if how != "unexported" && strings.Contains(text, "admin-token-for-tests") {
			t.Errorf("%s shows the value: secret:\n%s", how, text)
		}
	}
	if !strings.Contains(printed["yaml"], "env:HOOK") || !strings.Contains(printed["json"], `"env:HOOK"`) {
		t.Errorf("where secrets come from is not shown:\n%s\n%s", printed["yaml"], printed["json"])
	}
}

func TestSettingsAndPolicy(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Limits.Cost, c.Repository.Draft, c.Timing.Gather, c.Keep.AfterEnd = 2.5, settings.DraftUntilGreen, time.Second, time.Hour
	if s := c.Settings(); s.Limits.MicroUSD != 2_500_000 || s.Draft != settings.DraftUntilGreen || s.Merge != settings.MergeNever || s.Limits.Turns != 0 {
		t.Errorf("settings = %+v", s)
	}
	if p := c.Policy(); p.Gather != time.Second || p.KeepAfterEnd != time.Hour || p.IdleVM == 0 || p.MaxAttempts == 0 {
		t.Errorf("policy = %+v", p)
	}
}
