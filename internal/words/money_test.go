package words_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

func TestMoneyIsFormatted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		m         state.Money
		spent, of string
	}{
		"dollars":        {state.Money{MicroUSD: 1_200_000, CapMicroUSD: 10_000_000}, "$1.20", "$1.20 of $10.00"},
		"no cap":         {state.Money{MicroUSD: 1_200_000}, "$1.20", "$1.20"},
		"a subscription": {state.Money{Subscription: true, CapMicroUSD: 10_000_000, InputTokens: 5}, "subscription", "subscription"},
		"both":           {state.Money{MicroUSD: 1_200_000, CapMicroUSD: 10_000_000, Subscription: true}, "$1.20 and subscription", "$1.20 of $10.00 and subscription"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := words.Spent(test.m); got != test.spent {
				t.Errorf("spent %q", got)
			}
			if got := words.SpentOf(test.m); got != test.of {
				t.Errorf("spent of %q", got)
			}
		})
	}
}
