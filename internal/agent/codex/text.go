package codex

import "strings"

// dollarNote explains the escaped dollar signs below a prompt.
const dollarNote = "\n\n(Above, a dollar sign with a backslash behind it stands for the dollar sign alone.)"

// escapeSkills disables Codex's expansion of $name, which reads the skill of that name into the conversation, even
// one from the checkout, which anybody may have written. A backslash after the dollar sign prevents that; one before it
// does not.
func escapeSkills(prompt string) string {
	var b strings.Builder
	for i := range len(prompt) {
		b.WriteByte(prompt[i])
		if prompt[i] == '$' && i+1 < len(prompt) && isNameByte(prompt[i+1]) {
			b.WriteByte('\\')
		}
	}
	if b.Len() == len(prompt) {
		return prompt
	}
	return b.String() + dollarNote
}

// isNameByte reports whether a name may begin with c.
func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == ':' || c >= 0x80
}

// unwrapShell returns the command inside `/bin/bash -lc '…'`, or command itself if it has another form.
func unwrapShell(command string) string {
	shell, rest, found := strings.Cut(command, " -lc ")
	if !found {
		shell, rest, found = strings.Cut(command, " -c ")
	}
	if !found || strings.ContainsAny(shell, " '\"") || !strings.HasSuffix(shell, "sh") {
		return command
	}
	if inner, ok := unquoteShell(rest); ok {
		return inner
	}
	return command
}

// unquoteShell parses one word of a shell command line; ok is false if there is more than one.
func unquoteShell(s string) (string, bool) {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote && quote != 0:
			quote = 0
		case quote == 0 && c == ' ':
			return "", false
		case c == '\\' && quote != '\'' && i+1 < len(s):
			if next := s[i+1]; quote == 0 || strings.IndexByte("\"\\$`", next) >= 0 {
				i++
				c = next
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), quote == 0
}
