package state

import "unicode/utf8"

// What people said is kept with the task, and the task has to fit into one update of the store: else nothing could happen to it any
// more. An agent is shown 12,000 characters of a comment.
const (
	maxText    = 11_900    // characters of one text
	maxTexts   = 256 << 10 // bytes of all texts together
	shortText  = 200       // characters that are left of the oldest ones, where all together are too much
	maxSayings = 500       // how many the discussion has; GitHub takes at most 2,500 comments on an issue
)

// restOnGitHub stands where a text was cut.
const restOnGitHub = "\n… (the rest stands on GitHub)"

// boundTexts cuts what is kept of people's words to what the store can take: long texts, and the oldest ones if there are many. That
// something is missing is said in its place; the whole stands on GitHub.
func (t *Task) boundTexts() {
	t.Context.Comments = t.Context.Comments[max(0, len(t.Context.Comments)-maxSayings):]
	all := t.texts()
	total := 0
	for _, text := range all {
		*text = cutText(*text, maxText)
		total += len(*text)
	}
	for _, text := range all {
		if total <= maxTexts {
			return
		}
		total -= len(*text)
		*text = cutText(*text, shortText)
		total += len(*text)
	}
}

// texts are the words of people that a task keeps: the discussion, then what is to be answered, each with the oldest first. The
// conditions of approvals are carried out word for word.
func (t *Task) texts() (list []*string) {
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

// cutText keeps the beginning of a text that has more characters than most, and leaves one that it has cut as it is.
func cutText(s string, most int) string {
	if len(s) <= most || utf8.RuneCountInString(s) <= most+utf8.RuneCountInString(restOnGitHub) {
		return s
	}
	end := 0
	for range most {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return s[:end] + restOnGitHub
}
