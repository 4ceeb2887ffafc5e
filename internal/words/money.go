package words

import "github.com/errand-bot/errand/state"

// Subscription replaces an amount for model use that is not charged per call.
const Subscription = "subscription"

// Spent returns the amount spent, "subscription", or both.
func Spent(m state.Money) string { return spent(m, USD(m.MicroUSD)) }

// SpentOf is [Spent] with the cap, if any. Cost caps do not apply to use on a subscription alone.
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
