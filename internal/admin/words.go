package admin

import (
	"strings"

	"github.com/errand-bot/errand/state"
)

// phaseWords is what people read for a phase.
func phaseWords(p state.Phase) string {
	switch p {
	case state.PhaseQueued:
		return "queued"
	case state.PhasePreliminaryPlanning:
		return "drafting a plan"
	case state.PhaseAwaitingPreliminaryApproval:
		return "draft awaits approval"
	case state.PhasePlanning:
		return "working the plan out"
	case state.PhaseAwaitingPlanApproval:
		return "plan awaits approval"
	case state.PhaseImplementing:
		return "implementing"
	case state.PhasePROpen:
		return "pull request open"
	case state.PhaseAddressingReview:
		return "answering the review"
	case state.PhaseAwaitingAnswer:
		return "awaits an answer"
	}
	return strings.ReplaceAll(string(p), "_", " ") // interrupted, done, cancelled, failed
}

// tone groups phases by who has to act; it is a class of the style sheet.
func tone(p state.Phase) string {
	switch {
	case p == state.PhaseFailed:
		return "bad"
	case p == state.PhaseInterrupted:
		return "warn"
	case p.AwaitsApproval(), p == state.PhaseAwaitingAnswer, p == state.PhasePROpen:
		return "people"
	case p == state.PhaseDone:
		return "good"
	case p.Working():
		return "busy"
	}
	return "calm"
}

func runWords(k state.RunKind) string {
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
	return string(k)
}

func stepWords(k state.JobKind) string {
	switch k {
	case state.StepRun:
		return "the agent runs"
	case state.JobStart:
		return "reading settings and what there is already"
	case state.JobLaunch:
		return "bringing up a VM"
	case state.JobCollect:
		return "reading and judging the commits"
	case state.JobCommit, state.JobMove:
		return "publishing the commits"
	case state.JobRebase:
		return "rebasing onto what was pushed meanwhile"
	case state.JobOpenPR:
		return "opening the pull request"
	case state.JobAnswer:
		return "answering the threads"
	case state.JobGather:
		return "reading the review"
	case state.JobStop:
		return "stopping the run, saving its work"
	}
	return strings.ReplaceAll(string(k), "_", " ")
}

func waitWords(k state.WaitKind) string {
	switch k {
	case state.WaitBlocked:
		return "other issues"
	case state.WaitVM:
		return "a VM"
	case state.WaitLimit:
		return "a limit to end"
	case state.WaitConfig:
		return "a valid .errand.yml"
	case state.WaitEdit:
		return "a word on an edit"
	case state.WaitText:
		return "text that the agent may see"
	case state.WaitDisabled:
		return "being enabled"
	}
	return string(k) // money
}

func planWords(k state.PlanKind) string {
	if k == state.PlanPreliminary {
		return "Preliminary plan"
	}
	return "Thorough plan"
}

func viaWords(v state.ApprovalVia) string {
	switch v {
	case state.ViaReaction:
		return "by 👍"
	case state.ViaBox:
		return "by the box"
	case state.ViaCommand:
		return "by command"
	}
	return "by the settings"
}

// postWords is what people read for a comment of the bot.
func postWords(kind string) string {
	switch state.PostKind(kind) {
	case state.PostPROpened:
		return "pull request opened"
	case state.PostRound:
		return "what a round did"
	case state.PostThread:
		return "answer in a thread"
	case state.PostEnded:
		return "end"
	}
	return plain(kind)
}

// plain shows a word of ours that code is written with, such as the reason for the end of a VM.
func plain(word string) string { return strings.ReplaceAll(word, "_", " ") }

// vmWords says what a kind of VM keeps apart.
func vmWords(kind string) string {
	switch kind {
	case "bwrap":
		return "bubblewrap: own files, own processes, no network"
	case "userns":
		return "user namespaces: own processes, no network"
	case "plain":
		return "plain folder: not isolated"
	}
	return kind
}
