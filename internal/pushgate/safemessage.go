package pushgate

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
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
//   - lines that only advertise the agent's program, such as "Generated with Claude Code", are removed;
//   - [skip ci] and its variants are put in parentheses, because an agent must not skip checks.
//
// Line ends become \n. SafeMessage is idempotent. The publisher applies it to every message that [Judge] has accepted.
func SafeMessage(message string, home Home) string {
	message = strings.ReplaceAll(message, "\r\n", "\n")
	message = strings.ReplaceAll(message, "\r", "\n")
	message = StripTrailers(message)
	message = skipCI.ReplaceAllString(message, "($1)")
	message = mention.ReplaceAllString(message, "$1@ $2")
	message = disarmClosing(message, home)
	message = blankLines.ReplaceAllString(message, "\n\n")
	if message = strings.TrimSpace(message); message == "" {
		return "Update files"
	}
	return message
}

// StripTrailers removes trailers such as Co-authored-by, and lines that only advertise the agent's program, from a text whose lines
// end with \n. A pull request's description becomes the message of a squashed commit in some repositories.
func StripTrailers(text string) string {
	return advertisements.ReplaceAllString(trailers.ReplaceAllString(text, ""), "")
}

// Text to which GitHub, or a reader of the history, assigns a meaning.
var (
	trailers = regexp.MustCompile(`(?im)^[ \t\pZ]*(?:` +
		`(?:[a-z]+-)*(?:authored|developed|signed-off|reviewed|acked|approved|tested|committed|reported|suggested|helped)-by|` +
		`(?:[a-z]+-)*(?:authored|generated|created|written|made|built|assisted)-(?:by|with|using)|` +
		`on-behalf-of|skip-checks)[ \t\pZ]*:.*(?:\n|$)`)
	// The name of the program may be a link, and a version or an address may follow. A line that says more is kept.
	advertisements = regexp.MustCompile(`(?im)^[^\pL\pN\n]*(?:co-)?(?:generated|created|written|made|authored|built|produced|assisted|powered)[ \t\pZ]+(?:with|by|using|via)[ \t\pZ]+` +
		`[^\pL\pN\n]*(?:(?:the|anthropic|openai|google|github)\b[^\pL\pN\n]*)*(?:claude|codex|chatgpt|gpt|gemini|copilot|cursor|aider|opencode|amp|devin|jules)\b[^\pL\pN\n]*` +
		`(?:(?:code|cli|agent|ai|opus|sonnet|haiku|pro|flash|v?[\d.]+)\b[^\pL\pN\n]*)*(?:https?://\S*[^\pL\pN\n]*)?(?:\n|$)`)
	skipCI = regexp.MustCompile(`(?i)\[((?:skip[ _-]?(?:ci|actions))|(?:(?:ci|actions)[ _-]?skip)|no[ _-]?ci)\]`)
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

// AddTrailers returns a commit message with lines such as "Signed-off-by: Ada <ada@example.org>" at its end, in the
// paragraph of the message's own trailers if it ends with one.
func AddTrailers(message string, lines ...string) string {
	if len(lines) == 0 {
		return message
	}
	separator := "\n\n"
	if i := strings.LastIndex(message, "\n\n"); i >= 0 && trailerBlock.MatchString(message[i+2:]) {
		separator = "\n"
	}
	return message + separator + strings.Join(lines, "\n")
}

// trailerBlock matches a paragraph of trailers.
var trailerBlock = regexp.MustCompile(`^(?:[A-Za-z0-9-]+: \S.*(?:\n|$))+$`)

// maxName is the length of a name in a trailer, in characters.
const maxName = 80

// SafeName returns the name of a person as a trailer may contain it: letters, digits, spaces and the punctuation of names. It is
// empty if nothing is left, or if the name would have an effect on GitHub.
func SafeName(name string, home Home) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r), strings.ContainsRune("'’-.,", r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, strings.ToValidUTF8(name, ""))
	if chars := []rune(name); len(chars) > maxName {
		name = string(chars[:maxName])
	}
	name = strings.Join(strings.Fields(name), " ")
	if !strings.ContainsFunc(name, unicode.IsLetter) || SafeMessage(name, home) != name {
		return ""
	}
	return name
}
