package state

import (
	"fmt"
	"strings"
	"time"
)

// Checked is what one run of the repository's commands found. Names are those of the commands, the first of them where
// there are very many.
type Checked struct {
	Passed  int      `json:"passed"`
	Failed  []string `json:"failed,omitempty"`
	Skipped []string `json:"skipped,omitempty"`
}

// SumChecks sums the results of one run up.
func SumChecks(list []CheckResult) *Checked {
	c := &Checked{}
	for _, r := range list {
		switch {
		case r.Code != 0 || r.TimedOut:
			c.Failed = named(c.Failed, r.Name)
		case r.Skipped != "":
			c.Skipped = named(c.Skipped, r.Name)
		default:
			c.Passed++
		}
	}
	return c
}

// maxNamed bounds how many names are kept: a VM said them.
const maxNamed = 20

// named adds a name to a list that is not to become long.
func named(list []string, name string) []string {
	switch n := len(list); {
	case n < maxNamed:
		return append(list, Clipped(name))
	case n == maxNamed:
		return append(list, "others")
	}
	return list
}

// Verdict is passed or failed in a word; what failed makes it failed, and nothing else.
func (c *Checked) Verdict() string {
	if len(c.Failed) > 0 {
		return "failed"
	}
	return "passed"
}

// Words say which failed, how many passed and which were skipped, in one sentence.
func (c *Checked) Words() string {
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

// Judged is what came of a run that ended, in a word and a sentence: of checks that could be run, whether they passed.
func (r *Run) Judged() (verdict, message string) {
	if r.Checked != nil && r.Class == "success" {
		return r.Checked.Verdict(), r.Checked.Words()
	}
	return r.Status, r.Message
}

// GateRefusal is one time at which the push gate did not let a run's changes through.
type GateRefusal struct {
	At  time.Time `json:"at"`
	Run string    `json:"run"`
	// Refusals are the first of the rules that were broken, More counts the others.
	Refusals []Refusal `json:"refusals"`
	More     int       `json:"more,omitempty"`
}

// How much of the push gate's refusals is kept with a task.
const (
	maxGateText = 300 // bytes of a path, and of what is wrong with it
)

// Clipped is the beginning of a text that is too long to be kept.
func Clipped(s string) string {
	if len(s) <= maxGateText {
		return s
	}
	return strings.ToValidUTF8(s[:maxGateText], "") + "…"
}

// GateVerdicts says what the push gate refused, once for each time.
func (t *Task) GateVerdicts() (list []Verdict) {
	for _, g := range t.Gate {
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
		list = append(list, Verdict{At: g.At, What: what, Verdict: "refused by the push gate", Message: strings.Join(parts, "; ")})
	}
	return list
}
