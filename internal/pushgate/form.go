package pushgate

import (
	"errors"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/secretscan"
)

// Unreadable returns the refusal of a changeset that could not be read, and whether err is about
// that. What the error quotes was said by a VM, so only its last clause is shown, without secrets, and cut.
func Unreadable(err error, scanner *secretscan.Scanner) (Refusal, bool) {
	switch {
	case errors.Is(err, changeset.ErrTooLarge):
		return Refusal{
			Rule: RuleSize, Detail: "the changeset is too large to be read from the VM (" + lastClause(err, scanner) + ")",
			Remedy: "leave out binaries, generated files and dependencies, or split the work into several issues",
		}, true
	case errors.Is(err, changeset.ErrMalformed):
		return Refusal{
			Rule: RuleForm, Detail: "what the VM says about the commits is not in order (" + lastClause(err, scanner) + ")",
			Remedy: "do the work again on a new VM; if it happens again, look into what ran on this one",
		}, true
	}
	return Refusal{}, false
}

// lastClause is the innermost part of an error's words, in one line.
func lastClause(err error, scanner *secretscan.Scanner) string {
	const most = 160
	text := strings.ToValidUTF8(strings.Join(strings.Fields(err.Error()), " "), "?")
	for _, start := range []string{"validate changeset: ", "decode changeset: ", changeset.ErrTooLarge.Error() + ": ", changeset.ErrMalformed.Error() + ": "} {
		if i := strings.LastIndex(text, start); i >= 0 {
			text = text[i+len(start):]
		}
	}
	if scanner != nil {
		text = withoutSecrets(scanner, text)
	}
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}
