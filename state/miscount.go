package state

import (
	"fmt"
	"strings"
)

// The tolerated difference between the tokens that an agent's program reports and those that the gateway counted:
// answers that were cut off and repeated are counted by the gateway only. A difference must exceed both, of input or of
// output tokens.
const (
	miscountTokens  = 2_000
	miscountPercent = 10
)

// Miscount is a run whose agent's program reports other tokens than the gateway counted. The gateway's count determines
// the cost.
type Miscount struct {
	Run           int    `json:"run"` // Run.Seq
	Adapter       string `json:"adapter,omitempty"`
	SaidInput     int64  `json:"said_input_tokens"` // including those of caches
	SaidOutput    int64  `json:"said_output_tokens"`
	CountedInput  int64  `json:"counted_input_tokens"`
	CountedOutput int64  `json:"counted_output_tokens"`
}

// Miscount compares the tokens that the run's program reported with those that the gateway counted, and returns nil if
// they agree. It does not compare programs that report nothing, nor runs whose last answer may have been cut off: those
// that were stopped, or reached a cap. A program that reports no cache tokens may leave them out of its input tokens.
func (r *Run) Miscount() *Miscount {
	if r.Kind == RunCheck || r.State != RunEnded || r.Used == nil || r.Held != nil || r.Status == StatusInterrupted {
		return nil
	}
	u := r.Used
	m := Miscount{Run: r.Seq, Adapter: r.Adapter, SaidInput: u.Input + u.CacheRead + u.CacheWrite, SaidOutput: u.Output}
	if r.Metered { // otherwise the gateway has counted nothing
		m.CountedInput, m.CountedOutput = r.Money.InputTokens, r.Money.OutputTokens
	}
	in := far(m.SaidInput, m.CountedInput)
	if u.CacheRead+u.CacheWrite == 0 && m.SaidInput < m.CountedInput {
		in = false
	}
	if !in && !far(m.SaidOutput, m.CountedOutput) {
		return nil
	}
	return &m
}

// far reports whether two counts differ by more than is tolerated.
func far(said, counted int64) bool {
	d := max(said-counted, counted-said)
	return d > miscountTokens && d > counted/100*miscountPercent
}

// Words returns one sentence with both counts.
func (m *Miscount) Words() string {
	name := strings.TrimSpace("the agent's program " + m.Adapter)
	return fmt.Sprintf("%s reported %s input and %s output tokens; the gateway counted %s and %s, and the cost is based on its count",
		name, thousands(m.SaidInput), thousands(m.SaidOutput), thousands(m.CountedInput), thousands(m.CountedOutput))
}
