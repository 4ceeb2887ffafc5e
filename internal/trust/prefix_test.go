package trust_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/trust"
)

// TestSecretsWithinSecrets: if known values contain each other, the longest is redacted, regardless of the order in
// which they were learned; values that only share a prefix are not.
func TestSecretsWithinSecrets(t *testing.T) {
	t.Parallel()
	short, long, inner := "correct-horse", "correct-horse-battery-staple", "horse-battery"
	for name, known := range map[string][]string{
		"the shorter first": {short, inner, long}, "the longer first": {long, inner, short}, "the inner one first": {inner, short, long},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			learned := trust.NewRedactor(nil, known[0])
			learned.Learn(known[1])
			learned.Learn(known[2])
			for how, r := range map[string]*trust.Redactor{"given": trust.NewRedactor(nil, known...), "learned": learned} {
				for text, left := range map[string]string{
					"a " + long + " b":                     "a  b",
					"a " + short + " b " + long + " c":     "a  b  c",
					"a " + long + long + " b":              "a  b",
					"a " + short + "-batt b":               "a -batt b",
					"a correct-hors b " + inner + "y-st c": "a correct-hors b y-st c",
				} {
					got, n := r.Redact(text)
					if clean := strings.ReplaceAll(got, "[redacted: known-value]", ""); clean != left || n == 0 {
						t.Errorf("%s, %q: %q", how, text, got)
					}
				}
			}
		})
	}
}
