// Package cli has the parts that several adapters share: the check of a [agent.Spec], the escaping of prompts, the rules
// for shell commands and file changes, the truncation of texts, and the judgment of a program's exit.
//
// Start with [CheckSpec] for command lines, and with [Verdict] for judgments.
package cli

import (
	"cmp"
	"fmt"
	"regexp"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
)

// Verdict is the status part of a [Result].
type Verdict struct {
	Status       agent.Status
	Reason, Said string
}

// Apply stores the verdict in the result.
func (v Verdict) Apply(r *agent.Result) {
	r.Status, r.Reason, r.Said = v.Status, v.Reason, Truncate(v.Said, maxSaid)
}

// maxSaid bounds the stored part of a program's failure text, in bytes.
const maxSaid = 2000

// ReasonTooLong explains to people that an answer was in an overlong line.
const ReasonTooLong = "the agent's answer was longer than the 4 MiB that errand keeps of a line, so its end is missing and it was discarded: it has to be shorter"

// ReasonMissingOutput explains to people that the answer may have been in dropped output.
const ReasonMissingOutput = "part of the agent's output is missing, because it was more than errand keeps (4 MiB of a line, or the limit of a run), " +
	"and no result came after that, so its answer is unknown: it has to be shorter"

// ReasonEmptyAnswer explains to people that the last answer was empty.
const ReasonEmptyAnswer = "the model's last answer was empty, as when it declines or has no room left"

// ReasonDeclined explains to people that the model declined.
const ReasonDeclined = "the model declined to answer"

// ReasonOtherSession explains to people that a run did not resume its session.
const ReasonOtherSession = "the agent began another session than the one to resume"

// ReasonFailedExit explains to people that a program reported success but failed.
func ReasonFailedExit(e agent.Ended) string {
	if e.Exit.Signal != "" {
		return "the agent reported success, but its program was killed"
	}
	return fmt.Sprintf("the agent reported success, but its program ended with code %d", e.Exit.Code)
}

// StatusOfCause returns the status that the runner's cause already determines, or "".
func StatusOfCause(e agent.Ended) agent.Status {
	if e.StopRequested {
		return agent.StatusInterrupted
	}
	switch e.Exit.Cause {
	case runlog.CauseStopped:
		return agent.StatusInterrupted
	case runlog.CauseDuration:
		return agent.StatusDuration
	case runlog.CauseStalled:
		return agent.StatusStalled
	case runlog.CauseLost:
		return agent.StatusLost
	case runlog.CauseSetupFailed:
		return agent.StatusSetupFailed
	case runlog.CauseStartFailed:
		return agent.StatusStartFailed
	}
	return ""
}

// JudgeWithoutResult judges a run without a result.
func JudgeWithoutResult(e agent.Ended) Verdict {
	said := LastLine(e.Stderr)
	switch {
	case e.Exit.Signal != "" || e.Exit.Code > 128:
		return Verdict{Status: agent.StatusCrashed, Said: said}
	case e.Exit.Code == 126 || e.Exit.Code == 127:
		return Verdict{Status: agent.StatusStartFailed, Said: said}
	case e.Exit.Code != 0 && said != "":
		return Verdict{Status: agent.StatusInvalid, Said: said}
	}
	return Verdict{Status: agent.StatusCrashed, Said: said}
}

// SubtractUsage returns a - b, with negative counts replaced by 0.
func SubtractUsage(a, b runlog.Usage) runlog.Usage {
	return runlog.Usage{
		Input: max(a.Input-b.Input, 0), Output: max(a.Output-b.Output, 0),
		CacheRead: max(a.CacheRead-b.CacheRead, 0), CacheWrite: max(a.CacheWrite-b.CacheWrite, 0),
	}
}

var resetClock = regexp.MustCompile(`resets (\d{1,2})(?::(\d{2}))?(am|pm) \(UTC\)`)

// ResetTime parses "resets 10:26pm (UTC)" as the next such time after now; zero if there is none.
func ResetTime(text string, now time.Time) time.Time {
	m := resetClock.FindStringSubmatch(text)
	if m == nil || now.IsZero() {
		return time.Time{}
	}
	clock, err := time.Parse("3:04pm", m[1]+":"+cmp.Or(m[2], "00")+m[3])
	if err != nil {
		return time.Time{}
	}
	now = now.UTC()
	at := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, time.UTC)
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}

// MaxDenials bounds the recorded denials of one run.
const MaxDenials = 1000
