package machine

import (
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// of returns the event's payload of type P, or its zero value if the event is of another kind.
func of[P event.Payload](c *change) P { return event.Of[P](c.e) }

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

// isAuthorized reports whether the event's sender may direct errand.
func isAuthorized(c *change) bool { return c.e.Permission.CanWrite() }

// isVia returns a condition on the event's Via.
func isVia(name state.TriggerVia) func(*change) bool {
	return func(c *change) bool { return c.e.Via == name }
}

// isDue reports whether a delayed job of that kind reported.
func isDue(kind state.DueKind) func(*change) bool {
	return func(c *change) bool { return of[event.Due](c).For == kind }
}

// isClass returns a condition on the class of the ended run.
func isClass(name state.RunClass) func(*change) bool {
	return func(c *change) bool { return c.result.Class == name }
}

// isOnIssue reports whether a comment was written on the issue, not on the pull request.
func isOnIssue(c *change) bool { return c.e.Issue() != nil && !c.e.Comment().OnPR }

// isIssueClosed reports whether the issue of a comment is closed.
func isIssueClosed(c *change) bool { return c.e.Issue() != nil && c.e.Issue().Closed }

// isIssueText reports whether a comment is the issue's own text.
func isIssueText(c *change) bool { return c.e.Comment().InIssue }

func hasPR(c *change) bool { return c.t.PR != nil }

func isOnlyTick(c *change) bool {
	edit := of[event.CommentEdited](c)
	return edit.Ticked && edit.OnlyBoxes
}

// isStartingTrigger reports whether the withdrawn trigger is the one that started the task.
func isStartingTrigger(c *change) bool {
	return c.e.Via == "" || c.e.Via == c.t.Trigger.Via || c.t.Trigger.Via == event.ViaSweep
}

func isTextUnchanged(c *change) bool {
	return c.t.Frozen.Matches(c.e.Issue().Title, c.e.Issue().Body)
}

// isActiveRun reports whether the event is about the active run.
func isActiveRun(c *change) bool { return c.t.Run != nil && c.t.Run.ID == c.e.Run }

func isRunStopping(c *change) bool { return c.t.Run.State == state.RunStopping || c.t.Ended() }

func isCheckRun(c *change) bool { return c.t.Run.Kind == state.RunCheck }

func asksQuestion(c *change) bool {
	return c.result.Outcome == state.OutcomeQuestion || c.result.Outcome == state.OutcomeBlocked
}

func isReport(c *change) bool {
	switch c.result.Outcome {
	case state.OutcomeReport, state.OutcomeAlreadyFixed, state.OutcomeNotReproducible:
		return true
	}
	return false
}

// isPlanOutdated reports whether a plan would be outdated as soon as it is posted. After three rounds it is posted all the
// same, so that people who keep commenting see something.
func isPlanOutdated(c *change) bool {
	return len(c.t.PendingFeedback()) > 0 && c.t.Run.Attempt < 3 && !reachedRunLimit(c)
}

// isCurrentWork reports whether the event is about the changeset that is being published.
func isCurrentWork(c *change) bool {
	return c.t.Work != nil && (c.e.Work() == nil || c.e.Work().Run == c.t.Work.Run)
}

func isUnchanged(c *change) bool { return c.e.Work() == nil || c.e.Work().Paths == 0 }

// wantsChecks reports whether the repository's commands must run on this changeset. They have already run if a rebase
// or a gate caused it to be collected again with the same tree.
func wantsChecks(c *change) bool {
	if len(c.t.Settings.Check) == 0 {
		return false
	}
	return c.t.Work == nil || c.t.Work.LocalTree != c.e.Work().LocalTree || !hasCheckedWork(c)
}

// hasCheckedWork reports whether the last run checked the current work.
func hasCheckedWork(c *change) bool {
	return len(c.t.Runs) > 0 && c.t.Runs[len(c.t.Runs)-1].Kind == state.RunCheck
}

// maxRebases is the number of rebases of one changeset before people are asked or a delay begins.
const maxRebases = 3

func mayRebase(c *change) bool { return c.t.Work != nil && c.t.Work.Rebases < maxRebases }

func hasNewFeedback(c *change) bool {
	for _, f := range of[event.Gathered](c).Feedback {
		if !slices.Contains(c.t.SeenIDs, f.ID) {
			return true
		}
	}
	return len(c.t.PendingFeedback()) > 0
}

// isNewestPlan reports whether the reminder is about the newest revision.
func isNewestPlan(c *change) bool {
	p := c.t.NewestPlan()
	return p != nil && p.Hash == of[event.Due](c).Plan
}

// failsTask reports whether a job's failure stops the task: only if the task waits for the job. Jobs that people have
// made obsolete may fail.
func failsTask(c *change) bool {
	job, post := of[event.StepFailed](c).Failure.Job, c.e.Post()
	if c.t.Phase.AwaitsApproval() { // a plan that cannot be posted cannot be approved
		return job == state.JobPost && post != nil && post.Kind == state.PostPlan && post.Hash == c.newestHash()
	}
	return job == c.t.Step
}

// isApprovable reports whether a checked approval counts now.
func isApprovable(c *change) bool { return rejectionReason(c) == "" }

// rejectionReason returns the reason why a checked approval does not count, or "".
func rejectionReason(c *change) string {
	p, k := c.t.NewestPlan(), c.e.Candidate()
	switch {
	case !c.t.Phase.AwaitsApproval() || p == nil:
		if c.t.Phase == state.PhasePreliminaryPlanning || c.t.Phase == state.PhasePlanning || isRevisingChanges(c) {
			return state.RejectedChangeRequested
		}
		return state.RejectedNonePending
	case k.Hash != p.Hash:
		return state.RejectedSuperseded
	case p.Stale != "":
		return p.Stale
	case !p.Open():
		return state.RejectedSuperseded
	case p.Kind != state.PlanPublish && (c.t.Waiting != nil && c.t.Waiting.Kind == state.WaitEdit || p.IssueHash != c.t.Frozen.Hash):
		return state.RejectedIssueChanged
	case len(c.t.PendingFeedback()) > 0:
		return state.RejectedChangeRequested
	case k.Choice > len(p.Approaches):
		return state.RejectedUnknownChoice
	}
	return ""
}

// timeOfPersonsAction returns the time of the action that ends the task, or zero if it is not a person's action.
func timeOfPersonsAction(c *change) (at time.Time) {
	switch c.e.Kind() {
	case event.KindUntriggered, event.KindIssueClosed, event.KindCommented, event.KindPRClosed:
		if c.e.At.Before(c.e.Now) {
			at = c.e.At
		}
	}
	return at
}

// canRetry reports whether `retry` continues a canceled task.
func canRetry(c *change) bool {
	return !isOutdated(c) && (isAdoptable(c) || isOnIssue(c) && c.t.CanResume(c.e.Now))
}

// clockSkew is the maximum assumed difference between errand's clock and GitHub's.
const clockSkew = 2 * time.Minute

// operatorTrigger returns the time of the operator's trigger by GitHub's clock, with which later actions of people are compared: the latest change
// of the issue when it was read, if that was a moment ago.
func operatorTrigger(c *change) time.Time {
	at, earliest, latest := c.e.At, c.e.Now.Add(-clockSkew), c.e.Now.Add(clockSkew)
	switch {
	case at.Before(earliest):
		return earliest
	case at.After(latest):
		return latest
	}
	return at
}

// isOutdated reports whether an action that would restart an ended task was done before the end, or before the trigger of
// the ended life. Its webhook came late; the end is the later action.
func isOutdated(c *change) bool {
	end := c.t.EndedAt()
	if c.t.End == nil || c.t.End.Acted.IsZero() { // by errand's clock
		end = end.Add(-clockSkew)
	}
	if began := c.t.Trigger.At; began.After(end) {
		end = began
	}
	return !c.e.At.IsZero() && c.e.At.Before(end.Truncate(time.Second))
}

// predatesTask reports whether an action that would end the task was done before the trigger of this life, so that its
// webhook came late. A state that was read from GitHub is current, however old.
func predatesTask(c *change) bool {
	readFromGitHub := c.e.Kind() == event.KindIssueClosed && (c.e.Via == event.ViaStart || c.e.Via == event.ViaConfirmed)
	return !readFromGitHub && !c.e.At.IsZero() && c.e.At.Before(c.t.Trigger.At.Truncate(time.Second))
}

// predatesTrigger reports whether the removal of an assignment or a label was done before the trigger that counts.
func predatesTrigger(c *change) bool {
	return predatesTask(c) || !c.e.At.IsZero() && c.e.At.Before(c.t.Trigger.Again.Truncate(time.Second))
}

// needsVet reports whether the sender's permission must be read from GitHub first.
func needsVet(e event.Event, t *state.Task) bool {
	if e.Kind() == event.KindUntriggered && (t == nil || t.Ended()) {
		return e.Permission == "" // the trigger may still be waiting for its permission: this event queues behind it
	}
	if e.Permission != "" || !e.Kind().NeedsPermission() {
		return false
	}
	if e.Kind() == event.KindThumb && e.Candidate() != nil && t != nil && t.Phase.AwaitsApproval() {
		return false // the job that checks the approval reads it
	}
	if e.Kind() == event.KindCommentEdited && !event.Of[event.CommentEdited](e).Ticked {
		return false // any other edit makes the revision stale, whoever made it
	}
	mention := e.Kind() == event.KindCommented && e.Comment().Mention
	return e.Kind() == event.KindTriggered || mention || t != nil && !t.Ended()
}

// isMention reports whether a comment addresses errand.
func isMention(c *change) bool { return c.e.Comment().Mention }
