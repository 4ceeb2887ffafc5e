package command

import (
	"slices"
	"strings"
)

// nearest returns the name of the command that a line with a misspelled one probably means, or "".
func nearest(line string, onPR bool) string {
	first, rest, _ := strings.Cut(trimCourtesy(line), " ")
	first = asciiLower(first)
	best, found := 3, ""
	for _, c := range Table() {
		for _, word := range c.Words {
			d := distance(first, word)
			if d == 0 || d >= best || len(first) < 3 || 2*d > len(word) || c.takesText && rest != "" {
				continue
			}
			if _, got := readLine(strings.TrimSpace(word+" "+rest), "", onPR); got == matched {
				best, found = d, c.Words[0]
			}
		}
	}
	return found
}

// distance returns the edit distance of two short words, and 9 for long ones.
func distance(a, b string) int {
	if len(a) > 24 || len(b) > 24 {
		return 9
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := slices.Clone(row)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
		}
		row = next
	}
	return row[len(b)]
}
