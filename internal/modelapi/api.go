// Package modelapi knows the APIs of model providers: the requests that agent programs need, the cost of requests and
// answers, the errors that concern the whole account, and how to deny a call in a form that programs understand. It
// counts answers while they are read, streamed or not, without delaying them.
//
// It has no keys and knows no tasks; that is the job of package gateway. It does not use the costs that agents report,
// because programs on a VM may report anything.
//
// Start with [API], then [Counter] and [Prices].
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

// API is the kind of a provider's API.
type API string

// The supported APIs.
const (
	Anthropic API = "anthropic" // the Messages API
	OpenAI    API = "openai"    // the Responses and Chat Completions APIs
	Gemini    API = "gemini"    // generateContent
)

// APIs lists the supported APIs, the default first.
func APIs() []API { return []API{Anthropic, OpenAI, Gemini} }

// KeyHeader returns the header for the provider's key. In Authorization the key is a bearer token.
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

// Allows reports whether agents may send this request: calls of models, token counts, and the list of models. Files,
// batches, fine-tuning, keys and everything else that the account's key gives access to are denied. The path begins
// with a slash and has no query.
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
			path == "/responses" || path == "/chat/completions" // if the base URL contains the version
	case Gemini:
		return geminiCall.MatchString(path)
	}
	return false
}

// Fail answers with an error in the API's own form.
func (a API) Fail(w http.ResponseWriter, status int, kind, message string) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body := a.errorBody(kind, message)
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

// ReplaceWithDenial replaces an answer of the API with an error that agents do not retry: 403.
func (a API) ReplaceWithDenial(answer *http.Response, kind, message string) {
	body, err := json.Marshal(a.errorBody(kind, message))
	if err != nil { // of strings: cannot happen
		body = nil
	}
	_ = answer.Body.Close() // replaced
	answer.StatusCode, answer.Status = http.StatusForbidden, "403 Forbidden"
	answer.Header = http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}
	answer.ContentLength, answer.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
}

// errorBody returns an error in the API's own form.
func (a API) errorBody(kind, message string) map[string]any {
	switch a {
	case OpenAI:
		code := kind
		if kind == "overloaded_error" {
			kind, code = "server_error", "server_is_overloaded" // Codex does not retry this code
		}
		return map[string]any{"error": map[string]any{"message": message, "type": kind, "code": code, "param": nil}}
	case Gemini:
		return map[string]any{"error": map[string]any{"code": http.StatusForbidden, "message": message, "status": "PERMISSION_DENIED"}}
	}
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}}
}

// FailStream returns the API's error event, which ends a streamed answer early. It has to follow the end of another
// event.
func (a API) FailStream(kind, message string) []byte {
	body, name := a.errorBody(kind, message), "event: error\n"
	switch a {
	case OpenAI: // for both the Responses and the Chat Completions API
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
