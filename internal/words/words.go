// Package words says what people read for the names of the domain: phases, waits, runs, steps, plans,
// approvals, VMs, money and spans of time. Comments and pages both take them from here, so that a task is
// called the same wherever it is met. Words are plain text, lower case, without Markdown or HTML.
//
// It holds no sentences: those are internal/comment's and internal/admin's. Begin at Phase.
package words

import (
	"fmt"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
)

// Phase says where a task is.
func Phase(p state.Phase) string {
	switch p {
	case state.PhaseQueued:
		return "getting ready"
	case state.PhasePreliminaryPlanning:
		return "writing the preliminary plan"
	case state.PhaseAwaitingPreliminaryApproval:
		return "preliminary plan awaits approval"
	case state.PhasePlanning:
		return "working the plan out"
	case state.PhaseAwaitingPlanApproval:
		return "plan awaits approval"
	case state.PhaseImplementing:
		return "implementing"
	case state.PhaseAwaitingPublishApproval:
		return "changes await approval"
	case state.PhasePROpen:
		return "pull request open"
	case state.PhaseAddressingReview:
		return "answering the review"
	case state.PhaseAwaitingAnswer:
		return "awaiting an answer"
	case state.PhaseInterrupted:
		return "interrupted"
	case state.PhaseDone:
		return "done"
	case state.PhaseCancelled:
		return "cancelled"
	case state.PhaseFailed:
		return "failed"
	}
	return "in phase " + Plain(string(p))
}

// Wait says what a task waits for besides people.
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
		return "a model key that works"
	case state.WaitPermission:
		return "permissions of the App"
	case state.WaitConfig:
		return "a valid .errand.yml"
	case state.WaitEdit:
		return "a word on an edit"
	case state.WaitText:
		return "text that the agent may see"
	case state.WaitDisabled:
		return "being enabled"
	}
	return Plain(string(k))
}

// Run names a kind of run.
func Run(k state.RunKind) string {
	switch k {
	case state.RunPreliminary:
		return "preliminary plan"
	case state.RunPlan:
		return "thorough plan"
	case state.RunImplement:
		return "implementation"
	case state.RunCheck:
		return "checks"
	case state.RunReview:
		return "review round"
	}
	return Plain(string(k))
}

// Running says what happens while such a run is active.
func Running(k state.RunKind) string {
	switch k {
	case state.RunPreliminary:
		return "the agent reads the code and drafts a plan"
	case state.RunPlan:
		return "the agent works the plan out"
	case state.RunImplement:
		return "the agent implements the plan"
	case state.RunCheck:
		return "the repository's checks run"
	case state.RunReview:
		return "the agent answers the review"
	}
	return "the agent runs"
}

// Step says what a job does while it is under way.
func Step(k state.JobKind) string {
	switch k {
	case state.StepRun:
		return "the agent runs"
	case state.JobStart:
		return "reading the repository's settings and what there is already"
	case state.JobLaunch:
		return "bringing up a VM"
	case state.JobCollect:
		return "reading and judging the commits"
	case state.JobShow:
		return "making the diff for people to approve"
	case state.JobCommit, state.JobMove:
		return "publishing the commits"
	case state.JobRebase:
		return "putting the commits on top of what was pushed meanwhile"
	case state.JobOpenPR:
		return "opening the pull request"
	case state.JobAnswer:
		return "answering the threads"
	case state.JobGather:
		return "reading the review"
	case state.JobIssue:
		return "creating a proposed issue"
	case state.JobSleep:
		return "putting the VM's work away"
	case state.JobForget:
		return "deleting what was put away"
	case state.JobStop:
		return "stopping the run, saving its work"
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

// What names what waits for an approval in a phase, with its verb.
func What(p state.Phase) string {
	if p == state.PhaseAwaitingPublishApproval {
		return "the changes are"
	}
	return "the plan is"
}

// Via says how an approval was given.
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

// VM says what a kind of VM is made of and what it keeps apart; both are empty for kinds that the
// provider's name says all about.
func VM(kind string) (what, apart string) {
	switch kind {
	case "bwrap":
		return "bubblewrap", "own files, own processes, no network"
	case "userns":
		return "user namespaces", "own files, own processes, no network"
	case "plain":
		return "plain folder", "not isolated"
	}
	return kind, ""
}

// Plain shows a word of ours that code is written with, such as why a VM ended.
func Plain(word string) string { return strings.ReplaceAll(word, "_", " ") }

// Span shows a duration in the two largest units that matter; less than nothing is nothing.
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

// USD shows millionths of a dollar in cents; what is not nothing is never shown as nothing.
func USD(micro int64) string {
	if micro > 0 && micro < 5_000 {
		return "under $0.01"
	}
	return fmt.Sprintf("$%.2f", float64(micro)/1e6)
}

// Many counts things: "1 run", "2 runs".
func Many(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
