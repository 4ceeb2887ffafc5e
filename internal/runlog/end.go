package runlog

import (
	"fmt"
	"strings"
	"time"
)

// The classes of ends, as adapters judge them.
const (
	ClassSuccess   = "success"
	ClassRetryable = "retryable"
	ClassFatal     = "fatal"
)

// End is the last record of a run's transcript: which run it was, what it took, and how it was
// judged. A transcript without one is of a run that goes on, or whose end nobody saw.
type End struct {
	Task string `json:"task"`
	Run  string `json:"run"`
	VM   string `json:"vm,omitempty"`
	Step string `json:"step"`
	// Iteration counts the runs of this step in one piece of work, such as a review round, from 1.
	Iteration int `json:"iteration"`
	// Start is zero for a run that did not begin, Ended where nobody knows it: the VM was lost.
	Start    time.Time     `json:"start,omitzero"`
	Ended    time.Time     `json:"end,omitzero"`
	Duration time.Duration `json:"duration_ns,omitempty"`
	Turns    int           `json:"turns,omitempty"`
	// InputTokens include those of caches. Metered says that the gateway counted tokens and cost; else
	// it is what the agent said.
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	CostMicroUSD int64 `json:"cost_micro_usd"`
	Metered      bool  `json:"metered,omitempty"`
	// Subscription: it was on one, which costs nothing by the call.
	Subscription bool `json:"subscription,omitempty"`
	// Cause, Code and Signal are the process's end as the runner saw it.
	Cause  Cause  `json:"exit_cause"`
	Code   int    `json:"exit_code"`
	Signal string `json:"exit_signal,omitempty"`
	// Class is success, retryable or fatal; Error the judgement in a word, such as crashed, empty for a
	// success; Message one sentence for people, in errand's words.
	Class   string `json:"exit_class"`
	Error   string `json:"error_class,omitempty"`
	Message string `json:"message,omitempty"`
	// ProgramError is what the agent's program said of its failure, if it did not succeed.
	ProgramError string `json:"program_error,omitempty"`
	// RunnerNote is what the runner on the VM said of the end, such as why a program could not be started.
	RunnerNote string `json:"runner_note,omitempty"`
}

// Same reports whether both say the same of how the run ended; what it took may have been counted
// further meanwhile.
func (e End) Same(other End) bool {
	return e.Run == other.Run && e.Cause == other.Cause && e.Code == other.Code && e.Signal == other.Signal &&
		e.Class == other.Class && e.Error == other.Error && e.Message == other.Message
}

// Words says how the run ended, in a line, and the message in another.
func (e End) Words() string {
	words := []string{e.Class}
	if e.Error != "" {
		words = append(words, strings.ReplaceAll(e.Error, "_", " "))
	}
	words = append(words, exitWords(e))
	if e.Duration > 0 {
		words = append(words, "after "+e.Duration.Round(time.Second).String())
	}
	if e.InputTokens > 0 || e.OutputTokens > 0 {
		cost := fmt.Sprintf("$%.4f", float64(e.CostMicroUSD)/1e6)
		switch {
		case e.Subscription && e.CostMicroUSD == 0:
			cost = "subscription"
		case e.Subscription:
			cost += " and subscription"
		}
		words = append(words, fmt.Sprintf("%d tokens in, %d out, %s", e.InputTokens, e.OutputTokens, cost))
	}
	return strings.TrimSpace(strings.Join(words, ", ") + "\n" + e.Message)
}

// exitWords says how the process ended.
func exitWords(e End) string {
	cause := strings.ReplaceAll(string(e.Cause), "_", " ")
	switch {
	case e.Signal != "":
		return cause + " by signal " + e.Signal
	case e.Cause == CauseExited || e.Code != 0:
		return fmt.Sprintf("%s with code %d", cause, e.Code)
	}
	return cause
}

// Dropped says what a transcript has lost because it was too long: its oldest records.
type Dropped struct {
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
	// Last is the number of the last line that is gone, Until its time.
	Last  int64     `json:"last"`
	Until time.Time `json:"until,omitzero"`
}

// Words says it to people.
func (d Dropped) Words() string {
	return fmt.Sprintf("The transcript had become too long: its oldest %d records (%.1f MB) were dropped.", d.Records, float64(d.Bytes)/1e6)
}
