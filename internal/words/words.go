// Package words returns the names that people read for phases, waits, runs, steps, plans, approvals and VMs, and
// formats money and durations. Comments and pages both use it, so that a task has the same name everywhere. All texts
// are plain text in lower case, without Markdown or HTML.
//
// It contains no sentences; those are in internal/comment and internal/admin.
//
// Start here: [Phase].
package words

import (
	"fmt"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
)

// Phase names a task's phase.
func Phase(p state.Phase) string {
	switch p {
	case state.PhaseQueued:
		return "getting ready"
	case state.PhasePreliminaryPlanning:
		return "writing the preliminary plan"
	case state.PhaseAwaitingPreliminaryApproval:
		return "preliminary plan awaits approval"
	case state.PhasePlanning:
		return "writing the detailed plan"
	case state.PhaseAwaitingPlanApproval:
		return "plan awaits approval"
	case state.PhaseImplementing:
		return "implementing"
	case state.PhaseAwaitingPublishApproval:
		return "changes await approval"
	case state.PhasePROpen:
		return "pull request open"
	case state.PhasePRClosed:
		return "pull request closed"
	case state.PhaseAddressingReview:
		return "addressing the review"
	case state.PhaseAwaitingAnswer:
		return "awaiting an answer"
	case state.PhaseInterrupted:
		return "interrupted"
	case state.PhaseDone:
		return "done"
	case state.PhaseCancelled:
		return "canceled"
	case state.PhaseFailed:
		return "failed"
	}
	return "in phase " + Plain(string(p))
}

// PhaseClause states a task's phase as the end of a sentence.
func PhaseClause(p state.Phase) string {
	switch p {
	case state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseAddressingReview:
		return "the agent is " + Phase(p)
	case state.PhaseImplementing:
		return "the agent is implementing the plan"
	case state.PhaseAwaitingPreliminaryApproval, state.PhaseAwaitingPlanApproval, state.PhaseAwaitingPublishApproval:
		return "the " + Phase(p)
	case state.PhasePROpen:
		return "the pull request is open"
	case state.PhaseFailed:
		return "the task has failed"
	}
	return "the task is " + Phase(p)
}

// Wait names the thing, other than a person, for which a task waits.
func Wait(k state.WaitKind) string {
	switch k {
	case state.WaitBlocked:
		return "other issues"
	case state.WaitVM:
		return "a VM"
	case state.WaitMoney:
		return "money"
	case state.WaitTurns:
		return "more turns"
	case state.WaitLimit:
		return "a limit or an outage to end"
	case state.WaitKey:
		return "a working model key"
	case state.WaitPermission:
		return "permissions of the App"
	case state.WaitConfig:
		return "a valid .errand.yml"
	case state.WaitEdit:
		return "a decision on an edit"
	case state.WaitText:
		return "text that the agent can see"
	case state.WaitDisabled:
		return "being enabled"
	case state.WaitPaused:
		return "the operator to resume"
	}
	return Plain(string(k))
}

// Waiting names the thing for which a task waits, with the task's place if it is in a queue.
func Waiting(w *state.Waiting) string {
	if w.Place > 0 {
		return Wait(w.Kind) + " (" + Ordinal(w.Place) + " in the queue)"
	}
	return Wait(w.Kind)
}

// Run names a kind of run.
func Run(k state.RunKind) string {
	switch k {
	case state.RunPreliminary:
		return "preliminary plan"
	case state.RunPlan:
		return "detailed plan"
	case state.RunImplement:
		return "implementation"
	case state.RunCheck:
		return "checks"
	case state.RunReview:
		return "review round"
	}
	return Plain(string(k))
}

// Running returns a clause that describes an active run of this kind.
func Running(k state.RunKind) string {
	switch k {
	case state.RunPreliminary:
		return "the agent reads the code and drafts a plan"
	case state.RunPlan:
		return "the agent writes the detailed plan"
	case state.RunImplement:
		return "the agent implements the plan"
	case state.RunCheck:
		return "the repository's checks run"
	case state.RunReview:
		return "the agent addresses the review"
	}
	return "the agent runs"
}

// Step describes a job in progress.
func Step(k state.JobKind) string {
	switch k {
	case state.StepRun:
		return "the agent runs"
	case state.JobStart:
		return "reading the repository's settings and existing work"
	case state.JobLaunch:
		return "starting a VM"
	case state.JobCollect:
		return "reading and checking the commits"
	case state.JobShow:
		return "preparing the diff for approval"
	case state.JobCommit, state.JobMove:
		return "publishing the commits"
	case state.JobRebase:
		return "rebasing the commits onto newer pushes"
	case state.JobOpenPR:
		return "opening the pull request"
	case state.JobReopen:
		return "reopening the pull request"
	case state.JobClosePR:
		return "closing a replaced pull request"
	case state.JobAnswer:
		return "replying to the review threads"
	case state.JobFinish:
		return "finding out whether the pull request is ready"
	case state.JobUpdate:
		return "comparing the branch with its base"
	case state.JobGather:
		return "reading the review"
	case state.JobExamine:
		return "reading what failed in the checks"
	case state.JobIssue:
		return "creating a proposed issue"
	case state.JobSuspend:
		return "saving the VM's work"
	case state.JobForget:
		return "deleting the saved work"
	case state.JobStop:
		return "stopping the run and saving its work"
	}
	return Plain(string(k))
}

// Plan names a kind of plan.
func Plan(k state.PlanKind) string {
	switch k {
	case state.PlanPreliminary:
		return "preliminary plan"
	case state.PlanPublish:
		return "changes"
	}
	return "plan"
}

// ApprovalSubject names the thing that needs approval in a phase, with its verb.
func ApprovalSubject(p state.Phase) string {
	if p == state.PhaseAwaitingPublishApproval {
		return "the changes are"
	}
	return "the plan is"
}

// Via names the way an approval was given.
func Via(v state.ApprovalVia) string {
	switch v {
	case state.ViaReaction:
		return "👍"
	case state.ViaBox:
		return "box"
	case state.ViaCommand:
		return "command"
	}
	return "by the settings"
}

// VM returns how a local VM is made and what it isolates. For other kinds it returns the kind alone.
func VM(kind string) (description, isolation string) {
	switch kind {
	case state.SandboxBwrap:
		return "bubblewrap", "own files, own processes, no network"
	case state.SandboxUserns:
		return "user namespaces", "own files, own processes, no network"
	case state.SandboxPlain:
		return "plain folder", "not isolated"
	}
	return kind, ""
}

// Plain converts an identifier of the code, such as the reason for a VM's end, to words.
func Plain(word string) string { return strings.ReplaceAll(word, "_", " ") }

// Span formats a duration in seconds, minutes, hours with minutes, or days. Negative durations count as zero.
func Span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// ExactSpan is [Span] with tenths of a second below ten seconds, and with the seconds of minutes. It suits measurements;
// Span suits texts about something in progress, since its result changes less often.
func ExactSpan(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", max(d, 0).Seconds())
	case d >= time.Minute && d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return Span(d)
}

// USD formats millionths of a dollar with two decimals. A positive amount is never shown as $0.00.
func USD(micro int64) string {
	if micro > 0 && micro < 5_000 {
		return "under $0.01"
	}
	return fmt.Sprintf("$%.2f", float64(micro)/1e6)
}

// Count formats a number in thousands or millions.
func Count(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

// Ordinal formats a place: "1st", "2nd", "11th".
func Ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}

// Many counts things: "1 run", "2 runs".
func Many(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
