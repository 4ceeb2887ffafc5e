package config

import (
	"fmt"
	"strings"
)

// placeholders returns the placeholders for lists of names in checks.
func placeholders() []string { return []string{"{changed_files}", "{affected_modules}"} }

// placeholderProblems reports placeholders that cannot be replaced, or not safely: the replacement is quoted for a shell
// and must not be inside quotes itself.
func placeholderProblems(r *report, setup, check []RepoCommand) {
	for i, c := range setup {
		for _, p := range placeholders() {
			r.unless(!strings.Contains(c.Run, p), fmt.Sprintf("setup[%d]", i), "%s can be used in check only: nothing has changed before setup", p)
		}
	}
	for i, c := range check {
		for _, p := range placeholders() {
			r.unless(!isMisplaced(c.Run, p), fmt.Sprintf("check[%d]", i), "write %s as a word of its own, outside of quotes, comments and here-documents: each name is quoted already", p)
		}
	}
}

// isMisplaced reports whether a placeholder is at a position in a shell command at which quoted words would not be read as
// such.
func isMisplaced(command, word string) bool {
	if strings.Contains(command, word) && strings.Contains(command, "<<") {
		return true
	}
	quote, escaped, comment := byte(0), false, false
	for i := range len(command) {
		c := command[i]
		if strings.HasPrefix(command[i:], word) && (quote != 0 || escaped || comment || !isSeparateWord(command[:i], command[i+len(word):])) {
			return true
		}
		switch {
		case escaped:
			escaped = false
		case comment:
			comment = c != '\n'
		case c == '\\' && quote != '\'':
			escaped = true
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '#' && (i == 0 || strings.IndexByte(" \t\n;&|(", command[i-1]) >= 0):
			comment = true
		}
	}
	return false
}

// isSeparateWord reports whether the text between two parts of a command is a separate word.
func isSeparateWord(before, after string) bool {
	const space = " \t\n"
	return (before == "" || strings.IndexByte(space, before[len(before)-1]) >= 0) &&
		(after == "" || strings.IndexByte(space+";&|)<>", after[0]) >= 0)
}
