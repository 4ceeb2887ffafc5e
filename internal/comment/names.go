package comment

import "github.com/errand-bot/errand/state"

// phaseName is what people read for a phase.
func phaseName(p state.Phase) string {
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
	return string("in phase " + p)
}

// waitName is what people read for a thing waited for.
func waitName(k state.WaitKind) string {
	switch k {
	case state.WaitBlocked:
		return "other issues"
	case state.WaitVM:
		return "a VM"
	case state.WaitMoney:
		return "money"
	case state.WaitLimit:
		return "a limit to end"
	case state.WaitConfig:
		return "a valid `.errand.yml`"
	case state.WaitEdit:
		return "a word on an edit"
	case state.WaitText:
		return "text that the agent may see"
	case state.WaitDisabled:
		return "being enabled"
	}
	return string(k)
}

// runName is what people read for an active run.
func runName(k state.RunKind) string {
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

// stepName is what people read for a job under way.
func stepName(k state.JobKind) string {
	switch k {
	case state.JobStart:
		return "reading the repository's settings and what there is already"
	case state.JobLaunch:
		return "bringing up a VM"
	case state.JobCollect:
		return "reading and judging the commits"
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
	}
	return string(k)
}

func kindName(k state.PlanKind) string {
	if k == state.PlanPreliminary {
		return "preliminary plan"
	}
	return "plan"
}

func viaName(v state.ApprovalVia) string {
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

// vmText names a VM and how well it is closed off.
func vmText(vm *state.VM) string {
	s := code(vm.Name)
	if s == "" {
		s = "unnamed"
	}
	s += " (" + line(vm.Provider, 20)
	if vm.Provider == "" {
		s += "unknown provider"
	}
	switch vm.Kind {
	case "":
	case "bwrap":
		s += ", bubblewrap: own files, own processes, no network"
	case "userns":
		s += ", user namespaces: own processes, no network"
	case "plain":
		s += ", plain folder: **not isolated**"
	default:
		s += ", " + line(vm.Kind, 30)
	}
	return s + ")"
}
