package simhetzner

import (
	"errors"
	"fmt"
	"net/http"
)

// apiError is an error response of the API.
type apiError struct {
	status  int
	code    string
	message string
	fields  []string // the invalid fields of an invalid_input error
}

func (e *apiError) Error() string { return fmt.Sprintf("%s: %s", e.code, e.message) }

type wireError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Details any    `json:"details"`
}

type wireField struct {
	Name     string   `json:"name"`
	Messages []string `json:"messages"`
}

// body returns the JSON form.
func (e *apiError) body() any {
	w := wireError{Code: e.code, Message: e.message}
	if e.code == codeInvalid {
		list := make([]wireField, 0, len(e.fields))
		for _, f := range e.fields {
			list = append(list, wireField{Name: f, Messages: []string{e.message}})
		}
		w.Details = map[string]any{"fields": list}
	}
	if e.code == codeDeprecated {
		w.Details = map[string]any{"announcement": "https://docs.hetzner.cloud/changelog"}
	}
	return map[string]any{"error": w}
}

// Error codes.
const (
	codeInvalid      = "invalid_input"
	codeDeprecated   = "deprecated_api_endpoint"
	codeUnauthorized = "unauthorized"
	codeLimited      = "rate_limit_exceeded"
	codeLocked       = "locked"
)

// statusOf returns the HTTP status of an error code. Hetzner documents only a few; clients should not depend on them.
func statusOf(code string) int {
	switch code {
	case codeUnauthorized:
		return http.StatusUnauthorized
	case "forbidden", "token_readonly", "resource_limit_exceeded", "protected":
		return http.StatusForbidden
	case "not_found":
		return http.StatusNotFound
	case "method_not_allowed":
		return http.StatusMethodNotAllowed
	case "uniqueness_error", "conflict", "resource_in_use":
		return http.StatusConflict
	case codeDeprecated:
		return http.StatusGone
	case "resource_unavailable", "placement_error":
		return http.StatusPreconditionFailed
	case codeInvalid, "unsupported_error", "invalid_server_type", "server_not_stopped", "service_error":
		return http.StatusUnprocessableEntity
	case codeLocked:
		return http.StatusLocked
	case codeLimited:
		return http.StatusTooManyRequests
	case "json_error":
		return http.StatusBadRequest
	case "unavailable", "maintenance":
		return http.StatusServiceUnavailable
	case "timeout":
		return http.StatusGatewayTimeout
	case "bad_gateway":
		return http.StatusBadGateway
	}
	return http.StatusInternalServerError
}

func newError(code, format string, args ...any) *apiError {
	return &apiError{status: statusOf(code), code: code, message: fmt.Sprintf(format, args...)}
}

// newFieldError returns an error for a field.
func newFieldError(field, format string, args ...any) *apiError {
	e := newError(codeInvalid, "invalid input in field '"+field+"': "+format, args...)
	e.fields = []string{field}
	return e
}

func notFound(kind string, id any) *apiError {
	return newError("not_found", "%s with ID '%v' not found", kind, id)
}

// asAPI converts any error to the API's form.
func asAPI(err error) *apiError {
	var e *apiError
	if errors.As(err, &e) {
		return e
	}
	return newError("server_error", "%v", err)
}
