package state

import "fmt"

// Money is what a task or a run used. Cost is in millionths of a US dollar.
type Money struct {
	InputTokens  int64 `json:"input_tokens"` // those of caches included
	OutputTokens int64 `json:"output_tokens"`
	MicroUSD     int64 `json:"micro_usd"`
	CapMicroUSD  int64 `json:"cap_micro_usd"`
	CapTokens    int64 `json:"cap_tokens,omitempty"` // of both kinds together; 0 bounds nothing
	// Subscription: some of it was on a subscription, or is to be, which costs nothing by the call.
	Subscription bool `json:"subscription,omitempty"`
	// Unpriced is a model that no price was known of: it was counted at the dearest.
	Unpriced string `json:"unpriced,omitempty"`
}

// HintBudget and HintTokens say how to go on at a task's cap, HintRunCap at that of a run.
const (
	HintBudget = "Comment `budget +5` to raise the cap by $5 and go on."
	HintTokens = "Comment `budget +500k tokens` to raise the cap by so many and go on."
	HintRunCap = "Comment `retry` to go on from here with another run."
)

// Tokens is how many were used, of every kind.
func (m Money) Tokens() int64 { return m.InputTokens + m.OutputTokens }

// AtCap reports whether there is a cap, of money or tokens, and it is reached.
func (m Money) AtCap() bool {
	return reached(m.MicroUSD, m.CapMicroUSD) || reached(m.Tokens(), m.CapTokens)
}

func reached(used, most int64) bool { return most > 0 && used >= most }

// CapReached says so to people, and Hint what helps.
func (m Money) CapReached() string {
	if !reached(m.MicroUSD, m.CapMicroUSD) && reached(m.Tokens(), m.CapTokens) {
		return fmt.Sprintf("The task's cap of %s tokens is reached: %s are used.", thousands(m.CapTokens), thousands(m.Tokens()))
	}
	return fmt.Sprintf("The task's cap of $%.2f is reached: $%.2f is spent.", dollars(m.CapMicroUSD), dollars(m.MicroUSD))
}

// Hint says how to go on at the cap.
func (m Money) Hint() string {
	if !reached(m.MicroUSD, m.CapMicroUSD) && reached(m.Tokens(), m.CapTokens) {
		return HintTokens
	}
	return HintBudget
}

// thousands writes a count with commas.
func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// Free reports whether nothing was spent because it is all on a subscription.
func (m Money) Free() bool { return m.Subscription && m.MicroUSD == 0 }

// Capped says which cap of the task's own, or of its active run, is reached, or leaves less than need; nil if none is.
// Task and run are what calls in flight take beside what is booked. Free says that what is asked for costs nothing by
// the call: caps on cost do not count then.
func (t *Task) Capped(task, run, need Money, free bool) *Waiting {
	m, r := t.purses(task, run, free)
	w := Waiting{Kind: WaitMoney, Hint: HintRunCap}
	switch {
	case m.AtCap():
		w.Detail, w.Hint = m.CapReached(), m.Hint()
	case reached(r.MicroUSD, r.CapMicroUSD):
		w.Detail = fmt.Sprintf("The cap of $%.2f for one run is reached: it has cost $%.2f.", dollars(r.CapMicroUSD), dollars(r.MicroUSD))
	case reached(r.Tokens(), r.CapTokens):
		w.Detail = fmt.Sprintf("The cap of %s tokens for one run is reached: it has used %s.", thousands(r.CapTokens), thousands(r.Tokens()))
	case m.exceeds(need):
		w.Detail, w.Hint = "The "+m.tooLittle("the task", need)+".", HintBudget
		if need.MicroUSD <= m.Left().MicroUSD {
			w.Hint = HintTokens
		}
	case r.exceeds(need):
		w.Detail = "The " + r.tooLittle("one run", need) + "."
	default:
		return nil
	}
	return &w
}

// Add adds what more was used; the cap stays.
func (m *Money) Add(more Money) {
	m.InputTokens += more.InputTokens
	m.OutputTokens += more.OutputTokens
	m.MicroUSD += more.MicroUSD
	m.Subscription = m.Subscription || more.Subscription
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
	if *c.e.Money != (Money{}) { // else it was refused one
		r.Answers++
		r.Denied, r.Unfinished = "", nil
	}
	r.Money.Add(*c.e.Money)
	c.t.Money.Add(*c.e.Money)
	switch h := r.Held; {
	case c.e.Waiting != nil && c.e.Waiting.Kind == WaitRefused:
		r.Denied = c.e.Waiting.Detail
	case c.e.Waiting != nil && c.e.Waiting.answer():
		r.Unfinished = c.e.Waiting
	case c.e.Waiting != nil:
		if c.e.Waiting.Kind == WaitTurns && !r.refusedTurns() && c.thisRun() {
			c.due(dueTurns, r.ID, c.e.Now.Add(turnsGrace))
		}
		r.Held = c.e.Waiting
	case h != nil && !h.Until.IsZero() && !h.Until.After(c.e.Now):
		r.Held = nil // that is over, and the model answers again
	}
}

// held reports whether the run was refused the model for something that time lifts: all tasks together had
// reached a cap, or the provider of the model has a limit or refuses the key. That may be over by the time that
// the agent has ended for it.
func (c *change) held() bool {
	r := c.t.Run
	return r.Held != nil && !r.Held.Until.IsZero() && c.e.Result.Class != "success"
}

// capped reports whether the run was refused the model because it, or its task, had reached a cap of its own.
func (c *change) capped() bool {
	r, res := c.t.Run, c.e.Result
	return r.Held != nil && !r.refusedTurns() && r.Held.Until.IsZero() && res.Class != "success" && res.Status != StatusVMLost
}

// wait sets the task aside until what held its run is over. It is no failure and no attempt: nothing that the
// task could do differently would help, and time does.
func (c *change) wait() {
	w := *c.t.Run.Held
	c.t.Run.Attempt--
	c.file()
	if w.Until.Before(c.e.Now) {
		w.Until = c.e.Now
	}
	c.interrupt(w.Detail, w.Until)
	c.t.Waiting.Kind, c.t.Waiting.Hint = w.Kind, w.Hint
	c.tell(w)
}

// tell has people told what a task waits for, once, where somebody has to act.
func (c *change) tell(w Waiting) {
	reason, ok := map[WaitKind]string{
		WaitBlocked: WaitingBlocked, WaitConfig: WaitingConfig, WaitText: WaitingText, WaitDisabled: WaitingDisabled, WaitKey: WaitingKey, WaitPermission: WaitingPermission,
	}[w.Kind]
	key := "waiting-" + string(w.Kind) + "-" + FreezeHash(w.Detail, "")[:8]
	if w.Kind == WaitPermission && c.t.Run != nil { // it may have been granted meanwhile, and taken away again
		key += "-" + c.t.Run.ID
		w.Detail = fmt.Sprintf("%s; run %d waits", w.Detail, len(c.t.Runs)+1)
	}
	if ok && c.once(key) {
		c.post(key, Post{Kind: PostWaiting, Reason: reason, Text: w.Detail, Hint: w.Hint, Items: w.Issues, URL: w.URL})
	}
}

// reported takes what an agent says that its run has cost, where nobody else counted.
func (c *change) reported(r *Run, m Money) {
	if r.Metered {
		return
	}
	r.Money = m
	c.t.Money.Add(m)
}
