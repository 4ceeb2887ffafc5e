package wire_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/agentloop/wire"
)

// TestIsSession: a session's id names a file, so nothing but a UUID is accepted.
func TestIsSession(t *testing.T) {
	t.Parallel()
	for id, valid := range map[string]bool{
		"0123abcd-0123-4567-89ab-0123456789ab":          true,
		"0123ABCD-0123-4567-89AB-0123456789AB":          true,
		"":                                              false,
		"0123abcd0123456789ab0123456789ab":              false,
		"{0123abcd-0123-4567-89ab-0123456789ab}":        false,
		"urn:uuid:0123abcd-0123-4567-89ab-0123456789ab": false,
		"0123abcd-0123-4567-89ab-0123456789ab\n":        false,
		"0123abcd-0123-4567-89ab-0123456789a/":          false,
		"../3abcd-0123-4567-89ab-0123456789ab":          false,
		"0123abcd-0123-4567-89ab0-123456789ab":          false,
		"g123abcd-0123-4567-89ab-0123456789ab":          false,
	} {
		if got := wire.IsSession(id); got != valid {
			t.Errorf("%q: got %t, want %t", id, got, valid)
		}
	}
}
