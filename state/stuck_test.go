package state

import "slices"

// stuck says why nothing but a miracle would bring the task on, or nothing if something will.
func stuck(t *Task, jobs []Job) string {
	has := func(kinds ...JobKind) bool {
		return slices.ContainsFunc(jobs, func(j Job) bool { return slices.Contains(kinds, j.Kind) })
	}
	due := func(what string) bool {
		return slices.ContainsFunc(jobs, func(j Job) bool { return j.Kind == JobDue && j.Args["what"] == what })
	}
	if last := t.History[len(t.History)-1]; last.Phase != t.Phase {
		return "the history ends with " + string(last.Phase)
	}
	life := has(JobStart, JobLaunch, JobCollect, JobShow, JobCommit, JobMove, JobRebase, JobOpenPR, JobAnswer)
	runs := t.Run != nil && (t.Run.State == RunActive || t.Run.State == RunStopping)
	switch {
	case t.Ended():
		return leak(t, has)
	case t.Phase.Working():
		return idle(t, life || runs, due("recheck"), has(JobLaunch))
	case t.Phase == PhaseInterrupted && !due("resume"):
		return "nothing will resume it"
	case t.Phase == PhaseAwaitingAnswer && t.Question == nil:
		return "no question is open"
	case t.Phase == PhaseFailed && (t.End == nil || t.Resume == ""):
		return "it failed without a reason, or retry has nowhere to go"
	case t.Phase == PhasePROpen && t.PR == nil:
		return "there is no pull request"
	case t.Phase.AwaitsApproval():
		return unapprovable(t, jobs)
	}
	return ""
}

// leak looks at what an ended task leaves behind.
func leak(t *Task, has func(...JobKind) bool) string {
	switch {
	case t.End == nil:
		return "it ended without a reason"
	case t.Run != nil && !has(JobStop):
		return "a run goes on and nothing will stop it"
	case t.VM != nil && !has(JobStop, JobRelease):
		return "a VM is left and nothing will release it"
	}
	return ""
}

// unapproved says what is being built that nobody approved.
func unapproved(t *Task) string {
	if t.Run == nil || t.Run.Kind != RunImplement && t.Run.Kind != RunReview {
		return ""
	}
	switch a, p := t.Approval, (&change{t: t}).newestOfPlans(); {
	case a == nil:
		return "a run builds what nobody approved"
	case a.Via == ViaSettings:
		return ""
	case a.Kind != PlanThorough || p == nil || a.Hash != p.Hash:
		return "the approval of " + a.Hash + " is not that of the newest plan"
	}
	return ""
}

// unshown says what is published that nobody approved, where people are to see it first.
func unshown(t *Task, jobs []Job) string {
	publishes := slices.ContainsFunc(jobs, func(j Job) bool { return j.Kind == JobCommit || j.Kind == JobMove })
	if t.Settings.Publish != PublishAfterApproval || !publishes || !slices.Contains(building, t.Phase) {
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

// idle looks at a task that should be at work.
func idle(t *Task, busy, recheck, launching bool) string {
	waitsForPeople := t.Waiting != nil && t.Waiting.Kind == WaitEdit
	switch {
	case t.Run != nil && t.Run.State == RunLaunching && !launching && t.Waiting == nil:
		return "a run is to be launched and nothing will"
	case !busy && !waitsForPeople && !(t.Waiting != nil && recheck):
		return "it is at work on nothing"
	}
	return ""
}

// unapprovable looks at a plan that waits: it is posted, or will be, and people can do something.
func unapprovable(t *Task, jobs []Job) string {
	p := t.NewestPlan()
	switch {
	case p == nil:
		return "there is no plan to approve"
	case p.Superseded:
		return "the newest plan is superseded, and no newer one is being made"
	case !p.Posted() && !slices.ContainsFunc(jobs, func(j Job) bool { return j.Post != nil && j.Post.Kind == PostPlan && j.Post.Hash == p.Hash }):
		return "the newest plan will never be posted"
	}
	return ""
}
