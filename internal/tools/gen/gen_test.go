package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/machine"
)

// root is the top of the tree.
const root = "../../.."

// appKey is a private key in PEM form.
func appKey(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func TestDocumentsAreUpToDate(t *testing.T) {
	t.Parallel()
	if err := run(root, true); err != nil {
		t.Error(err)
	}
}

// config.example.yml is valid with the environment that it names, contains only
// defaults, and has every key.
func TestExample(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(root + "/config.example.yml")
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ERRAND_PRIVATE_KEY": appKey(t), "ERRAND_WEBHOOK_SECRET": strings.Repeat("w", 16), "ERRAND_ADMIN_TOKEN": strings.Repeat("t", 16), "ANTHROPIC_API_KEY": "k"}
	got, err := config.Parse(data, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Hetzner.Token = got.Hetzner.Token // it has no default
	ignored := cmpopts.IgnoreFields(config.Config{}, "GitHub", "Admin", "Models")
	secrets := cmp.Comparer(func(a, b config.Secret) bool { return a.String() == b.String() })
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), ignored, secrets); diff != "" {
		t.Errorf("config.example.yml does not show the defaults (-default +example):\n%s", diff)
	}
	want.GitHub.AppID, want.GitHub.PrivateKey, want.GitHub.WebhookSecret = got.GitHub.AppID, got.GitHub.PrivateKey, got.GitHub.WebhookSecret
	if want.GitHub != got.GitHub || got.Models["anthropic"].Key.Reveal() != "k" || got.Admin.Listen != want.Admin.Listen {
		t.Errorf("github = %+v, models = %+v", got.GitHub, got.Models)
	}
	for name := range env {
		if _, err := config.Parse(data, func(n string) (string, bool) { v, ok := env[n]; return v, ok && n != name }); err == nil {
			t.Errorf("the example does not need %s", name)
		}
	}
}

