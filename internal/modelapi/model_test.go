package modelapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestRequestedModel(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		api        API
		path, body string
		want       string // empty: it is refused
	}{
		"plain":            {Anthropic, "/v1/messages", `{"model":"claude-sonnet-5","messages":[]}`, "claude-sonnet-5"},
		"spaced":           {OpenAI, "/v1/responses", " {\n \"input\" : [1, {\"model\":\"x\"}] ,\n \"model\" : \"gpt-5.5\" } ", "gpt-5.5"},
		"escaped key":      {OpenAI, "/v1/responses", `{"mod\u0065l":"gpt-5.5"}`, "gpt-5.5"},
		"inside a text":    {Anthropic, "/v1/messages", `{"system":"{\"model\":\"x\"} \\","model":"a"}`, "a"},
		"nested":           {Anthropic, "/v1/messages", `{"metadata":{"model":"x","models":[{}]},"model":"a"}`, "a"},
		"in the path":      {Gemini, "/v1beta/models/gemini-3-pro:streamGenerateContent", `{"model":"x"}`, "gemini-3-pro"},
		"twice":            {Anthropic, "/v1/messages", `{"model":"a","model":"b"}`, ""},
		"twice, escaped":   {Anthropic, "/v1/messages", `{"model":"a","\u006dodel":"b"}`, ""},
		"twice, otherwise": {Anthropic, "/v1/messages", `{"model":"b","MODEL":"a"}`, ""},
		"in capitals":      {Anthropic, "/v1/messages", `{"Model":"a"}`, ""},
		"none":             {Anthropic, "/v1/messages", `{"messages":[{"model":"a"}]}`, ""},
		"no text":          {Anthropic, "/v1/messages", `{"model":["a"]}`, ""},
		"empty":            {Anthropic, "/v1/messages", `{"model":""}`, ""},
		"a list":           {Anthropic, "/v1/messages", `[{"model":"a"}]`, ""},
		"a text":           {Anthropic, "/v1/messages", `"model"`, ""},
		"no body":          {Anthropic, "/v1/messages", ``, ""},
		"to fall back on":  {OpenAI, "/v1/chat/completions", `{"model":"a","models":["b"]}`, ""},
		"fall-backs":       {OpenAI, "/v1/chat/completions", `{"model":"a","fallbacks":["b"]}`, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := test.api.RequestedModel(test.path, []byte(test.body))
			if got != test.want || (err == nil) != (test.want != "") || err != nil && !errors.Is(err, ErrNoModel) {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestSameModel(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		configured, named string
		want              bool
	}{
		"the same":          {"claude-sonnet-5", "claude-sonnet-5", true},
		"a dated edition":   {"claude-sonnet-4-5", "claude-sonnet-4-5-20250929", true},
		"a later one":       {"claude-sonnet-4", "claude-sonnet-4-5", false},
		"a larger one":      {"gpt-5.5", "gpt-5.5-pro", false},
		"a smaller one":     {"gpt-5.5", "gpt-5", false},
		"of a date":         {"claude-sonnet-4-5-20250929", "claude-sonnet-4-5", false},
		"with its context":  {"claude-opus-4-8[1m]", "claude-opus-4-8", true},
		"with its provider": {"openai/gpt-5.5", "gpt-5.5", true},
		"an alias":          {"opus", "claude-opus-4-8", true},
		"another alias":     {"sonnet", "claude-opus-4-8", false},
		"a part of one":     {"son", "claude-sonnet-5", false},
		"the maker":         {"claude", "claude-opus-4-8", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := SameModel(test.configured, test.named); got != test.want {
				t.Errorf("%q: got %q, error %v", test.named, test.configured, got)
			}
		})
	}
}

// FuzzRequestedModel: an allowed request calls the same model for every reader of its body, including readers that
// ignore the case of keys.
func FuzzRequestedModel(f *testing.F) {
	f.Add(`{"model":"a","b":[{"model":"x"}],"c":"\"model\":\"y\""}`)
	f.Add(`{"model":"a","model":"b"}`)
	f.Add(`{"MODEL":"a","model":"b"}`)
	f.Add(`{"a":{"b":[1,2,{"c":"}"}]},"model" : "x\\" }`)
	f.Fuzz(func(t *testing.T, body string) {
		if !json.Valid([]byte(body)) {
			return
		}
		name, err := Anthropic.RequestedModel("/v1/messages", []byte(body))
		if err != nil {
			return
		}
		var folded struct{ Model string }
		var exact map[string]json.RawMessage
		if err := json.Unmarshal([]byte(body), &folded); err != nil || folded.Model != name {
			t.Errorf("got %q, another reader gets %q (%v): %s", name, folded.Model, err, body)
		}
		dec := json.NewDecoder(bytes.NewReader([]byte(body)))
		if err := dec.Decode(&exact); err != nil {
			t.Fatal(err)
		}
		var last string
		if err := json.Unmarshal(exact["model"], &last); err != nil || last != name {
			t.Errorf("got %q, but the body has %q", name, last)
		}
		if first := strings.Count(body, "model"); first == 0 && !strings.Contains(body, `\u`) {
			t.Errorf("got %q from a body without a model", name)
		}
	})
}
