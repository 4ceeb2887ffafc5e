package modelapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAllows(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"anthropic POST /v1/messages": true, "anthropic POST /v1/messages/count_tokens": true, "anthropic GET /v1/models": true,
		"anthropic GET /v1/messages": false, "anthropic POST /v1/messages/batches": false, "anthropic POST /v1/files": false, "anthropic DELETE /v1/messages": false,
		"anthropic GET /v1/organizations/api_keys": false, "anthropic POST /v1/messages/": false, "anthropic POST /v1/responses": false,
		"openai POST /v1/responses": true, "openai POST /responses": true, "openai POST /v1/chat/completions": true, "openai POST /v1/files": false, "openai POST /v1/fine_tuning/jobs": false,
		"gemini POST /v1beta/models/gemini-2.5-pro:streamGenerateContent": true, "gemini POST /v1beta/models/gemini-2.5-pro:countTokens": true,
		"gemini POST /v1beta/models/../files:generateContent": false, "gemini POST /v1beta/tunedModels": false, "gemini GET /v1beta/models": false,
		"other POST /v1/messages": false,
	}
	for line, want := range tests {
		f := strings.Fields(line)
		if got := API(f[0]).Allows(f[1], f[2]); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestFailDenies(t *testing.T) {
	t.Parallel()
	for _, api := range APIs() {
		w := httptest.NewRecorder()
		if err := api.Fail(w, http.StatusForbidden, "permission_error", "no money"); err != nil {
			t.Fatal(err)
		}
		var body struct {
			Error struct{ Message string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Error.Message != "no money" || w.Code != http.StatusForbidden {
			t.Errorf("%s: got %d %s (%v)", api, w.Code, w.Body, err)
		}
	}
}

// TestTemporaryDenialsCanBeRetried: a temporary denial has the form on which programs retry.
func TestTemporaryDenialsCanBeRetried(t *testing.T) {
	t.Parallel()
	for api, want := range map[API]string{
		Anthropic: `{"error":{"message":"soon","type":"rate_limit_error"},"type":"error"}`,
		OpenAI:    `{"error":{"code":"rate_limit_error","message":"soon","param":null,"type":"rate_limit_error"}}`,
		Gemini:    `{"error":{"code":429,"message":"soon","status":"RESOURCE_EXHAUSTED"}}`,
	} {
		w := httptest.NewRecorder()
		if err := api.Fail(w, http.StatusTooManyRequests, "rate_limit_error", "soon"); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusTooManyRequests || got != want {
			t.Errorf("%s: got %d %s", api, w.Code, got)
		}
	}
}

// TestFailStream: the event that ends a stream is one event in JSON with the message.
func TestFailStream(t *testing.T) {
	t.Parallel()
	for _, api := range APIs() {
		event := string(api.FailStream("permission_error", "no money\n\nleft"))
		data, ok := strings.CutSuffix(event[strings.Index(event, "data: ")+len("data: "):], "\n\n")
		var body struct {
			Error struct{ Message string }
		}
		if err := json.Unmarshal([]byte(data), &body); err != nil || !ok || body.Error.Message != "no money\n\nleft" || strings.Contains(data, "\n") {
			t.Errorf("%s: got %q (%v)", api, event, err)
		}
	}
}

func TestKeyHeader(t *testing.T) {
	t.Parallel()
	want := map[API]string{Anthropic: "X-Api-Key", OpenAI: "Authorization", Gemini: "X-Goog-Api-Key"}
	for _, api := range APIs() {
		if got := api.KeyHeader(); got == "" || got != want[api] {
			t.Errorf("%s has the key header %q, want %q", api, got, want[api])
		}
	}
}
