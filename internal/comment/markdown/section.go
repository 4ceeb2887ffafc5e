package markdown

import "strings"

// Section returns the text below the first heading that contains the words, up to the next heading of the same or a higher
// level. It is empty if there is no such heading.
func Section(text, words string) string {
	var out []string
	level, fenced := 0, false
	for l := range strings.Lines(Normalize(text)) {
		l = strings.TrimRight(l, "\n")
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			fenced = !fenced
		}
		if m := atxHeading.FindStringSubmatch(l); m != nil && !fenced {
			switch {
			case level > 0 && len(m[2]) <= level:
				return strings.TrimSpace(strings.Join(out, "\n"))
			case level == 0 && strings.Contains(strings.ToLower(l), strings.ToLower(words)):
				level = len(m[2])
				continue
			}
		}
		if level > 0 {
			out = append(out, l)
		}
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}
