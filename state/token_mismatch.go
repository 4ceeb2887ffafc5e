package state

import (
	"fmt"
	"strings"
)

// The tolerated difference between the tokens that an agent's program reports and those that the gateway counted:
// answers that were cut off and repeated are counted by the gateway only. A difference must exceed both, of input or of
// output tokens.
const (
	mismatchTokens  = 2_000
	mismatchPercent = 10
)

// TokenMismatch is a run whose agent's program reports other tokens than the gateway counted. The gateway's count determines
// the cost.
type TokenMismatch struct {
	Run            int    `json:"run"` // Run.Seq
	Adapter        string `json:"adapter,omitempty"`
	ReportedInput  int64  `json:"said_input_tokens"` // including those of caches
	ReportedOutput int64  `json:"said_output_tokens"`
	CountedInput   int64  `json:"counted_input_tokens"`
	CountedOutput  int64  `json:"counted_output_tokens"`
}

// TokenMismatch compares the tokens that the run's program reported with those that the gateway counted, and returns nil if
// they agree. It does not compare programs that report nothing, nor runs whose last answer may have been cut off: those
// that were stopped, or reached a cap. A program that reports no cache tokens may leave them out of its input tokens.
func (r *Run) TokenMismatch() *TokenMismatch {
	if r.Kind == RunCheck || r.State != RunEnded || r.Used == nil || r.RunDenial != nil || r.Status == StatusInterrupted {
		return nil
	}
	u := r.Used
	m := TokenMismatch{Run: r.Seq, Adapter: r.Adapter, ReportedInput: u.Input + u.CacheRead + u.CacheWrite, ReportedOutput: u.Output}
	if r.Metered { // otherwise the gateway has counted nothing
		m.CountedInput, m.CountedOutput = r.Money.InputTokens, r.Money.OutputTokens
	}
	in := isMismatch(m.ReportedInput, m.CountedInput)
	if u.CacheRead+u.CacheWrite == 0 && m.ReportedInput < m.CountedInput {
		in = false
	}
	if !in && !isMismatch(m.ReportedOutput, m.CountedOutput) {
		return nil
	}
	return &m
}

// isMismatch reports whether two counts differ by more than is tolerated.
func isMismatch(reported, counted int64) bool {
	d := max(reported-counted, counted-reported)
	return d > mismatchTokens && d > counted/100*mismatchPercent
}

// Sentence returns one sentence with both counts.
func (m *TokenMismatch) Sentence() string {
	name := strings.TrimSpace("the agent's program " + m.Adapter)
	return fmt.Sprintf("%s reported %s input and %s output tokens; the gateway counted %s and %s, and the cost is based on its count",
		name, thousands(m.ReportedInput), thousands(m.ReportedOutput), thousands(m.CountedInput), thousands(m.CountedOutput))
}
