package state

import "fmt"

// Money is what a task or a run used. Cost is in millionths of a US dollar.
type Money struct {
	InputTokens  int64 `json:"input_tokens"` // those of caches included
	OutputTokens int64 `json:"output_tokens"`
	MicroUSD     int64 `json:"micro_usd"`
	CapMicroUSD  int64 `json:"cap_micro_usd"`
	// Unpriced is a model that no price was known of: it was counted at the dearest.
	Unpriced string `json:"unpriced,omitempty"`
}

// HintBudget says how to go on at the cap.
const HintBudget = "Comment `budget +5` to raise the cap by $5 and go on."

// AtCap reports whether there is a cap and it is reached.
func (m Money) AtCap() bool { return m.CapMicroUSD > 0 && m.MicroUSD >= m.CapMicroUSD }

// CapReached says so to people.
func (m Money) CapReached() string {
	return fmt.Sprintf("The task's cap of $%.2f is reached: $%.2f is spent.", dollars(m.CapMicroUSD), dollars(m.MicroUSD))
}

// Add adds what more was used; the cap stays.
func (m *Money) Add(more Money) {
	m.InputTokens += more.InputTokens
	m.OutputTokens += more.OutputTokens
	m.MicroUSD += more.MicroUSD
	if more.Unpriced != "" {
		m.Unpriced = more.Unpriced
	}
}

// runAsked is the run that the event is about, going on or filed; nil if the task has none of that id.
func (c *change) runAsked() *Run {
	if c.thisRun() {
		return c.t.Run
	}
	for i := range c.t.Runs {
		if c.t.Runs[i].ID == c.e.Run {
			return &c.t.Runs[i]
		}
	}
	return nil
}

// spent counts an answer of the model when it has come: what the gateway counts is what a run has cost,
// and takes the place of what the agent says.
func (c *change) spent() {
	r := c.runAsked()
	if !r.Metered {
		if !c.thisRun() { // filed with what its agent reported, which is in the task's sum
			c.t.Money.InputTokens -= r.Money.InputTokens
			c.t.Money.OutputTokens -= r.Money.OutputTokens
			c.t.Money.MicroUSD -= r.Money.MicroUSD
		}
		r.Metered, r.Money = true, Money{}
	}
	r.Money.Add(*c.e.Money)
	c.t.Money.Add(*c.e.Money)
	if c.e.Waiting != nil {
		r.Held = c.e.Waiting
	}
}

// held reports whether the run was refused the model because all tasks together had reached a cap.
func (c *change) held() bool {
	r := c.t.Run
	return r.Held != nil && r.Held.Until.After(c.e.Now) && c.e.Result.Class != "success"
}

// wait sets the task aside until there is money again. It is no failure and no attempt: a person has set
// the cap, and time lifts it.
func (c *change) wait() {
	w := *c.t.Run.Held
	c.t.Run.Attempt--
	c.file()
	c.interrupt(w.Detail, w.Until)
	c.t.Waiting.Kind = WaitMoney
}

// reported takes what an agent says that its run has cost, where nobody else counted.
func (c *change) reported(r *Run, m Money) {
	if r.Metered {
		return
	}
	r.Money = m
	c.t.Money.Add(m)
}
