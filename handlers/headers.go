package handlers

import (
	"crypto/sha256"
	"mime"
	"strings"
)

// form describes the valid values of a header that every webhook has.
type form struct {
	header string
	valid  func(string) bool
	hint   string
}

// webhookForms returns the required headers. Their names are in canonical form, which is the fastest to look up.
func webhookForms() []form {
	return []form{
		{"X-Hub-Signature-256", isSignature, "set a webhook secret in the App's settings"},
		{"X-Github-Delivery", isDeliveryID, "GitHub sends a GUID"},
		{"X-Github-Event", isEventName, "GitHub sends the event's name"},
		{"Content-Type", func(v string) bool { return mediaType(v) != "" }, "choose application/json in the App's settings"},
	}
}

// The two content types of webhooks.
const (
	typeJSON = "application/json"
	typeForm = "application/x-www-form-urlencoded"
)

// mediaType returns the content type if it is one of the two, else "".
func mediaType(header string) string {
	kind := header
	if kind != typeJSON && kind != typeForm {
		var err error
		if kind, _, err = mime.ParseMediaType(header); err != nil {
			return ""
		}
	}
	if kind != typeJSON && kind != typeForm {
		return ""
	}
	return kind
}

// isSignature reports whether s is sha256= and 64 hexadecimal digits in lower case.
func isSignature(s string) bool {
	digits, found := strings.CutPrefix(s, "sha256=")
	return found && len(digits) == 2*sha256.Size && containsOnly(digits, func(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' })
}

// isDeliveryID reports whether s is a possible GUID of a delivery.
func isDeliveryID(s string) bool {
	const most = 100
	return s != "" && len(s) <= most && containsOnly(s, func(c byte) bool {
		return isDigit(c) || isLower(c) || c >= 'A' && c <= 'Z' || c == '_' || c == '.' || c == ':' || c == '-'
	})
}

// isEventName reports whether s is a possible name of an event.
func isEventName(s string) bool {
	const most = 64
	return s != "" && len(s) <= most && isLower(s[0]) && containsOnly(s, func(c byte) bool { return isDigit(c) || isLower(c) || c == '_' })
}

func containsOnly(s string, valid func(byte) bool) bool {
	for i := range len(s) {
		if !valid(s[i]) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
