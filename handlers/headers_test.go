package handlers

import (
	"regexp"
	"strings"
	"testing"
)

// FuzzHeaders compares the checks of a webhook's headers with regular expressions.
func FuzzHeaders(f *testing.F) {
	digits := strings.Repeat("0123456789abcdef", 4)
	for _, seed := range []string{
		"", "sha256=", "sha256=" + digits, "sha256=" + digits[1:], "sha256=" + digits + "0", "sha256=" + digits[1:] + "\n", "sha256=" + strings.ToUpper(digits), "SHA256=" + digits, "sha1=" + digits[:40],
		"72d3162e-cc78-11e3-81ab-4c9367dc0958", "a_b.C:9-", "../x", "a\n", "a b", "é", "\xff", strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("a", 100), strings.Repeat("a", 101),
		"issues", "projects_v2_item", "_issues", "2issues", "Issues", "issues\n", "issues; drop", "`", "{", "/", ":", "@", "[", "g",
	} {
		f.Add(seed)
	}
	signature, guid, event := regexp.MustCompile(`^sha256=[0-9a-f]{64}$`), regexp.MustCompile(`^[0-9A-Za-z_.:-]{1,100}$`), regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	f.Fuzz(func(t *testing.T, header string) {
		if got, want := isSignature(header), signature.MatchString(header); got != want {
			t.Errorf("isSignature(%q): got %v, want %v", header, got, want)
		}
		if got, want := isDeliveryID(header), guid.MatchString(header); got != want {
			t.Errorf("isDeliveryID(%q): got %v, want %v", header, got, want)
		}
		if got, want := isEventName(header), event.MatchString(header); got != want {
			t.Errorf("isEventName(%q): got %v, want %v", header, got, want)
		}
	})
}

// A Content-Type may have parameters, and its case does not matter.
func TestMediaType(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"application/json": typeJSON, "application/json; charset=utf-8": typeJSON, "Application/JSON": typeJSON, " application/json ": typeJSON,
		"application/x-www-form-urlencoded": typeForm, "application/x-www-form-urlencoded;charset=UTF-8": typeForm,
		"": "", "text/plain": "", "application/json; =": "", "application/json, application/json": "", "application/jsonx": "", "multipart/form-data; boundary=x": "",
	} {
		if got := mediaType(header); got != want {
			t.Errorf("%q: got %q, want %q", header, got, want)
		}
	}
}
