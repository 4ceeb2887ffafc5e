package runlog

import (
	"fmt"
	"strings"
	"time"
)

// Class is how an adapter judges the end of a run.
type Class string

// The classes of ends.
const (
	ClassSuccess   Class = "success"
	ClassRetryable Class = "retryable"
	ClassFatal     Class = "fatal"
)

// End is the last record of a run's transcript: its identity, usage and outcome. A transcript without it belongs to a
// run that is active, or whose end was never observed.
type End struct {
	Task string `json:"task"`
	Run  string `json:"run"`
	VM   string `json:"vm,omitempty"`
	Step string `json:"step"`
	// Iteration counts the runs of this step in one piece of work, such as a review round, from 1.
	Iteration int `json:"iteration"`
	// Start is zero for a run that did not begin, Ended if the time is unknown because the VM was lost.
	Start    time.Time     `json:"start,omitzero"`
	Ended    time.Time     `json:"end,omitzero"`
	Duration time.Duration `json:"duration_ns,omitempty"`
	Turns    int           `json:"turns,omitempty"`
	// InputTokens includes those of caches. Metered reports that the gateway counted tokens and cost; otherwise the
	// agent reported them.
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	CostMicroUSD int64 `json:"cost_micro_usd"`
	Metered      bool  `json:"metered,omitempty"`
	// Subscription: the run used a subscription, which has no cost per call.
	Subscription bool `json:"subscription,omitempty"`
	// Cause, Code and Signal describe the process's end as the runner observed it.
	Cause  Cause  `json:"exit_cause"`
	Code   int    `json:"exit_code"`
	Signal string `json:"exit_signal,omitempty"`
	// Error is the status in a word, such as crashed, empty for a success; Message is one sentence for people.
	Class   Class  `json:"exit_class"`
	Error   string `json:"error_class,omitempty"`
	Message string `json:"message,omitempty"`
	// ProgramError is the agent program's own description of its failure, if it did not succeed.
	ProgramError string `json:"program_error,omitempty"`
	// RunnerNote is the remark of the VM's runner about the end, such as why a program could not be started.
	RunnerNote string `json:"runner_note,omitempty"`
}

// SameOutcome reports whether both describe the same outcome of a run. Usage is not compared, because it may have been
// updated since.
func (e End) SameOutcome(other End) bool {
	return e.Run == other.Run && e.Cause == other.Cause && e.Code == other.Code && e.Signal == other.Signal &&
		e.Class == other.Class && e.Error == other.Error && e.Message == other.Message
}

// Words describes the outcome in one line, and adds the message on another.
func (e End) Words() string {
	words := []string{string(e.Class)}
	if e.Error != "" {
		words = append(words, strings.ReplaceAll(e.Error, "_", " "))
	}
	words = append(words, describeExit(e))
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

// describeExit describes how the process ended.
func describeExit(e End) string {
	cause := strings.ReplaceAll(string(e.Cause), "_", " ")
	switch {
	case e.Signal != "":
		return cause + " by signal " + e.Signal
	case e.Cause == CauseExited || e.Code != 0:
		return fmt.Sprintf("%s with code %d", cause, e.Code)
	}
	return cause
}

// Dropped describes the oldest records that were removed because a transcript was too long.
type Dropped struct {
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
	// Last is the number of the last removed line, Until its time.
	Last  int64     `json:"last"`
	Until time.Time `json:"until,omitzero"`
}

// Words describes it for people.
func (d Dropped) Words() string {
	return fmt.Sprintf("The transcript was too long: its oldest %d records (%.1f MB) were dropped.", d.Records, float64(d.Bytes)/1e6)
}
