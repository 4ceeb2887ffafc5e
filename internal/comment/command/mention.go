package command

import (
	"regexp"
	"strings"
	"sync"
)

// span matches a command that is written as code without a mention. The pattern is made once, from the table.
var span = sync.OnceValue(func() *regexp.Regexp {
	var names []string
	for _, e := range Table() {
		names = append(names, regexp.QuoteMeta(e.Words[0]))
	}
	return regexp.MustCompile("`((?:" + strings.Join(names, "|") + ")(?: [^`\n]*)?)`")
})

// AddMentions puts the bot's mention before the commands in a text, which are written as code without it.
func AddMentions(slug, text string) string {
	return span().ReplaceAllStringFunc(text, func(s string) string { return WithMention(slug, strings.Trim(s, "`")) })
}

// IsIn reports whether a text names a command as code, possibly with further words.
func IsIn(text, command string) bool {
	for _, m := range span().FindAllStringSubmatch(text, -1) {
		if m[1] == command || strings.HasPrefix(m[1], command+" ") {
			return true
		}
	}
	return false
}

// WithMention returns a command with the bot's mention as code, for people to copy.
func WithMention(slug, command string) string { return "`@" + slug + " " + command + "`" }
