package pushgate

import (
	"regexp"
	"strconv"
	"strings"
)

// Home identifies the repository and the issue that a commit belongs to.
type Home struct {
	// Owner and Name identify the repository.
	Owner, Name string
	// Issue is the number of the task's issue, the only one that a message may close.
	Issue int
}

// SafeMessage neutralizes the parts of a commit message that would have an effect on GitHub beyond the task's issue:
//
//   - a closing keyword for any other issue becomes "see", because merging would close that issue;
//   - @name becomes "@ name" everywhere, because an agent must not notify people;
//   - trailers such as Co-authored-by, Signed-off-by and Reviewed-by are removed, because an agent cannot speak for
//     others;
//   - [skip ci] and its variants are put in parentheses, because an agent must not skip checks.
//
// Line ends become \n. SafeMessage is idempotent. The publisher applies it to every message that [Judge] has accepted.
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

// Text to which GitHub, or a reader of the history, assigns a meaning.
var (
	trailers = regexp.MustCompile(`(?im)^[ \t\pZ]*(?:(?:co-authored|co-developed|signed-off|reviewed|acked|approved|tested|committed)-by|skip-checks)[ \t\pZ]*:.*(?:\n|$)`)
	skipCI   = regexp.MustCompile(`(?i)\[((?:skip[ _-]?(?:ci|actions))|(?:(?:ci|actions)[ _-]?skip)|no[ _-]?ci)\]`)
	// Commit messages are not Markdown, so a mention in code notifies people, too. Only in an email address is the sign
	// preceded by a letter.
	mention = regexp.MustCompile(`(^|\W)@([A-Za-z0-9])`)
	// The keyword and the reference may be separated by any kind of space and surrounded by Markdown punctuation.
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
