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
//   - @name becomes "@ name", wherever it stands, because an agent does not call people;
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
	message = mention.ReplaceAllString(message, "$1@ $2")
	message = disarmClosing(message, home)
	message = blankLines.ReplaceAllString(message, "\n\n")
	if message = strings.TrimSpace(message); message == "" {
		return "Update files"
	}
	return message
}

// What GitHub, or a person who reads a history, gives a meaning.
var (
	trailers = regexp.MustCompile(`(?im)^[ \t\pZ]*(?:(?:co-authored|co-developed|signed-off|reviewed|acked|approved|tested|committed)-by|skip-checks)[ \t\pZ]*:.*(?:\n|$)`)
	skipCI   = regexp.MustCompile(`(?i)\[((?:skip[ _-]?(?:ci|actions))|(?:(?:ci|actions)[ _-]?skip)|no[ _-]?ci)\]`)
	// A message is no Markdown: what looks like code calls people, too. Only an address of mail has a letter before the sign.
	mention = regexp.MustCompile(`(^|\W)@([A-Za-z0-9])`)
	// Between the word and the reference there may be any kind of space, and marks or signs of Markdown around it.
	closing = regexp.MustCompile(`(?i)(^|[^A-Za-z0-9])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)([^\pL\pN#]*[\s\pZ\pC:][^\pL\pN#]*)` +
		`([\w./-]*#|https?://[^\s/]+/[\w.-]+/[\w.-]+/(?:issues|pull)/|gh-)(\d+)\b`)
	blankLines = regexp.MustCompile(`\n{3,}`)
)

func disarmClosing(message string, home Home) string {
	return closing.ReplaceAllStringFunc(message, func(match string) string {
		parts := closing.FindStringSubmatch(match)
		before, between, where, number := parts[1], parts[2], parts[3], parts[4]
		own := where == "#" || strings.EqualFold(where, "gh-") || strings.EqualFold(where, home.Owner+"/"+home.Name+"#")
		if n, err := strconv.Atoi(number); own && err == nil && n == home.Issue {
			return match
		}
		if between = strings.TrimPrefix(between, ":"); between == "" {
			between = " "
		}
		return before + "see" + between + where + number
	})
}
