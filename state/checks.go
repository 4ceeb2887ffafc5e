package state

import (
	"fmt"
	"strings"
	"time"
)

// CheckSummary is the result of running the repository's commands. Failed and Skipped have the names of commands, at most
// the first 20.
type CheckSummary struct {
	Passed  int      `json:"passed"`
	Failed  []string `json:"failed,omitempty"`
	Skipped []string `json:"skipped,omitempty"`
}

// SummarizeChecks summarizes the results of one run.
func SummarizeChecks(list []CheckResult) *CheckSummary {
	c := &CheckSummary{}
	for _, r := range list {
		switch {
		case r.Code != 0 || r.TimedOut:
			c.Failed = appendName(c.Failed, r.Name)
		case r.Skipped != "":
			c.Skipped = appendName(c.Skipped, r.Name)
		default:
			c.Passed++
		}
	}
	return c
}

// maxNames is the maximum number of stored names, because they come from a VM.
const maxNames = 20

// appendName adds a name to a list, up to maxNames.
func appendName(list []string, name string) []string {
	switch n := len(list); {
	case n < maxNames:
		return append(list, Truncate(name))
	case n == maxNames:
		return append(list, "others")
	}
	return list
}

// Verdict returns "failed" if any command failed, else "passed".
func (c *CheckSummary) Verdict() string {
	if len(c.Failed) > 0 {
		return "failed"
	}
	return "passed"
}

// Sentence returns one sentence with the failed, the passed and the skipped commands.
func (c *CheckSummary) Sentence() string {
	var parts []string
	if len(c.Failed) > 0 {
		parts = append(parts, strings.Join(c.Failed, ", ")+" failed")
	}
	if c.Passed > 0 || len(parts) == 0 {
		parts = append(parts, fmt.Sprintf("%d passed", c.Passed))
	}
	if len(c.Skipped) > 0 {
		parts = append(parts, strings.Join(c.Skipped, ", ")+" skipped")
	}
	return strings.Join(parts, "; ")
}

// Verdict returns the verdict on an ended run and a sentence about it. For checks that ran, the verdict is whether they
// passed.
func (r *Run) Verdict() (verdict, message string) {
	if r.CheckSummary != nil && r.Class == RunSucceeded {
		return r.CheckSummary.Verdict(), r.CheckSummary.Sentence()
	}
	return string(r.Status), r.Message
}

// GateRefusal is one refusal of a run's changes by the push gate.
type GateRefusal struct {
	At  time.Time `json:"at"`
	Run string    `json:"run"`
	// Refusals has the first broken rules, More the number of the others.
	Refusals []Refusal `json:"refusals"`
	More     int       `json:"more,omitempty"`
}

// Limits on stored refusals of the push gate.
const (
	maxGateText = 300 // bytes of a path, and of a detail
)

// Truncate shortens a text that is too long to be stored.
func Truncate(s string) string {
	if len(s) <= maxGateText {
		return s
	}
	return strings.ToValidUTF8(s[:maxGateText], "") + "…"
}

// GateVerdicts returns one verdict for each refusal by the push gate.
func (t *Task) GateVerdicts() (list []Verdict) {
	for _, g := range t.GateRefusals {
		what := "changes of a run"
		for i := range t.Runs {
			if t.Runs[i].ID == g.Run {
				what = fmt.Sprintf("changes of run %d", t.Runs[i].Seq)
			}
		}
		var parts []string
		for _, r := range g.Refusals {
			words := r.Rule
			if r.Path != "" {
				words += " in " + r.Path
			}
			parts = append(parts, words+": "+r.Detail)
		}
		if g.More > 0 {
			parts = append(parts, fmt.Sprintf("and %d more", g.More))
		}
		list = append(list, Verdict{At: g.At, Subject: what, Verdict: "refused by the push gate", Message: strings.Join(parts, "; ")})
	}
	return list
}

// Refusal is a violation of a rule of the push gate.
type Refusal struct {
	Rule   string `json:"rule"`
	Path   string `json:"path,omitempty"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy"`
}
