package gateway

import (
	"net/http"
	"net/url"
	"strings"
)

// headerFilter passes on to a model's provider what programs need of a call's header and query, and back to them what they
// need of an answer's header. Whatever else a VM says there could choose who pays, or what of an answer comes and is
// counted; whatever else a provider says there may name the operator's account.
type headerFilter struct {
	next      http.RoundTripper
	keyHeader string // the header that carries ours
}

var _ http.RoundTripper = headerFilter{}

// RoundTrip implements http.RoundTripper.
func (c headerFilter) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.Header = filterHeaders(req.Header, func(name string) bool { return strings.EqualFold(name, c.keyHeader) || isRequestHeader(name) })
	if req.Body != nil && req.Body != http.NoBody {
		out.Header.Set("Content-Type", "application/json") // as which it was read
	}
	out.URL.RawQuery = filterQuery(req.URL.Query()).Encode()
	answer, err := c.next.RoundTrip(out)
	if answer != nil {
		answer.Header = filterHeaders(answer.Header, isResponseHeader)
		answer.Trailer = nil
	}
	return answer, err
}

// filterHeaders returns those that keep is true of.
func filterHeaders(h http.Header, keep func(name string) bool) http.Header {
	kept := make(http.Header, len(h))
	for name, values := range h {
		if keep(name) {
			kept[name] = values
		}
	}
	return kept
}

// isRequestHeader reports whether the provider gets a header of a call: what programs say of the API that they know, of
// themselves and of their session. Names are in the form of http.CanonicalHeaderKey.
func isRequestHeader(name string) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "User-Agent",
		"Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access", "X-App",
		"Openai-Beta", "Originator", "Session-Id", "Session_id", "Thread-Id", "Conversation_id", "X-Client-Request-Id",
		"X-Goog-Api-Client":
		return true
	}
	for _, begin := range []string{"X-Claude-Code-", "X-Stainless-", "X-Codex-"} {
		if strings.HasPrefix(name, begin) {
			return true
		}
	}
	return false
}

// isResponseHeader reports whether a program gets a header of an answer: what the answer is, which it is, what the limits
// are and when to ask again.
func isResponseHeader(name string) bool {
	switch name {
	case "Content-Type", "Content-Length", "Content-Encoding", "Cache-Control", "Date",
		"Retry-After", "Retry-After-Ms", "X-Should-Retry",
		"Request-Id", "X-Request-Id", "X-Oai-Request-Id", "Openai-Processing-Ms", "Openai-Version", "Openai-Model",
		"X-Codex-Turn-State", "X-Reasoning-Included", "X-Models-Etag":
		return true
	}
	return strings.HasPrefix(name, "Anthropic-Ratelimit-") || strings.HasPrefix(name, "X-Ratelimit-")
}

// filterQuery returns what the provider gets of a query. Above all a VM cannot choose an answer without its usage.
func filterQuery(q url.Values) url.Values {
	kept := url.Values{}
	for name, values := range q {
		switch name {
		case "beta", "api-version", "client_version", "limit", "before_id", "after_id":
			kept[name] = values
		case "alt":
			if len(values) == 1 && (values[0] == "sse" || values[0] == "json") {
				kept[name] = values
			}
		}
	}
	return kept
}
