package machine

import (
	"slices"

	"github.com/errand-bot/errand/state"
)

// all returns a condition that holds if every given condition holds.
func all(conds ...func(*change) bool) func(*change) bool {
	return func(c *change) bool {
		for _, f := range conds {
			if !f(c) {
				return false
			}
		}
		return true
	}
}

// not returns the negation of a condition.
func not(f func(*change) bool) func(*change) bool { return func(c *change) bool { return !f(c) } }

// allowed reports whether the event's sender may direct errand.
func allowed(c *change) bool { return c.e.Permission.CanWrite() }

// via returns a condition on the event's Via.
func via(how string) func(*change) bool { return func(c *change) bool { return c.e.Via == how } }

// due reports whether a delayed job of that kind reported.
func due(what state.DueKind) func(*change) bool {
	return func(c *change) bool { return c.e.Due != nil && c.e.Due.Kind == what }
}

// class returns a condition on the class of the ended run.
func class(name string) func(*change) bool {
	return func(c *change) bool { return c.e.Result.Class == name }
}

// onIssue reports whether a comment was written on the issue, not on the pull request.
func onIssue(c *change) bool { return c.e.Issue != nil && !c.e.Comment.OnPR }

func hasPR(c *change) bool { return c.t.PR != nil }

func ticked(c *change) bool { return c.e.Ticked && c.e.OnlyBoxes }

// sameTrigger reports whether the withdrawn trigger is the one that started the task.
func sameTrigger(c *change) bool {
	return c.e.Via == "" || c.e.Via == c.t.Trigger.Via || c.t.Trigger.Via == state.ViaSweep
}

func textAsFrozen(c *change) bool {
	return state.FreezeHash(c.e.Issue.Title, c.e.Issue.Body) == c.t.Frozen.Hash
}

// thisRun reports whether the event is about the active run.
func thisRun(c *change) bool { return c.t.Run != nil && c.t.Run.ID == c.e.Run }

func stoppingRun(c *change) bool { return c.t.Run.State == state.RunStopping || c.t.Ended() }

func checkRun(c *change) bool { return c.t.Run.Kind == state.RunCheck }

func asks(c *change) bool {
	return c.e.Result.Outcome == "question" || c.e.Result.Outcome == "blocked"
}

func reports(c *change) bool {
	switch state.Outcome(c.e.Result.Outcome) {
	case state.OutcomeReport, state.OutcomeAlreadyFixed, state.OutcomeNotReproducible:
		return true
	}
	return false
}

// overtaken reports whether a plan would be outdated as soon as it is posted. After three rounds it is posted all the
// same, so that people who keep commenting see something.
func overtaken(c *change) bool {
	return len(c.untaken()) > 0 && c.t.Run.Attempt < 3 && !tooMany(c)
}

// thisWork reports whether the event is about the changeset that is being published.
func thisWork(c *change) bool {
	return c.t.Work != nil && (c.e.Work == nil || c.e.Work.Run == c.t.Work.Run)
}

func nothingNew(c *change) bool { return c.e.Work == nil || c.e.Work.Paths == 0 }

// wantsChecks reports whether the repository's commands must run on this changeset. They have already run if a rebase
// or a gate caused it to be collected again with the same tree.
func wantsChecks(c *change) bool {
	if len(c.t.Settings.Check) == 0 {
		return false
	}
	return c.t.Work == nil || c.t.Work.LocalTree != c.e.Work.LocalTree || !checkedTree(c)
}

// checkedTree reports whether the last run checked the current work.
func checkedTree(c *change) bool {
	return len(c.t.Runs) > 0 && c.t.Runs[len(c.t.Runs)-1].Kind == state.RunCheck
}

// maxRebases is the number of rebases of one changeset before people are asked or a delay begins.
const maxRebases = 3

func canRebase(c *change) bool { return c.t.Work != nil && c.t.Work.Rebases < maxRebases }

func freshFeedback(c *change) bool {
	for _, f := range c.e.Feedback {
		if !slices.Contains(c.t.Seen, f.ID) {
			return true
		}
	}
	return len(c.untaken()) > 0
}

// sameNewest reports whether the reminder is about the newest revision.
func sameNewest(c *change) bool {
	p := c.t.NewestPlan()
	return p != nil && p.Hash == c.e.Due.Plan
}

// lifeJob reports whether a job's failure stops the task: only if the task waits for the job. Jobs that people have
// made obsolete may fail.
func lifeJob(c *change) bool {
	job, post := c.e.Failure.Job, c.e.Post
	if c.t.Phase.AwaitsApproval() { // a plan that cannot be posted cannot be approved
		return job == state.JobPost && post != nil && post.Kind == state.PostPlan && post.Hash == c.newestHash()
	}
	return job == c.t.Step
}

// approvable reports whether a checked approval counts now.
func approvable(c *change) bool { return whyNot(c) == "" }

// whyNot returns the reason why a checked approval does not count, or "".
func whyNot(c *change) string {
	p, k := c.t.NewestPlan(), c.e.Candidate
	switch {
	case !c.t.Phase.AwaitsApproval() || p == nil:
		if c.t.Phase == state.PhasePreliminaryPlanning || c.t.Phase == state.PhasePlanning || changing(c) {
			return state.NotOvertaken
		}
		return state.NotNoneOpen
	case k.Hash != p.Hash:
		return state.NotSuperseded
	case p.Stale != "":
		return p.Stale
	case !p.Open():
		return state.NotSuperseded
	case p.Kind != state.PlanPublish && (c.t.Waiting != nil && c.t.Waiting.Kind == state.WaitEdit || p.IssueHash != c.t.Frozen.Hash):
		return state.NotIssueChanged
	case len(c.untaken()) > 0:
		return state.NotOvertaken
	case k.Choice > len(p.Approaches):
		return state.NotChoice
	}
	return ""
}
