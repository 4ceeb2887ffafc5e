package pushgate

import (
	"regexp"
	"strconv"
	"strings"
)

// Home is where a commit belongs.
type Home struct {
	// Owner and Name are the repository's.
	Owner, Name string
	// Issue is the number of the task's own issue, the only one that a message may close.
	Issue int
}

// SafeMessage returns a commit message without what GitHub would act upon beyond the task's issue:
//
//   - a closing keyword for any other issue becomes "see", because merging would close that issue;
//   - @name becomes "@ name", because an agent does not call people;
//   - Co-authored-by, Signed-off-by, Reviewed-by and the like go, because an agent cannot speak for
//     anybody;
//   - [skip ci] and its kin are disarmed, because checks are not the agent's to skip.
//
// Line ends become \n. Applying it twice changes nothing more. Whoever publishes a commit applies
// it to the message that Judge has let pass.
func SafeMessage(message string, home Home) string {
	message = strings.ReplaceAll(message, "\r\n", "\n")
	message = strings.ReplaceAll(message, "\r", "\n")
	message = trailers.ReplaceAllString(message, "")
	message = skipCI.ReplaceAllString(message, "($1)")
	message = disarmClosing(message, home)
	message = mention.ReplaceAllString(message, "$1@ $2")
	message = blankLines.ReplaceAllString(message, "\n\n")
	if message = strings.TrimSpace(message); message == "" {
		return "Update files"
	}
	return message
}

// What GitHub, or a person who reads a history, gives a meaning.
var (
	trailers   = regexp.MustCompile(`(?im)^[ \t]*(?:(?:co-authored|co-developed|signed-off|reviewed|acked|approved|tested|committed)-by|skip-checks)[ \t]*:.*(?:\n|$)`)
	skipCI     = regexp.MustCompile(`(?i)\[((?:skip[ _-]?(?:ci|actions))|(?:(?:ci|actions)[ _-]?skip)|no[ _-]?ci)\]`)
	mention    = regexp.MustCompile("(^|[^\\w@/.`])@([A-Za-z0-9])")
	closing    = regexp.MustCompile(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)(:?[ \t]+)(\S*#|https?://\S+/(?:issues|pull)/|gh-)(\d+)\b`)
	blankLines = regexp.MustCompile(`\n{3,}`)
)

func disarmClosing(message string, home Home) string {
	return closing.ReplaceAllStringFunc(message, func(match string) string {
		parts := closing.FindStringSubmatch(match)
		where, number := parts[2], parts[3]
		own := where == "#" || strings.EqualFold(where, "gh-") || strings.EqualFold(where, home.Owner+"/"+home.Name+"#")
		if n, err := strconv.Atoi(number); own && err == nil && n == home.Issue {
			return match
		}
		return "see" + strings.TrimPrefix(parts[1], ":") + where + number
	})
}
