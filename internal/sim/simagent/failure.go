package simagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// failure is an error response of the API, or, with status 0, a request without a response.
type failure struct {
	status  int
	message string
	after   time.Duration
	header  http.Header
}

func (f *failure) Error() string { return fmt.Sprintf("API error %d: %s", f.status, f.message) }

// retryable reports whether the same request may be sent again.
func (f *failure) retryable() bool {
	switch {
	case f.after > maxObeyed || f.limited():
		return false
	case f.status == 0, f.status == http.StatusUnauthorized, f.status == http.StatusRequestTimeout,
		f.status == http.StatusConflict, f.status == http.StatusTooManyRequests:
		return true
	}
	return f.status >= http.StatusInternalServerError
}

// limited reports whether a subscription's limit is reached.
func (f *failure) limited() bool {
	return f.status == http.StatusTooManyRequests && f.header.Get("Anthropic-Ratelimit-Unified-Status") == "rejected"
}

// kind returns the failure's name in retry events.
func (f *failure) kind() string {
	switch {
	case f.status == 529:
		return "overloaded"
	case f.status == http.StatusTooManyRequests:
		return "rate_limit"
	case f.status == http.StatusUnauthorized || f.status == http.StatusForbidden:
		return "authentication_failed"
	case f.status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "unknown"
}

// readFailure reads an error response; its body may have any form.
func readFailure(res *http.Response) *failure {
	f := &failure{status: res.StatusCode, header: res.Header}
	data, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		data = nil
	}
	var wire struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	f.message = strings.TrimSpace(string(data))
	if json.Unmarshal(data, &wire) == nil && wire.Error.Message != "" {
		f.message = wire.Error.Message
	}
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
		f.after = time.Duration(s) * time.Second
	}
	return f
}

// failed returns the outcome if the model cannot be called; its text also appears as a response of the model.
func (a *agent) failed(err error, turns int) ending {
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{message: err.Error(), header: http.Header{}}
	}
	text, kind, reason := "", "server_error", ""
	switch {
	case !a.client.loggedIn():
		text, kind = f.message, "authentication_failed"
	case f.limited() && a.client.oauth != "":
		text, kind = a.limitText(f), "rate_limit"
	case f.status == http.StatusTooManyRequests:
		text, kind = "API Error: Request rejected (429) · "+f.message, "rate_limit"
	case f.status == 0:
		text = "API Error: Unable to connect to API (" + f.message + ")"
	case f.status == http.StatusUnauthorized || f.status == http.StatusForbidden:
		text, kind = fmt.Sprintf("Failed to authenticate. API Error: %d %s", f.status, f.message), "authentication_failed"
	case f.status == http.StatusPaymentRequired:
		text, kind = "Credit balance is too low", "billing_error"
	case f.status == http.StatusBadRequest && strings.Contains(f.message, "prompt is too long"):
		text, kind, reason = "Prompt is too long", "invalid_request", "prompt_too_long"
	case f.status == http.StatusNotFound:
		text, kind = "API Error: 404 "+f.message, "model_not_found"
	default:
		text = fmt.Sprintf("API Error: %d %s", f.status, f.message)
		if f.status < http.StatusInternalServerError {
			kind = "invalid_request"
		}
	}
	r := &reply{ID: newID(), Model: "<synthetic>"}
	a.out.assistant(r, block{Type: "text", Text: text}, kind)
	return ending{
		subtype: "success", isError: true, status: f.status, turns: max(turns, 1), text: text,
		stop: "stop_sequence", reason: reason, exit: 1,
	}
}

// limitText returns when a subscription's limit resets, and prints the corresponding event.
func (a *agent) limitText(f *failure) string {
	reset, err := strconv.ParseInt(f.header.Get("Anthropic-Ratelimit-Unified-Reset"), 10, 64)
	if err != nil {
		return "You've hit your session limit"
	}
	a.out.emit("rate_limit_event", event{"rate_limit_info": event{
		"status": "rejected", "resetsAt": reset, "rateLimitType": "five_hour", "utilization": 1,
	}})
	return "You've hit your session limit · resets " + time.Unix(reset, 0).UTC().Format("3:04pm") + " (UTC)"
}
