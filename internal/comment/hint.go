package comment

import (
	"regexp"
	"strings"
)

// commandSpan is a command in a hint, which whoever wrote the hint could not write with the bot's mention.
var commandSpan = regexp.MustCompile("`((?:plan|approve|replan|status|stop|retry|cancel|budget|model|create pr|create issue|help)(?: [^`\n]*)?)`")

// hint is a sentence that says what helps, with its commands as people have to write them.
func (v View) hint(text string) string { return v.commands(sentence(upper(text))) }

// commands puts the bot's mention before the commands of a text.
func (v View) commands(text string) string {
	return commandSpan.ReplaceAllStringFunc(text, func(span string) string { return v.say(strings.Trim(span, "`")) })
}

// commandsIn reports whether a hint names a command, with or without more words.
func commandsIn(hint, command string) bool {
	for _, m := range commandSpan.FindAllStringSubmatch(hint, -1) {
		if m[1] == command || strings.HasPrefix(m[1], command+" ") {
			return true
		}
	}
	return false
}
