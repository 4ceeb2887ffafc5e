package state

import (
	"fmt"
	"math"
	"strconv"
)

// Remaining is the amount that caps leave, in millionths of a US dollar and in tokens of every kind. Without a cap it is
// math.MaxInt64.
type Remaining struct{ MicroUSD, Tokens int64 }

// Unlimited returns the Remaining without caps.
func Unlimited() Remaining { return Remaining{MicroUSD: math.MaxInt64, Tokens: math.MaxInt64} }

// Min returns the smaller of each amount.
func (l Remaining) Min(other Remaining) Remaining {
	return Remaining{MicroUSD: min(l.MicroUSD, other.MicroUSD), Tokens: min(l.Tokens, other.Tokens)}
}

// Remaining returns the amount that the caps leave.
func (m Money) Remaining() Remaining {
	l := Unlimited()
	if m.CapMicroUSD > 0 {
		l.MicroUSD = max(m.CapMicroUSD-m.MicroUSD, 0)
	}
	if m.CapTokens > 0 {
		l.Tokens = max(m.CapTokens-m.Tokens(), 0)
	}
	return l
}

// Exceeds reports whether the need is more than the caps leave.
func (m Money) Exceeds(need Money) bool {
	l := m.Remaining()
	return need.MicroUSD > l.MicroUSD || need.Tokens() > l.Tokens
}

// TooLittle returns a clause that a cap leaves too little for a call; whose names the cap's owner.
func (m Money) TooLittle(whose string, need Money) string {
	most, used, more := exactDollars(m.CapMicroUSD), exactDollars(m.MicroUSD)+" is spent", exactDollars(need.MicroUSD)
	if need.MicroUSD <= m.Remaining().MicroUSD {
		most, used, more = thousands(m.CapTokens)+" tokens", thousands(m.Tokens())+" are used", thousands(need.Tokens())
	}
	return fmt.Sprintf("cap of %s for %s leaves too little for another answer: %s, and the smallest useful answer may take %s", most, whose, used, more)
}

// exactDollars formats an amount in dollars with cents, or with more digits if needed.
func exactDollars(micro int64) string {
	if micro%10_000 == 0 {
		return fmt.Sprintf("$%.2f", dollars(micro))
	}
	return "$" + strconv.FormatFloat(dollars(micro), 'f', -1, 64)
}

// Remaining returns the amount that the caps of the task and of its active run leave. task and run are the estimated costs
// of calls in flight; with free, caps on cost do not count.
func (t *Task) Remaining(task, run Money, free bool) Remaining {
	m, r := t.usageWithCaps(task, run, free)
	return m.Remaining().Min(r.Remaining())
}

// usageWithCaps returns the usage of the task and of its active run, including calls in flight, with their caps.
func (t *Task) usageWithCaps(task, run Money, free bool) (ofTask, ofRun Money) {
	ofTask = t.Money
	ofTask.Add(task)
	if t.Run != nil {
		ofRun = t.Run.Money
		ofRun.Add(run)
		ofRun.CapMicroUSD, ofRun.CapTokens = t.Settings.Limits.RunMicroUSD, t.Settings.Limits.RunTokens
	}
	if free {
		ofTask.CapMicroUSD, ofRun.CapMicroUSD = 0, 0
	}
	return ofTask, ofRun
}
