package workflow

import (
	"strings"
	"unicode/utf8"

	"github.com/errand-bot/errand/state"
)

// How much of one file, and of all together, agents are given, in bytes.
const (
	maxGuidanceFile = 24 << 10
	maxGuidanceAll  = 48 << 10
)

// guidance is what files of the base branch say to agents, in the order of their paths. Who may change that branch
// is trusted; what readers of the file do not see is taken out all the same, and so are secrets. A file that repeats
// another one, or only names it (as a link does), is left out.
func (s *Steps) guidance(paths []string, texts map[string]string) []state.Guidance {
	var list []state.Guidance
	left := maxGuidanceAll
	seen := map[string]bool{}
	for _, p := range paths {
		text := strings.TrimSpace(s.shown(texts[p]))
		if text == "" || seen[text] || pointsTo(text, texts) {
			continue
		}
		seen[text] = true
		g := state.Guidance{Path: p, Text: text}
		if most := min(left, maxGuidanceFile); len(text) > most {
			g.Text, g.Cut = cutBytes(text, most), true
		}
		left -= len(g.Text)
		list = append(list, g)
	}
	return list
}

// pointsTo reports whether a text is no more than the name of another file that was read.
func pointsTo(text string, texts map[string]string) bool {
	_, is := texts[strings.TrimPrefix(strings.TrimPrefix(text, "@"), "./")]
	return is
}

// cutBytes returns the beginning of a text, at most that many bytes, whole characters.
func cutBytes(s string, most int) string {
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
