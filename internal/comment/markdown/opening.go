package markdown

import "regexp"

var (
	blockMark = regexp.MustCompile(`^(?:#{1,6}(?:[ \t]|$)|>|~~~|[-+*](?:[ \t]|$)|(?:[-*_][ \t]*){3,}$|=+$)`)
	numbering = regexp.MustCompile(`^(\d{1,9})([.)])(?:[ \t]|$)`)
)

// escapeBlockStart escapes what would open a block, such as a fence, a heading, a quote or an item, if the line
// stands at the beginning of a paragraph or of an item of ours.
func escapeBlockStart(line string) string {
	if blockMark.MatchString(line) {
		return `\` + line
	}
	if m := numbering.FindStringSubmatchIndex(line); m != nil {
		return line[:m[3]] + `\` + line[m[3]:]
	}
	return line
}
