// Package modelapi knows the APIs of model providers as far as errand has to: which requests an agent
// CLI needs, what an answer has cost, and how to refuse in a form that the CLI understands. It counts
// while an answer passes through, streamed or not, and never holds one up.
//
// It holds no key and knows no task: internal/tether puts the key in and says who pays. What an agent
// reports about its own cost is not looked at here, since what runs on a VM may say anything.
//
// Start reading at API, then Counter and Prices.
package modelapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
)

// API is the dialect of a provider.
type API string

// The dialects that are known.
const (
	Anthropic API = "anthropic" // the Messages API
	OpenAI    API = "openai"    // the Responses and Chat Completions APIs
	Gemini    API = "gemini"    // generateContent
)

// APIs lists the dialects, the default first.
func APIs() []API { return []API{Anthropic, OpenAI, Gemini} }

// KeyHeader is the header that carries a key of the provider itself. Authorization takes it as a bearer token.
func (a API) KeyHeader() string {
	switch a {
	case OpenAI:
		return "Authorization"
	case Gemini:
		return "X-Goog-Api-Key"
	}
	return "X-Api-Key"
}

var geminiCall = regexp.MustCompile(`^/v1(?:beta|alpha)?/models/[A-Za-z0-9._-]{1,100}:(?:generateContent|streamGenerateContent|countTokens)$`)

// Allows reports whether a CLI needs this request: calls of the model, counting tokens, and the list of
// models. Files, batches, fine-tuning, keys and everything else that an account's key could reach is not
// for agents. The path begins with a slash and has no query.
func (a API) Allows(method, path string) bool {
	if method == http.MethodGet {
		return a != Gemini && path == "/v1/models"
	}
	if method != http.MethodPost {
		return false
	}
	switch a {
	case Anthropic:
		return path == "/v1/messages" || path == "/v1/messages/count_tokens"
	case OpenAI:
		return path == "/v1/responses" || path == "/v1/chat/completions" ||
			path == "/responses" || path == "/chat/completions" // where the base URL has the version
	case Gemini:
		return geminiCall.MatchString(path)
	}
	return false
}

// Fail answers in the API's own error form.
func (a API) Fail(w http.ResponseWriter, status int, kind, message string) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body := a.failure(kind, message)
	if e, ok := body["error"].(map[string]any); ok && a == Gemini {
		switch status {
		case http.StatusServiceUnavailable:
			e["code"], e["status"] = status, "UNAVAILABLE"
		case http.StatusTooManyRequests:
			e["code"], e["status"] = status, "RESOURCE_EXHAUSTED"
		}
	}
	if err := json.NewEncoder(w).Encode(body); err != nil {
		return fmt.Errorf("answer a model call with status %d: %w", status, err)
	}
	return nil
}

// ReplaceWithDenial makes a refusal of an answer of the API.
func (a API) ReplaceWithDenial(answer *http.Response, kind, message string) {
	body, err := json.Marshal(a.failure(kind, message))
	if err != nil { // of strings: cannot happen
		body = nil
	}
	_ = answer.Body.Close() // nothing of it is wanted
	answer.StatusCode, answer.Status = http.StatusForbidden, "403 Forbidden"
	answer.Header = http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}
	answer.ContentLength, answer.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
}

// failure is the API's own form of an error.
func (a API) failure(kind, message string) map[string]any {
	switch a {
	case OpenAI:
		code := kind
		if kind == "overloaded_error" {
			kind, code = "server_error", "server_is_overloaded" // which Codex does not try again
		}
		return map[string]any{"error": map[string]any{"message": message, "type": kind, "code": code, "param": nil}}
	case Gemini:
		return map[string]any{"error": map[string]any{"code": http.StatusForbidden, "message": message, "status": "PERMISSION_DENIED"}}
	}
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}}
}

// FailStream is the event by which the API says in the middle of a streamed answer that there will be no more
// of it. It has to follow the end of another event.
func (a API) FailStream(kind, message string) []byte {
	body, name := a.failure(kind, message), "event: error\n"
	switch a {
	case OpenAI: // both the Responses API's form and that of chats
		body["type"], body["code"], body["message"], body["param"] = "error", kind, message, nil
	case Gemini:
		name = ""
	}
	data, err := json.Marshal(body)
	if err != nil { // of strings: cannot happen
		return nil
	}
	return fmt.Appendf(nil, "%sdata: %s\n\n", name, data)
}
