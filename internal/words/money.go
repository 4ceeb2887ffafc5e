package words

import "github.com/errand-bot/errand/state"

// Subscription stands where an amount would, for what costs nothing by the call.
const Subscription = "subscription"

// Spent says what was spent: an amount, `subscription`, or both.
func Spent(m state.Money) string { return spent(m, USD(m.MicroUSD)) }

// SpentOf is Spent with the cap, if there is one. On a subscription alone no cap on cost counts.
func SpentOf(m state.Money) string {
	amount := USD(m.MicroUSD)
	if m.CapMicroUSD > 0 {
		amount += " of " + USD(m.CapMicroUSD)
	}
	return spent(m, amount)
}

func spent(m state.Money, amount string) string {
	switch {
	case m.Free():
		return Subscription
	case m.Subscription:
		return amount + " and " + Subscription
	}
	return amount
}
