package pushgate

import (
	"errors"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/secretscan"
)

// Unreadable returns the refusal of a changeset that could not be read. ok is false if err has another cause. Because a
// VM wrote the text that err quotes, only its last clause is shown, redacted and truncated.
func Unreadable(err error, scanner *secretscan.Scanner) (Refusal, bool) {
	switch {
	case errors.Is(err, changeset.ErrTooLarge):
		return Refusal{
			Rule: RuleSize, Detail: "the changeset is too large to be read from the VM (" + lastClause(err, scanner) + ")",
			Remedy: "leave out binaries, generated files and dependencies, or split the work into several issues",
		}, true
	case errors.Is(err, changeset.ErrMalformed):
		return Refusal{
			Rule: RuleForm, Detail: "the VM's description of the commits is invalid (" + lastClause(err, scanner) + ")",
			Remedy: "do the work again on a new VM; if it happens again, check the processes on this one",
		}, true
	}
	return Refusal{}, false
}

// lastClause returns the innermost part of an error's text, on one line.
func lastClause(err error, scanner *secretscan.Scanner) string {
	const most = 160
	text := strings.ToValidUTF8(strings.Join(strings.Fields(err.Error()), " "), "?")
	for _, start := range []string{"validate changeset: ", "decode changeset: ", changeset.ErrTooLarge.Error() + ": ", changeset.ErrMalformed.Error() + ": "} {
		if i := strings.LastIndex(text, start); i >= 0 {
			text = text[i+len(start):]
		}
	}
	if scanner != nil {
		text = redactSecrets(scanner, text)
	}
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}
