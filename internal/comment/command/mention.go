package command

import (
	"regexp"
	"strings"
)

// commandSpan is a command in a hint, which whoever wrote the hint could not write with the bot's mention.
var commandSpan = regexp.MustCompile("`((?:plan|approve|replan|status|stop|retry|cancel|budget|model|create pr|create issue|help)(?: [^`\n]*)?)`")

// AddMentions puts the bot's mention before the commands in a text, which are written as code without it.
func AddMentions(slug, text string) string {
	return commandSpan.ReplaceAllStringFunc(text, func(span string) string { return WithMention(slug, strings.Trim(span, "`")) })
}

// Names reports whether a hint names a command, with or without more words.
func Names(hint, command string) bool {
	for _, m := range commandSpan.FindAllStringSubmatch(hint, -1) {
		if m[1] == command || strings.HasPrefix(m[1], command+" ") {
			return true
		}
	}
	return false
}

// WithMention returns the mention with a command as code, for people to copy.
func WithMention(slug, command string) string { return "`@" + slug + " " + command + "`" }
