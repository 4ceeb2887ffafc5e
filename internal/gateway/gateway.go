// Package gateway knows the APIs of model providers as far as errand has to: which requests an agent
// CLI needs, what an answer has cost, and how to refuse in a form that the CLI understands. It counts
// while an answer passes through, streamed or not, and never holds one up.
//
// It holds no key and knows no task: internal/tether puts the key in and says who pays. What an agent
// reports about its own cost is not looked at here, since what runs on a VM may say anything.
//
// Start reading at API, then Counter and Prices.
package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
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

// Refuse answers in the API's own error form, with a status that CLIs do not try again: 403.
func (a API) Refuse(w http.ResponseWriter, kind, message string) error {
	var body any
	switch a {
	case OpenAI:
		body = map[string]any{"error": map[string]any{"message": message, "type": kind, "code": kind, "param": nil}}
	case Gemini:
		body = map[string]any{"error": map[string]any{"code": http.StatusForbidden, "message": message, "status": "PERMISSION_DENIED"}}
	default:
		body = map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		return fmt.Errorf("refuse a model call: %w", err)
	}
	return nil
}
