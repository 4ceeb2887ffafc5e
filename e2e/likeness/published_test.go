package likeness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// published is where `make published` puts GitHub's own descriptions.
const published = "../../.cache/published/node_modules/@octokit"

// need returns a published file's path. Without it the test is skipped, or fails where npm is required.
func need(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(published, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if os.Getenv("ERRAND_REQUIRE_NPM") != "" {
		t.Fatalf("%s is not installed, and ERRAND_REQUIRE_NPM says that it has to be: run `make published`", name)
	}
	t.Skipf("%s is not installed: run `make published`, which needs npm and the network", name)
	return ""
}

// readJSON reads a file as jsonschema wants it: numbers keep their digits.
func readJSON(t *testing.T, path string) map[string]any {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	v, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	doc, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("%s is no object", path)
	}
	return doc
}

// examples reads the webhooks that were recorded from GitHub, by event.
func examples(t *testing.T) map[string][]any {
	t.Helper()
	f, err := os.Open(need(t, "webhooks-examples/api.github.com/index.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	v, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]any{}
	for _, e := range list(v) {
		out[text(dig(e, "name"))] = list(dig(e, "examples"))
	}
	return out
}

// dig follows keys into nested objects; nil if one is absent.
func dig(v any, keys ...string) any {
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}

// object is v as an object; an empty one if it is none.
func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// list is v as a list; an empty one if it is none.
func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// text is v as a string, or what it prints as.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// parse reads JSON that a recording holds.
func parse(raw json.RawMessage) (any, error) {
	v, err := jsonschema.UnmarshalJSON(newReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read recorded JSON: %w", err)
	}
	return v, nil
}
