package comment

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var markerAtEnd = regexp.MustCompile(`<!-- errand:([A-Za-z0-9._:/%-]*) -->\s*$`)

// Marker returns the hidden marker of a comment: the idempotency key of the job that posts it. Different keys have different
// markers.
func Marker(key string) string { return "<!-- errand:" + escapeKey(key) + " -->" }

// FindMarker returns the key of the marker at the end of a comment, if there is one. Markers elsewhere do not count, and
// markdown.Embed removes them.
func FindMarker(body string) (key string, ok bool) {
	m := markerAtEnd.FindStringSubmatch(body)
	if m == nil {
		return "", false
	}
	return unescapeKey(m[1]), true
}

// escapeKey writes characters that are not safe in an HTML comment as %XX. It escapes the second of two hyphens, which would
// end the comment.
func escapeKey(key string) string {
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._:/", c) >= 0
		if plain || c == '-' && i > 0 && key[i-1] != '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func unescapeKey(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
