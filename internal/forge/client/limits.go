package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// LimitKind is a kind of rate limit.
type LimitKind string

// The limits.
const (
	LimitPrimary   LimitKind = "primary"   // of requests or points per hour
	LimitSecondary LimitKind = "secondary" // of concurrency, speed and content
	LimitLocal     LimitKind = "pace"      // of errand itself: too many writes are waiting
)

// LimitError means that a request was not sent, or was refused, because of a rate limit. Before Until, all requests of
// the same installation (for LimitPrimary: to the same API) fail without being sent.
type LimitError struct {
	Kind         LimitKind
	Installation int64 // 0 for calls as the App itself
	Until        time.Time
	Message      string // of GitHub; empty if the request was not sent
}

// Error returns the limit and its end.
func (e *LimitError) Error() string {
	s := fmt.Sprintf("%s rate limit of installation %d until %s", e.Kind, e.Installation, e.Until.UTC().Format(time.RFC3339))
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

const (
	minSecondaryWait = time.Minute      // the shortest wait that GitHub allows if it names no time (Config.SecondaryWait)
	maxSecondaryWait = 15 * time.Minute // the longest wait after limits in a row
	resetMargin      = time.Second      // because reset times are whole seconds
)

// api is one of the two APIs, which have separate primary limits.
type api string

const (
	apiREST    api = "rest"
	apiGraphQL api = "graphql"
)

// rateLimits remembers until when each installation must not send requests. Its methods are safe for concurrent use.
type rateLimits struct {
	now   func() time.Time
	first time.Duration // wait after a secondary limit without a time

	mu     sync.Mutex
	closed map[limitKey]*LimitError
	streak map[int64]uint // secondary limits in a row without a time
}

type limitKey struct {
	installation int64
	api          api // empty: both
}

func newRateLimits(now func() time.Time, first time.Duration) *rateLimits {
	return &rateLimits{now: now, first: first, closed: map[limitKey]*LimitError{}, streak: map[int64]uint{}}
}

// check returns the limit that is in effect, or nil.
func (r *rateLimits) check(installation int64, a api) *LimitError {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range []limitKey{{installation, a}, {installation, ""}} {
		l := r.closed[k]
		if l == nil {
			continue
		}
		if r.now().Before(l.Until) {
			return &LimitError{Kind: l.Kind, Installation: l.Installation, Until: l.Until}
		}
		delete(r.closed, k)
	}
	return nil
}

// update evaluates a response. It records and returns a limit; a success ends a streak.
func (r *rateLimits) update(installation int64, a api, resp *http.Response, body []byte) *LimitError {
	kind, message, ok := limitOf(a, resp, body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok {
		if resp.StatusCode < 300 {
			delete(r.streak, installation)
		}
		return nil
	}
	l := &LimitError{Kind: kind, Installation: installation, Message: message, Until: r.limitEnd(installation, kind, resp.Header)}
	k := limitKey{installation, a}
	if kind == LimitSecondary {
		k.api = ""
	}
	r.closed[k] = l
	return l
}

// limitEnd returns the end of a limit, in the order that GitHub documents: Retry-After, then the reset time of an
// exhausted limit, then a minute that doubles.
func (r *rateLimits) limitEnd(installation int64, kind LimitKind, h http.Header) time.Time {
	now := r.now()
	if s, err := strconv.Atoi(h.Get("Retry-After")); err == nil && s >= 0 {
		return now.Add(time.Duration(s) * time.Second)
	}
	if kind == LimitPrimary {
		if s, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil && s > 0 {
			return time.Unix(s, 0).Add(resetMargin)
		}
	}
	n := r.streak[installation]
	r.streak[installation] = n + 1
	return now.Add(min(r.first<<min(n, 8), maxSecondaryWait))
}

// limitOf reports whether a response means a rate limit: a 403 or 429, or a GraphQL response with such an error.
func limitOf(a api, resp *http.Response, body []byte) (kind LimitKind, message string, ok bool) {
	empty := resp.Header.Get("X-RateLimit-Remaining") == "0"
	switch resp.StatusCode {
	case http.StatusOK:
		if a != apiGraphQL || !bytes.Contains(body, []byte(`"errors"`)) {
			return "", "", false
		}
		return limitInGraphQL(body)
	case http.StatusForbidden, http.StatusTooManyRequests:
	default:
		return "", "", false
	}
	var m struct {
		Message string `json:"message"`
		Docs    string `json:"documentation_url"`
	}
	_ = json.Unmarshal(body, &m) // a proxy may answer in plain text
	text := strings.ToLower(m.Message + " " + m.Docs)
	switch {
	case strings.Contains(text, "secondary rate limit"), strings.Contains(text, "secondary-rate-limits"), strings.Contains(text, "abuse"):
		return LimitSecondary, m.Message, true
	case empty:
		return LimitPrimary, m.Message, true
	case resp.StatusCode == http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "":
		return LimitSecondary, m.Message, true
	}
	return "", "", false
}

// limitInGraphQL is limitOf for a GraphQL response with status 200.
func limitInGraphQL(body []byte) (kind LimitKind, message string, ok bool) {
	var response struct {
		Errors []GraphQLProblem `json:"errors"`
	}
	if json.Unmarshal(body, &response) != nil {
		return "", "", false
	}
	for _, e := range response.Errors {
		switch {
		case strings.Contains(strings.ToLower(e.Message), "secondary rate limit"):
			return LimitSecondary, e.Message, true
		case e.Type == "RATE_LIMITED" || e.Type == "RATE_LIMIT":
			return LimitPrimary, e.Message, true
		}
	}
	return "", "", false
}
