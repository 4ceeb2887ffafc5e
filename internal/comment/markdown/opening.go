package markdown

import "regexp"

var (
	blockMark = regexp.MustCompile(`^(?:#{1,6}(?:[ \t]|$)|>|~~~|[-+*](?:[ \t]|$)|(?:[-*_][ \t]*){3,}$|=+$)`)
	numbering = regexp.MustCompile(`^(\d{1,9})([.)])(?:[ \t]|$)`)
)

// escapeBlockStart escapes the beginning of a line that would open a block, such as a fence, a heading, a quote or a list
// item, at the beginning of a paragraph or list item.
func escapeBlockStart(line string) string {
	if blockMark.MatchString(line) {
		return `\` + line
	}
	if m := numbering.FindStringSubmatchIndex(line); m != nil {
		return line[:m[3]] + `\` + line[m[3]:]
	}
	return line
}
