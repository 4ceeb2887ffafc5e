package modelapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Problem affects every further call with the same key, of any task.
type Problem string

// The problems.
const (
	// ProblemLimit: the account has reached a limit for longer than agents wait by themselves.
	ProblemLimit Problem = "limit"
	// ProblemKey: the key is refused. The operator has to act.
	ProblemKey Problem = "key"
	// ProblemCredit: the account has no credit left. The operator has to act.
	ProblemCredit Problem = "credit"
)

// How long limits last.
const (
	agentPatience = time.Minute        // agents wait for shorter limits themselves
	maxLimit      = 8 * 24 * time.Hour // a later end is not believed
	defaultLimit  = 15 * time.Minute   // of a lasting limit without an end
)

// DropLongRetryAfter removes a Retry-After of more than a minute from an error answer for programs that obey any value:
// Codex would wait for hours. Without it they give up after their own retries, and errand waits, without a VM.
func (a API) DropLongRetryAfter(header http.Header, now time.Time) {
	if a == OpenAI && retryAfter(header.Get("Retry-After"), now).Sub(now) > agentPatience {
		header.Del("Retry-After")
	}
}

// MaxErrorBody is the maximum length of an error's body that ClassifyError needs.
const MaxErrorBody = 64 << 10

// ClassifyError returns the problem that an error answer reports, and the end of a limit. The problem is empty for
// temporary errors: overload, server errors and limits of up to a minute are left to the agent's own retries. The body
// is the beginning of the answer's body and may be incomplete.
func (a API) ClassifyError(status int, header http.Header, body []byte, now time.Time) (t Problem, until time.Time) {
	var e apiError
	if json.Unmarshal(body, &e) != nil {
		var list []apiError // Gemini, without alt=sse
		if json.Unmarshal(body, &list) == nil && len(list) > 0 {
			e = list[0]
		}
	}
	switch {
	case status == http.StatusPaymentRequired, e.noCredit(status):
		return ProblemCredit, time.Time{}
	case status == http.StatusUnauthorized, a == Gemini && e.hasReason("API_KEY_INVALID"):
		return ProblemKey, time.Time{}
	case status != http.StatusTooManyRequests:
		return "", time.Time{}
	}
	until = limitReset(header, e, now)
	if until.Sub(now) <= agentPatience {
		return "", time.Time{}
	}
	if most := now.Add(maxLimit); until.After(most) {
		until = most
	}
	return ProblemLimit, until
}

// An apiError has the fields of all providers' error bodies.
type apiError struct {
	Error struct {
		Type     string  `json:"type"`
		Code     any     `json:"code"` // a string, or Gemini's number
		Message  string  `json:"message"`
		ResetsAt float64 `json:"resets_at"`
		ResetsIn float64 `json:"resets_in_seconds"`
		Details  []struct {
			Reason     string `json:"reason"`
			RetryDelay string `json:"retryDelay"`
			Violations []struct {
				QuotaID string `json:"quotaId"`
			} `json:"violations"`
		} `json:"details"`
	} `json:"error"`
}

// noCredit reports whether the account has no credit.
func (e apiError) noCredit(status int) bool {
	code, _ := e.Error.Code.(string)
	switch {
	case e.Error.Type == "billing_error":
		return true
	case status == http.StatusTooManyRequests && (e.Error.Type == "insufficient_quota" || code == "insufficient_quota"):
		return true
	}
	return status == http.StatusBadRequest && strings.Contains(strings.ToLower(e.Error.Message), "credit balance is too low")
}

func (e apiError) hasReason(reason string) bool {
	for _, d := range e.Error.Details {
		if d.Reason == reason {
			return true
		}
	}
	return false
}

// limitReset returns the end of a limit, from the most specific source that has one, or the zero time.
func limitReset(h http.Header, e apiError, now time.Time) time.Time {
	if h.Get("Anthropic-Ratelimit-Unified-Status") == "rejected" {
		return unifiedReset(h, now)
	}
	switch {
	case e.Error.ResetsAt > 0 && e.Error.ResetsAt < 1e11:
		return time.Unix(int64(e.Error.ResetsAt), 0).UTC()
	case e.Error.ResetsIn > 0 && e.Error.ResetsIn < 1e9:
		return now.Add(time.Duration(e.Error.ResetsIn) * time.Second)
	}
	if at := retryAfter(h.Get("Retry-After"), now); !at.IsZero() {
		return at
	}
	for _, d := range e.Error.Details {
		for _, v := range d.Violations {
			if strings.Contains(v.QuotaID, "PerDay") {
				return pacificMidnight(now)
			}
		}
	}
	for _, d := range e.Error.Details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			return now.Add(wait)
		}
	}
	for _, kind := range []string{"Requests", "Tokens"} {
		wait, err := time.ParseDuration(h.Get("X-Ratelimit-Reset-" + kind))
		if err == nil && wait > 0 && h.Get("X-Ratelimit-Remaining-"+kind) == "0" {
			return now.Add(wait)
		}
	}
	return time.Time{}
}

// unifiedReset returns the end of a subscription's limit. If the answer has none, it assumes one.
func unifiedReset(h http.Header, now time.Time) time.Time {
	if at := parseUnix(h.Get("Anthropic-Ratelimit-Unified-Reset")); !at.IsZero() {
		return at
	}
	var last time.Time
	for _, window := range []string{"5h", "7d"} {
		if name := "Anthropic-Ratelimit-Unified-" + window; h.Get(name+"-Status") == "rejected" {
			if at := parseUnix(h.Get(name + "-Reset")); at.After(last) {
				last = at
			}
		}
	}
	if last.IsZero() {
		last = retryAfter(h.Get("Retry-After"), now)
	}
	if last.IsZero() {
		last = now.Add(defaultLimit)
	}
	return last
}

func parseUnix(s string) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || n > 1e11 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// retryAfter parses both forms of a Retry-After header.
func retryAfter(s string, now time.Time) time.Time {
	if n, err := strconv.ParseInt(s, 10, 32); err == nil && n > 0 {
		return now.Add(time.Duration(n) * time.Second)
	}
	if at, err := http.ParseTime(s); err == nil && at.After(now) {
		return at.UTC()
	}
	return time.Time{}
}

// pacificMidnight returns when Google's daily quotas are reset; in summer it is an hour late.
func pacificMidnight(now time.Time) time.Time {
	p := now.In(time.FixedZone("PST", -8*60*60))
	return time.Date(p.Year(), p.Month(), p.Day()+1, 0, 0, 0, 0, p.Location()).UTC()
}

// ProbePath returns the path of a GET request that costs nothing and shows whether a key works.
func (a API) ProbePath() string {
	if a == Gemini {
		return "/v1beta/models"
	}
	return "/v1/models"
}
