package machine

import (
	"slices"

	"github.com/errand-bot/errand/state"
)

// all reports whether every condition holds.
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

// not turns a condition around.
func not(f func(*change) bool) func(*change) bool { return func(c *change) bool { return !f(c) } }

// allowed reports whether the event's sender may direct the bot.
func allowed(c *change) bool { return c.e.Permission.CanWrite() }

// via reports whether an event came about in some way.
func via(how string) func(*change) bool { return func(c *change) bool { return c.e.Via == how } }

// due reports whether a delayed job of that name reported.
func due(what string) func(*change) bool {
	return func(c *change) bool { return c.e.Detail == what }
}

// class reports how the ended run was judged.
func class(name string) func(*change) bool {
	return func(c *change) bool { return c.e.Result.Class == name }
}

// onIssue reports whether a comment stands on the issue and shows it.
func (c *change) onIssue() bool { return c.e.Issue != nil && !c.e.Comment.OnPR }

func (c *change) hasPR() bool { return c.t.PR != nil }

func (c *change) ticked() bool { return c.e.Ticked && c.e.OnlyBoxes }

// sameTrigger reports whether what was taken back is what started the task.
func (c *change) sameTrigger() bool {
	return c.e.Via == "" || c.e.Via == c.t.Trigger.Via || c.t.Trigger.Via == state.ViaSweep
}

func (c *change) textAsFrozen() bool {
	return state.FreezeHash(c.e.Issue.Title, c.e.Issue.Body) == c.t.Frozen.Hash
}

// thisRun reports whether the event is about the active run.
func (c *change) thisRun() bool { return c.t.Run != nil && c.t.Run.ID == c.e.Run }

func (c *change) stoppingRun() bool { return c.t.Run.State == state.RunStopping || c.t.Ended() }

func (c *change) checkRun() bool { return c.t.Run.Kind == state.RunCheck }

func (c *change) asks() bool {
	return c.e.Result.Outcome == "question" || c.e.Result.Outcome == "blocked"
}

func (c *change) reports() bool {
	switch state.Outcome(c.e.Result.Outcome) {
	case state.OutcomeReport, state.OutcomeAlreadyFixed, state.OutcomeNotReproducible:
		return true
	}
	return false
}

// overtaken reports whether a plan would be outdated the moment it is posted. It is posted all the
// same after three rounds, so that people who keep talking see something.
func (c *change) overtaken() bool {
	return len(c.untaken()) > 0 && c.t.Run.Attempt < 3 && !c.tooMany()
}

// thisWork reports whether the event is about the changeset that is being published.
func (c *change) thisWork() bool {
	return c.t.Work != nil && (c.e.Work == nil || c.e.Work.Run == c.t.Work.Run)
}

func (c *change) nothingNew() bool { return c.e.Work == nil || c.e.Work.Paths == 0 }

// wantsChecks reports whether the repository's commands have to run on this changeset. They ran
// already when a rebase or a gate made it be collected again with the same tree.
func (c *change) wantsChecks() bool {
	if len(c.t.Settings.Check) == 0 {
		return false
	}
	return c.t.Work == nil || c.t.Work.LocalTree != c.e.Work.LocalTree || !c.checkedTree()
}

// checkedTree reports whether the last run was a check of the present work.
func (c *change) checkedTree() bool {
	return len(c.t.Runs) > 0 && c.t.Runs[len(c.t.Runs)-1].Kind == state.RunCheck
}

// maxRebases bounds the rebases of one changeset before people are asked or some time passes.
const maxRebases = 3

func (c *change) canRebase() bool { return c.t.Work != nil && c.t.Work.Rebases < maxRebases }

func (c *change) freshFeedback() bool {
	for _, f := range c.e.Feedback {
		if !slices.Contains(c.t.Seen, f.ID) {
			return true
		}
	}
	return len(c.untaken()) > 0
}

// sameNewest reports whether the newest revision is still the one that the reminder is about.
func (c *change) sameNewest() bool {
	p := c.t.NewestPlan()
	return p != nil && p.Hash == c.e.Hash
}

// lifeJob reports whether a job's failure stops the task: only what the life waits for does. What
// people have meanwhile turned away from may fail.
func (c *change) lifeJob() bool {
	job, post := c.e.Failure.Job, c.e.Post
	if c.t.Phase.AwaitsApproval() { // a plan that cannot be posted cannot be approved
		return job == state.JobPost && post != nil && post.Kind == state.PostPlan && post.Hash == c.newestHash()
	}
	return job == c.t.Step
}

// approvable reports whether a checked approval counts now.
func (c *change) approvable() bool { return c.whyNot() == "" }

// whyNot says why a checked approval does not count, or nothing.
func (c *change) whyNot() string {
	p, k := c.t.NewestPlan(), c.e.Candidate
	switch {
	case !c.t.Phase.AwaitsApproval() || p == nil:
		if c.t.Phase == state.PhasePreliminaryPlanning || c.t.Phase == state.PhasePlanning || c.changing() {
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
