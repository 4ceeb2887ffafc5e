package comment

import (
	"regexp"
	"strconv"
	"strings"
)

var markerAtEnd = regexp.MustCompile(`<!-- errand:([A-Za-z0-9._:/%-]*) -->\s*$`)

// findMarker returns the key of the marker at the end of a comment, if there is one. Markers elsewhere do not count, and
// markdown.Embed removes them.
func findMarker(body string) (key string, ok bool) {
	m := markerAtEnd.FindStringSubmatch(body)
	if m == nil {
		return "", false
	}
	return unescapeKey(m[1]), true
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