// This test walks the structs itself, so that mistakes of the generator
// are found.
func TestEveryKeyIsDocumented(t *testing.T) {
	t.Parallel()
	reference := func(name string) string {
		text, err := os.ReadFile(root + "/docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	example, err := os.ReadFile(root + "/config.example.yml")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	var walk func(v reflect.Type, in string, inExample bool)
	walk = func(v reflect.Type, in string, inExample bool) {
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct || v == reflect.TypeFor[config.Secret]() {
			return
		}
		for f := range v.Fields() {
			name := f.Tag.Get("yaml")
			if name == "" {
				t.Errorf("%s.%s has no key", v, f.Name)
				continue
			}
			n++
			if text := reference(in); !strings.Contains(text, name+"` |") && !strings.Contains(text, "### `"+name+"`") {
				t.Errorf("docs/%s does not have %s (%s.%s)", in, name, v, f.Name)
			}
			if inExample && !strings.Contains(string(example), name+":") {
				t.Errorf("config.example.yml does not have %s (%s.%s)", name, v, f.Name)
			}
			walk(f.Type, in, inExample)
		}
	}
	for f := range reflect.TypeFor[config.Config]().Fields() {
		in := "configuration.md"
		if slices.Contains(agentKeys(), f.Tag.Get("yaml")) {
			in = "configuration-agents.md"
		}
		walk(reflect.StructOf([]reflect.StructField{f}), in, true)
	}
	walk(reflect.TypeFor[config.RepoFile](), "repository-settings.md", false)
	if n < 80 {
		t.Errorf("only %d keys were checked", n)
	}
}

// A key that a page names, such as `limits.turns` or `models.NAME.url`, exists in one of the two files.
// CHANGELOG.md may name keys that were removed.
func TestNamedKeysExist(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z_]+(?:\\.[A-Za-z_]+)+)(?::[^`]*)?`")
	n := 0
	for _, page := range append(pages, root+"/README.md", root+"/SECURITY.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			path := strings.Split(m[1], ".")
			if isFileName(path[len(path)-1]) || m[1] == "repository.transferred" { // a webhook
				continue
			}
			begins := false
			files := []reflect.Type{reflect.TypeFor[config.Config](), reflect.TypeFor[config.RepoFile]()}
			exists := slices.ContainsFunc(files, func(file reflect.Type) bool {
				begins = begins || hasKey(file, path[:1])
				return hasKey(file, path)
			})
			if begins {
				n++
			}
			if begins && !exists {
				t.Errorf("%s names the key %s, which does not exist", filepath.Base(page), m[1])
			}
		}
	}
	if n < 80 {
		t.Errorf("only %d keys were checked", n)
	}
}

func isFileName(ext string) bool {
	return slices.Contains([]string{"go", "json", "key", "lock", "md", "pem", "sh", "toml", "txt", "yaml", "yml"}, ext)
}

// hasKey reports whether a file of type v has the key at path. Entries of mappings may have any name.
func hasKey(v reflect.Type, path []string) bool {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice {
		v = v.Elem()
	}
	if len(path) == 0 {
		return true
	}
	if v.Kind() == reflect.Map {
		return hasKey(v.Elem(), path[1:])
	}
	if v.Kind() != reflect.Struct {
		return false
	}
	for f := range v.Fields() {
		if f.Tag.Get("yaml") == path[0] {
			return hasKey(f.Type, path[1:])
		}
	}
	return false
}

// The configuration files that documents show are valid.
func TestShownFilesAreValid(t *testing.T) {
	t.Parallel()
	block := func(path, has string) string {
		data, err := os.ReadFile(root + "/" + path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(m[1], has) {
				return m[1]
			}
		}
		t.Fatalf("%s shows no file with %q", path, has)
		return ""
	}
	shown := regexp.MustCompile(`file:/etc/errand/(\S+)`).ReplaceAllString(block("docs/install.md", "github:"), "env:$1")
	shown = regexp.MustCompile(`(?m)^ {3}`).ReplaceAllString(shown, "") // it is in a list
	env := map[string]string{"app.pem": appKey(t), "webhook-secret": strings.Repeat("w", 16), "admin-token": strings.Repeat("t", 16), "anthropic-key": "k"}
	c, err := config.Parse([]byte(shown), func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil || c.Trigger.Label == "" || len(c.Secrets()) != len(env) {
		t.Errorf("docs/install.md shows a configuration that cannot be used: %v\n%s", err, shown)
	}
	repo, err := config.ParseRepo([]byte(block("docs/repository-settings.md", "check:")), config.Default().Settings(), nil)
	if err != nil || len(repo.Check) != 3 || repo.Gates.Coverage == 0 {
		t.Errorf("docs/repository-settings.md shows an .errand.yml that cannot be used: %v", err)
	}
}

func TestRowsBecomeArrows(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		row  machine.Row
		want []way
	}{
		"a beginning":  {machine.Row{To: []state.Phase{state.PhaseQueued}}, []way{{"[*]", state.PhaseQueued}}},
		"one to some":  {machine.Row{From: []state.Phase{"a"}, To: []state.Phase{"b", "c", state.PhaseFailed}}, []way{{"a", "b"}, {"a", "c"}}},
		"side by side": {machine.Row{From: []state.Phase{"a", "b"}, To: []state.Phase{"c", "d"}}, []way{{"a", "c"}, {"b", "d"}}},
		"uneven":       {machine.Row{From: []state.Phase{"a", "b"}, To: []state.Phase{"c", "d", "e"}}, nil},
		"from all":     {machine.Row{From: state.Phases(), To: []state.Phase{state.PhaseDone}}, []way{{state.PhasePROpen, state.PhaseDone}}},
		"nowhere":      {machine.Row{From: []state.Phase{"a"}, To: []state.Phase{machine.Same}}, nil},
		"a new life":   {machine.Row{From: []state.Phase{state.PhaseDone}, To: []state.Phase{"a"}}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, ways(tt.row), cmp.AllowUnexported(way{})); diff != "" {
				t.Errorf("ways (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSentence(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ doc, want string }{
		"Turns":  {"Turns bounds the calls.", "Bounds the calls."},
		"URL":    {"URL is the address.", "The address."},
		"Binds":  {"Binds are paths.", "Paths."},
		"Other":  {"Something else.", "Something else."},
		"Prefix": {"PrefixOnly is not the name.", "PrefixOnly is not the name."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := sentence(name, tt.doc); got != tt.want {
				t.Errorf("sentence = %q, want %q", got, tt.want)
			}
		})
	}
}
