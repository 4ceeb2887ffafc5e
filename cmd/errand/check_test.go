package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/cli/clitest"
)

// TestCheckModels: --models checks each provider's key and nothing else.
func TestCheckModels(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/models" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		if r.Header.Get("X-Api-Key") != "good-key-for-tests" && r.Header.Get("Authorization") != "Bearer good-key-for-tests" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(provider.Close)
	example, err := os.ReadFile("../../config.example.yml")
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(example), "\nmodels:\n")
	if !ok {
		t.Fatal("the example has no models")
	}
	file := filepath.Join(t.TempDir(), "config.yml")
	text := head + fmt.Sprintf("\nmodels:\n  anthropic: {url: %[1]s, key: env:ANTHROPIC_API_KEY}\n  openai: {url: %[1]s, key: env:OPENAI_API_KEY}\n", provider.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		openai string
		code   int
		says   string
	}{
		"both are good":  {"good-key-for-tests", 0, "models.openai: accepts the key"},
		"one is refused": {"other-key-for-tests", 1, "models.openai: the provider refuses the key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := clitest.Secrets(t)
			env["ANTHROPIC_API_KEY"], env["OPENAI_API_KEY"] = "good-key-for-tests", test.openai
			code, out, errs := call(t, env, "check-config", "--models", "-c", file)
			if code != test.code || !strings.Contains(out, test.says) || !strings.Contains(out, "models.anthropic: accepts the key") || strings.Contains(out+errs, "key-for-tests") {
				t.Errorf("code %d, out %q, err %q", code, out, errs)
			}
		})
	}
}
