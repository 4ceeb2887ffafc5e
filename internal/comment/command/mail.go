package command

import (
	"regexp"
	"strings"
)

// Limits on the end of an e-mail: what is longer is part of the message.
const (
	maxAttributionLines = 3
	maxSignatureLines   = 8
)

var (
	// attribution is the line with which mail programs introduce the message that a reply quotes, and which they may wrap.
	attribution = regexp.MustCompile(`(?i)^(?:on|am|le|el|il|op|den|em) [^:]*\d.*(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|skrev|escreveu)\b.{0,100}:$`)
	// advertised is the line that programs on phones append.
	advertised = regexp.MustCompile(`(?i)^(?:sent from my [\w ]{1,40}|sent from outlook for \w+|get outlook for .{1,100}|von meinem \w+ gesendet)\.?$`)
)

// cutQuotedMail returns a comment without the message that a reply by e-mail quotes at its end, and the line that introduces it. A
// comment that consists of these only is returned as it is.
func cutQuotedMail(text string) string {
	lines := strings.Split(text, "\n")
	return firstLines(text, lines, quotedMail(lines))
}

// cutSignature returns a comment without the signature that a mail program appended to it.
func cutSignature(text string) string {
	lines := strings.Split(text, "\n")
	return firstLines(text, lines, signature(lines))
}

// isSignature reports whether the text below a command is a signature.
func isSignature(text string) bool {
	return signature(append([]string{"command"}, strings.Split(text, "\n")...)) == 1
}

// firstLines returns the first n lines of a text, or all if these are empty.
func firstLines(text string, lines []string, n int) string {
	if own := strings.Join(lines[:n], "\n"); n < len(lines) && strings.TrimSpace(own) != "" {
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

// signature returns the number of lines before a signature at the end.
func signature(lines []string) int {
	end := trimBlank(lines)
	for n := 1; n < end && n <= maxSignatureLines+1; n++ {
		switch line := strings.TrimSpace(lines[end-n]); {
		case line == "--" && n > 1:
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
