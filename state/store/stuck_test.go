package store

import (
	"slices"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// stuck returns the reason why nothing will advance the task, or "".
func stuck(t *state.Task, jobs []state.Job) string {
	has := func(kinds ...state.JobKind) bool {
		return slices.ContainsFunc(jobs, func(j state.Job) bool { return slices.Contains(kinds, j.Kind) })
	}
	due := func(what state.DueKind) bool {
		return slices.ContainsFunc(jobs, func(j state.Job) bool { return j.Kind == state.JobDue && j.Args.Due == what })
	}
	if last := t.History[len(t.History)-1]; last.Phase != t.Phase {
		return "the history ends with " + string(last.Phase)
	}
	life := has(state.JobStart, state.JobLaunch, state.JobCollect, state.JobShow, state.JobCommit, state.JobMove, state.JobRebase, state.JobOpenPR, state.JobReopen, state.JobAnswer)
	runs := t.Run != nil && (t.Run.State == state.RunActive || t.Run.State == state.RunStopping)
	switch {
	case t.Ended():
		return leak(t, has)
	case t.Phase.Working():
		return idle(t, life || runs, due("recheck"), has(state.JobLaunch))
	case t.Phase == state.PhaseInterrupted && !due("resume"):
		return "nothing will resume it"
	case t.Phase == state.PhaseAwaitingAnswer && t.Question == nil:
		return "no question is open"
	case t.Phase == state.PhaseFailed && (t.End == nil || t.Resume == ""):
		return "it failed without a reason, or retry has nowhere to go"
	case t.Phase == state.PhasePROpen && t.PR == nil:
		return "there is no pull request"
	case t.Phase == state.PhasePRClosed && !due("parked"):
		return "nothing will end it"
	case t.Phase == state.PhasePRClosed && t.Step == state.JobReopen && !has(state.JobReopen):
		return "nothing reopens the pull request"
	case t.Phase.AwaitsApproval():
		return unapprovable(t, jobs)
	}
	return ""
}

// leak returns the remains of an ended task that should not exist.
func leak(t *state.Task, has func(...state.JobKind) bool) string {
	switch {
	case t.End == nil:
		return "it ended without a reason"
	case t.Run != nil && !has(state.JobStop):
		return "a run goes on and nothing will stop it"
	case t.VM != nil && !has(state.JobStop, state.JobRelease):
		return "a VM is left and nothing will release it"
	}
	return ""
}

// unapproved describes work in progress without approval.
func unapproved(t *state.Task) string {
	if t.Run == nil || t.Run.Kind != state.RunImplement && t.Run.Kind != state.RunReview {
		return ""
	}
	switch a, p := t.Approval, newestToBuild(t); {
	case a == nil:
		return "a run builds what nobody approved"
	case a.Via == state.ViaSettings:
		return ""
	case a.Kind != state.PlanThorough || p == nil || a.Hash != p.Hash:
		return "the approval of " + a.Hash + " is not that of the newest plan"
	}
	return ""
}

// unshown describes published changes without approval where approval is required.
func unshown(t *state.Task, jobs []state.Job) string {
	publishes := slices.ContainsFunc(jobs, func(j state.Job) bool { return j.Kind == state.JobCommit || j.Kind == state.JobMove })
	if t.Settings.Publish != settings.PublishAfterApproval || !publishes || t.Phase != state.PhaseImplementing && t.Phase != state.PhaseAddressingReview {
		return ""
	}
	p := t.NewestPlan()
	switch {
	case p == nil || p.Publish == nil || p.Publish.Approved == nil || p.Superseded:
		return "changes are published that nobody approved"
	case t.Work == nil || t.Work.Approved != p.Hash || t.Work.Ref != p.Publish.Ref:
		return "other changes are published than the approved ones"
	}
	return ""
}

// idle checks a task that should be at work.
func idle(t *state.Task, busy, recheck, launching bool) string {
	waitsForPeople := t.Waiting != nil && t.Waiting.Kind == state.WaitEdit
	switch {
	case t.Run != nil && t.Run.State == state.RunLaunching && !launching && t.Waiting == nil:
		return "a run is to be launched and nothing will"
	case !busy && !waitsForPeople && !(t.Waiting != nil && recheck):
		return "it is at work on nothing"
	}
	return ""
}

// unapprovable checks a waiting plan: it is posted, or will be, and people can act.
func unapprovable(t *state.Task, jobs []state.Job) string {
	p := t.NewestPlan()
	switch {
	case p == nil:
		return "there is no plan to approve"
	case p.Superseded:
		return "the newest plan is superseded, and no newer one is being made"
	case !p.Posted() && !slices.ContainsFunc(jobs, func(j state.Job) bool { return j.Post != nil && j.Post.Kind == state.PostPlan && j.Post.Hash == p.Hash }):
		return "the newest plan will never be posted"
	}
	return ""
}

// newestToBuild returns the newest plan that describes work rather than changes to be published.
func newestToBuild(t *state.Task) *state.Plan {
	for i := len(t.Plans) - 1; i >= 0; i-- {
		if t.Plans[i].Kind != state.PlanPublish {
			return &t.Plans[i]
		}
	}
	return nil
}

func jobKinds(jobs []state.Job) (kinds []state.JobKind) {
	for _, j := range jobs {
		kinds = append(kinds, j.Kind)
	}
	return kinds
}

func feedbackIDs(fs []state.Feedback) (ids []string) {
	for _, f := range fs {
		ids = append(ids, f.ID)
	}
	return ids
}
