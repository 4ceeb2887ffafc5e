package comment

import (
	"fmt"
	"strings"
)

// Marker returns the hidden marker of a comment: the idempotency key of the job that posts it. Different keys have different
// markers.
func Marker(key string) string { return "<!-- errand:" + escapeKey(key) + " -->" }

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
