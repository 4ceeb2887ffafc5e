package likeness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// published is the directory in which `make published` installs GitHub's descriptions.
const published = "../../.cache/published/node_modules/@octokit"

// need returns a published file's path. If the file is missing, it skips the test, or fails it where npm is required.
func need(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(published, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if os.Getenv("ERRAND_REQUIRE_NPM") != "" {
		t.Fatalf("%s is not installed, but ERRAND_REQUIRE_NPM requires it: run `make published`", name)
	}
	t.Skipf("%s is not installed: run `make published`, which needs npm and the network", name)
	return ""
}

// readJSON decodes a file as jsonschema expects, with numbers as json.Number.
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
		t.Fatalf("%s is not an object", path)
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

// dig follows keys into nested objects, and returns nil if one is missing.
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

// object returns v as an object, or an empty one if v is not an object.
func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// list returns v as a list, or an empty one if v is not a list.
func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// text returns v as a string, formatted if it is not a string.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// parse decodes JSON in a recording.
func parse(raw json.RawMessage) (any, error) {
	v, err := jsonschema.UnmarshalJSON(newReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read recorded JSON: %w", err)
	}
	return v, nil
}
