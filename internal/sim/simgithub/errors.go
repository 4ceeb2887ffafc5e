package simgithub

import (
	"fmt"
	"net/http"
)

// Error is an error response in GitHub's format. Acts of a Person return it, too, so that tests can check its Status.
type Error struct {
	Status  int
	Message string
	Fields  []FieldError
	Header  http.Header // further headers of the answer, may be nil
	DocURL  string
}

// FieldError is an entry of the errors list of a 422.
type FieldError struct {
	Resource string `json:"resource,omitempty"`
	Field    string `json:"field,omitempty"`
	Code     string `json:"code,omitempty"`
	Message  string `json:"message,omitempty"`
	Value    any    `json:"value,omitempty"`
}

// Error implements error.
func (e *Error) Error() string {
	if len(e.Fields) > 0 {
		return fmt.Sprintf("%d %s %+v", e.Status, e.Message, e.Fields)
	}
	return fmt.Sprintf("%d %s", e.Status, e.Message)
}

func errNotFound() error { return &Error{Status: http.StatusNotFound, Message: "Not Found"} }

func errBadCredentials() error {
	return &Error{Status: http.StatusUnauthorized, Message: "Bad credentials"}
}

func errNeedAuth() error {
	return &Error{Status: http.StatusUnauthorized, Message: "Requires authentication"}
}

func errIntegration() error {
	return &Error{Status: http.StatusForbidden, Message: "Resource not accessible by integration"}
}

func errForbidden(format string, args ...any) error {
	return &Error{Status: http.StatusForbidden, Message: fmt.Sprintf(format, args...)}
}

// errInvalid returns the usual 422 about one field. Code is missing, missing_field, invalid or already_exists.
func errInvalid(resource, field, code string) error {
	return &Error{Status: http.StatusUnprocessableEntity, Message: "Validation Failed",
		Fields: []FieldError{{Resource: resource, Field: field, Code: code}}}
}

// errCustom returns a 422 with a message for a resource.
func errCustom(resource, message string) error {
	return &Error{Status: http.StatusUnprocessableEntity, Message: "Validation Failed",
		Fields: []FieldError{{Resource: resource, Code: "custom", Message: message}}}
}

// errUnprocessable returns a 422 with only a message.
func errUnprocessable(format string, args ...any) error {
	return &Error{Status: http.StatusUnprocessableEntity, Message: fmt.Sprintf(format, args...)}
}
