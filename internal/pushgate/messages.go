package pushgate

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMessageBytes is the maximum size of a published commit message.
const maxMessageBytes = 10_000

// checkMessages refuses messages that deceive a reader or contain a secret. Merely unwanted text is removed by
// [SafeMessage] instead.
func checkMessages(s *subject) []Refusal {
	var refusals []Refusal
	for _, j := range s.commits {
		refuse := func(detail, remedy string) {
			refusals = append(refusals, Refusal{
				Rule: RuleMessages, Detail: fmt.Sprintf("the message of commit %s %s", shortID(j.commit.ID), detail), Remedy: remedy,
			})
		}
		message := j.commit.Message
		if strings.TrimSpace(message) == "" {
			refuse("is empty", "say in one line what the commit does")
		}
		if len(message) > maxMessageBytes {
			refuse(fmt.Sprintf("has %d bytes, and at most %d are allowed", len(message), maxMessageBytes), "shorten it")
		}
		if !utf8.ValidString(message) {
			refuse("is not valid UTF-8", "write it as UTF-8")
		}
		if strings.ContainsFunc(message, hiddenInMessage) {
			refuse("has control or invisible characters", "write it as plain text")
		}
		if s.policy.Scanner != nil && len(s.policy.Scanner.Find(message)) > 0 {
			refuse("contains text that looks like a secret", "reword it without the secret")
		}
	}
	return refusals
}

func hiddenInMessage(r rune) bool {
	return invisible(r) || unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r'
}
