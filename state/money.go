package state

import (
	"fmt"
	"math"
	"strconv"
)

// Money is the usage of a task or a run. Cost is in millionths of a US dollar.
type Money struct {
	InputTokens  int64 `json:"input_tokens"` // including those of caches
	OutputTokens int64 `json:"output_tokens"`
	MicroUSD     int64 `json:"micro_usd"`
	CapMicroUSD  int64 `json:"cap_micro_usd"`
	CapTokens    int64 `json:"cap_tokens,omitempty"` // limit on input and output tokens together; 0 means no limit
	// Subscription reports whether some of it was, or will be, on a subscription, where calls cost nothing.
	Subscription bool `json:"subscription,omitempty"`
	// Unpriced is a model without a known price: it was charged at the highest price.
	Unpriced string `json:"unpriced,omitempty"`
}

// HintBudget and HintTokens are the hints at a task's cap, HintRunCap is that at a run's cap.
const (
	HintBudget = "Comment `budget +5` to raise the cap by $5 and continue."
	HintTokens = "Comment `budget +500k tokens` to raise the cap by 500,000 tokens and continue."
	HintRunCap = "Comment `retry` to continue from here with another run."
)

// Tokens returns the number of input and output tokens.
func (m Money) Tokens() int64 { return m.InputTokens + m.OutputTokens }

// AtCap reports whether a cap on money or tokens is reached.
func (m Money) AtCap() bool {
	return reached(m.MicroUSD, m.CapMicroUSD) || reached(m.Tokens(), m.CapTokens)
}

func reached(used, most int64) bool { return most > 0 && used >= most }

// CapReached returns a sentence about the reached cap.
func (m Money) CapReached() string {
	if !reached(m.MicroUSD, m.CapMicroUSD) && reached(m.Tokens(), m.CapTokens) {
		return fmt.Sprintf("The task's cap of %s tokens is reached: %s are used.", thousands(m.CapTokens), thousands(m.Tokens()))
	}
	return fmt.Sprintf("The task's cap of $%.2f is reached: $%.2f is spent.", dollars(m.CapMicroUSD), dollars(m.MicroUSD))
}

// Hint returns the hint for the reached cap.
func (m Money) Hint() string {
	if !reached(m.MicroUSD, m.CapMicroUSD) && reached(m.Tokens(), m.CapTokens) {
		return HintTokens
	}
	return HintBudget
}

// thousands formats a count with commas.
func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// Free reports whether nothing was spent because all calls were on a subscription.
func (m Money) Free() bool { return m.Subscription && m.MicroUSD == 0 }

// Capped returns the cap of the task, or of its active run, that is reached or leaves less than need; nil if there is
// none. task and run are the estimated costs of calls in flight. If free is set the next call costs nothing, and caps
// on cost do not count.
func (t *Task) Capped(task, run, need Money, free bool) *Waiting {
	m, r := t.usageWithCaps(task, run, free)
	w := Waiting{Kind: WaitMoney, Hint: HintRunCap}
	switch {
	case m.AtCap():
		w.Detail, w.Hint = m.CapReached(), m.Hint()
	case reached(r.MicroUSD, r.CapMicroUSD):
		w.Detail = fmt.Sprintf("The cap of $%.2f for one run is reached: it has cost $%.2f.", dollars(r.CapMicroUSD), dollars(r.MicroUSD))
	case reached(r.Tokens(), r.CapTokens):
		w.Detail = fmt.Sprintf("The cap of %s tokens for one run is reached: it has used %s.", thousands(r.CapTokens), thousands(r.Tokens()))
	case m.Exceeds(need):
		w.Detail, w.Hint = "The "+m.TooLittle("the task", need)+".", HintBudget
		if need.MicroUSD <= m.Remaining().MicroUSD {
			w.Hint = HintTokens
		}
	case r.Exceeds(need):
		w.Detail = "The " + r.TooLittle("one run", need) + "."
	default:
		return nil
	}
	return &w
}

// Add adds usage; the caps do not change.
func (m *Money) Add(more Money) {
	m.InputTokens += more.InputTokens
	m.OutputTokens += more.OutputTokens
	m.MicroUSD += more.MicroUSD
	m.Subscription = m.Subscription || more.Subscription
	if more.Unpriced != "" {
		m.Unpriced = more.Unpriced
	}
}

// CapText formats the reached cap.
func (m Money) CapText() string {
	if !reached(m.MicroUSD, m.CapMicroUSD) && reached(m.Tokens(), m.CapTokens) {
		return thousands(m.CapTokens) + " tokens"
	}
	return fmt.Sprintf("$%.2f", dollars(m.CapMicroUSD))
}

func dollars(micro int64) float64 { return float64(micro) / 1e6 }

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
