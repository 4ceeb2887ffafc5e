package command

import (
	"regexp"
	"strings"
)

// Limits on what is recognized as the end of an e-mail. Anything longer is part of the message.
const (
	maxAttributionLines = 3
	maxSignatureLines   = 8
)

var (
	// attribution is the line with which mail programs introduce the message that a reply quotes, and which they may wrap. It names
	// a time or an address, which people's own sentences seldom do.
	attribution = regexp.MustCompile(`(?i)^(?:on|am|le|el|il|op|den|em) [^!?]*(?:\d[:.h]\d\d|\S@\S)[^!?]*\b(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|skrev|escreveu)\b.{0,100}:$`)
	// advertised is the line that programs on phones append.
	advertised = regexp.MustCompile(`(?i)^(?:sent from my (?:iphone|ipad|android|phone|mobile)[\w ]{0,30}|sent from outlook for \w+|get outlook for .{1,100}|von meinem (?:iphone|ipad|handy) gesendet)\.?$`)
	// gitHubMail is in every mail by GitHub about a comment.
	gitHubMail = regexp.MustCompile(`(?m)^\s*>.*Reply to this email directly`)
)

// cutMail returns a comment without what a mail program surely appended to it: GitHub's mail that it quotes, the signature above
// that, and the line of a program on a phone. Nothing else is cut from a comment that may have a command or a message: a condition of
// an approval may look like a signature or a quotation.
func cutMail(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if n := quotedMail(lines); n < len(lines) && gitHubMail.MatchString(strings.Join(lines[n:], "\n")) {
		lines = lines[:n]
		lines = lines[:signature(lines, "-- ")]
	}
	if n := trimBlank(lines); n > 1 && advertised.MatchString(strings.TrimSpace(lines[n-1])) {
		lines = lines[:trimBlank(lines[:n-1])]
	}
	return nonEmpty(text, lines)
}

// cutAppended returns a remark without what a mail program seems to have appended to it: a quoted message, and a signature.
func cutAppended(text string) string {
	lines := strings.Split(text, "\n")
	lines = lines[:quotedMail(lines)]
	return nonEmpty(text, lines[:signature(lines, "--")])
}

// nonEmpty returns the lines, or the text if they are blank.
func nonEmpty(text string, lines []string) string {
	if own := strings.Join(lines, "\n"); strings.TrimSpace(own) != "" {
		return own
	}
	return text
}

// quotedMail returns the number of lines before a quoted message at the end, and before the line that introduces it.
func quotedMail(lines []string) int {
	end := trimBlank(lines)
	start := end
	for start > 0 && (strings.HasPrefix(strings.TrimSpace(lines[start-1]), ">") || strings.TrimSpace(lines[start-1]) == "") {
		start--
	}
	if start == end {
		return end
	}
	introduction := ""
	for n := 1; n <= maxAttributionLines && n <= start; n++ {
		introduction = strings.TrimSpace(strings.TrimSpace(lines[start-n]) + " " + introduction)
		if attribution.MatchString(introduction) {
			return trimBlank(lines[:start-n])
		}
	}
	return end
}

// signature returns the number of lines before a signature at the end. It follows a line that begins with the delimiter and is empty
// otherwise, or is the line of a program on a phone.
func signature(lines []string, delimiter string) int {
	end := trimBlank(lines)
	for n := 1; n < end && n <= maxSignatureLines+1; n++ {
		switch line := strings.TrimSpace(lines[end-n]); {
		case line == "--" && strings.HasPrefix(lines[end-n], delimiter) && n > 1:
			return trimBlank(lines[:end-n])
		case n == 1 && advertised.MatchString(line):
			return trimBlank(lines[:end-n])
		case line == "" || strings.HasPrefix(line, "@"): // a signature has no paragraphs, and no commands
			return end
		}
	}
	return end
}

// trimBlank returns the number of lines without the empty ones at the end.
func trimBlank(lines []string) int {
	n := len(lines)
	for n > 0 && strings.TrimSpace(lines[n-1]) == "" {
		n--
	}
	return n
}
