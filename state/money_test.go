package state

import (
	"testing"
)

// TestCapsOnMoneyAndTokens: each of a task's caps, on money and on tokens, is enforced and named.
func TestCapsOnMoneyAndTokens(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		money Money
		cap   bool
		hint  string
	}{
		"neither": {Money{MicroUSD: 9, CapMicroUSD: 10, InputTokens: 4, OutputTokens: 5, CapTokens: 10}, false, HintBudget},
		"money":   {Money{MicroUSD: 10, CapMicroUSD: 10, InputTokens: 4, OutputTokens: 5, CapTokens: 10}, true, HintBudget},
		"tokens":  {Money{MicroUSD: 9, CapMicroUSD: 10, InputTokens: 4, OutputTokens: 6, CapTokens: 10}, true, HintTokens},
		"both":    {Money{MicroUSD: 10, CapMicroUSD: 10, InputTokens: 4, OutputTokens: 6, CapTokens: 10}, true, HintBudget},
		"no cap":  {Money{MicroUSD: 10, InputTokens: 4, OutputTokens: 6}, false, HintBudget},
	} {
		if got := c.money.AtCap(); got != c.cap || c.money.Hint() != c.hint {
			t.Errorf("%s: at the cap %v, hint %q; want %v, %q", name, got, c.money.Hint(), c.cap, c.hint)
		}
	}
}
