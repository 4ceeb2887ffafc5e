package cli

import "strings"

// SlashNote and escapeLine are added to a prompt that the agent would misinterpret.
const (
	SlashNote  = "The task follows.\n\n"
	EscapeNote = "\n\n(Above, a backslash before an at sign stands for the at sign alone.)"
)

// EscapePrompt disables the expansions of an agent's command line: a slash at the start is a command to it, and @path is
// replaced by the content of that file, whoever wrote it. An @ inside a word, as in an email address, is not expanded
// and stays.
func EscapePrompt(prompt string) string {
	var b strings.Builder
	if strings.HasPrefix(strings.TrimSpace(prompt), "/") {
		b.WriteString(SlashNote)
	}
	escaped := false
	for i := range len(prompt) {
		if prompt[i] == '@' && mention(prompt, i) {
			b.WriteByte('\\')
			escaped = true
		}
		b.WriteByte(prompt[i])
	}
	if escaped {
		b.WriteString(EscapeNote)
	}
	return b.String()
}

// mention reports whether the @ at i begins a non-empty word.
func mention(s string, i int) bool {
	if i+1 >= len(s) || strings.IndexByte(" \t\r\n", s[i+1]) >= 0 {
		return false
	}
	if i == 0 {
		return true
	}
	c := s[i-1]
	word := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._%+-\\", c) >= 0
	return !word
}
