package agent

import (
	"bytes"
	"encoding/json"
	"strings"
)

// tomlString writes a basic string of TOML, which JSON's strings are but for one character.
func tomlString(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return `""` // a string always has a form
	}
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}

// tomlStrings writes a list of strings on one line.
func tomlStrings(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = tomlString(s)
	}
	return "[" + strings.Join(out, ",") + "]"
}

// dollarLine is our own words below a prompt with names after dollar signs.
const dollarLine = "\n\n(Above, a dollar sign with a backslash behind it stands for the dollar sign alone.)"

// neutraliseSkills takes away what Codex would act on by itself: at $name it reads a file of that name's
// skill into the conversation, also one of the checkout's, which anybody may have written. A backslash
// before the dollar sign does not keep it from that; one behind it does.
func neutraliseSkills(prompt string) string {
	var b strings.Builder
	for i := range len(prompt) {
		b.WriteByte(prompt[i])
		if prompt[i] == '$' && i+1 < len(prompt) && nameByte(prompt[i+1]) {
			b.WriteByte('\\')
		}
	}
	if b.Len() == len(prompt) {
		return prompt
	}
	return b.String() + dollarLine
}

// nameByte reports whether a name may begin with c.
func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == ':' || c >= 0x80
}

// unwrapShell returns the command within `/bin/bash -lc '…'`, or the whole if it is not such.
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

// unquoteShell reads one word of a shell's line; false if there is more than one.
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
