package gateway

import (
	"net/http"
	"net/url"
	"strings"
)

// headerFilter forwards only the headers and query parameters of calls that agent programs need, and only the headers
// of answers that they need. Others could choose who pays or which parts of an answer are sent and counted, or name the
// operator's account.
type headerFilter struct {
	next      http.RoundTripper
	keyHeader string // the header with errand's key
}

var _ http.RoundTripper = headerFilter{}

// RoundTrip implements http.RoundTripper.
func (c headerFilter) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.Header = filterHeaders(req.Header, func(name string) bool { return strings.EqualFold(name, c.keyHeader) || isRequestHeader(name) })
	if req.Body != nil && req.Body != http.NoBody {
		out.Header.Set("Content-Type", "application/json") // as the rules read it
	}
	out.URL.RawQuery = filterQuery(req.URL.Query()).Encode()
	answer, err := c.next.RoundTrip(out)
	if answer != nil {
		answer.Header = filterHeaders(answer.Header, isResponseHeader)
		answer.Trailer = nil
	}
	return answer, err
}

// filterHeaders returns the headers for which keep returns true.
func filterHeaders(h http.Header, keep func(name string) bool) http.Header {
	kept := make(http.Header, len(h))
	for name, values := range h {
		if keep(name) {
			kept[name] = values
		}
	}
	return kept
}

// isRequestHeader reports whether a header of a call is forwarded: API versions and features, and the names of programs
// and their sessions. Names have the form of http.CanonicalHeaderKey.
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

// isResponseHeader reports whether a header of an answer is forwarded: its type and ID, rate limits and when to retry.
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

// filterQuery returns the query parameters that are forwarded. Above all, a VM cannot choose an answer without usage.
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
