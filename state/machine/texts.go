package machine

import (
	"unicode/utf8"

	"github.com/errand-bot/errand/state"
)

// Comments are stored with their task, and a task must fit into one update of the store: otherwise no further event
// could be applied to it. Agents see at most 12,000 characters of a comment.
const (
	maxTextLength   = 11_900    // characters of one text
	maxTextBytes    = 256 << 10 // bytes of all texts together
	shortenedLength = 200       // characters that remain of the oldest texts if all together are too large
	maxComments     = 500       // comments in the discussion; GitHub allows 2,500 on an issue
)

// cutMarker marks the position where a text was cut.
const cutMarker = "\n… (the rest is on GitHub)"

// boundTexts shortens stored comments: each long one, and the oldest ones further if all of them together are too
// large. Each cut is marked.
func boundTexts(t *state.Task) {
	t.Context.Comments = t.Context.Comments[max(0, len(t.Context.Comments)-maxComments):]
	all := texts(t)
	total := 0
	for _, text := range all {
		*text = cutText(*text, maxTextLength)
		total += len(*text)
	}
	for _, text := range all {
		if total <= maxTextBytes {
			return
		}
		total -= len(*text)
		*text = cutText(*text, shortenedLength)
		total += len(*text)
	}
}

// texts returns the stored comments that may be shortened, oldest first: the discussion, then the feedback. Conditions
// of approvals are never shortened.
func texts(t *state.Task) (list []*string) {
	for i := range t.Context.Comments {
		list = append(list, &t.Context.Comments[i].Body)
	}
	for i := range t.Feedback {
		if f := &t.Feedback[i]; f.Kind != "condition" {
			list = append(list, &f.Body)
		}
	}
	return list
}

// cutText returns the beginning of a text with more than most characters. It does not shorten a text that it has
// already cut.
func cutText(s string, limit int) string {
	if len(s) <= limit || utf8.RuneCountInString(s) <= limit+utf8.RuneCountInString(cutMarker) {
		return s
	}
	end := 0
	for range limit {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return s[:end] + cutMarker
}
