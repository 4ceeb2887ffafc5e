package machine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// publishOrShow publishes the collected work or, if people must approve it first, enqueues its diff.
func publishOrShow(c *change) {
	if c.t.Settings.Publish == settings.PublishAfterApproval && c.t.Work.Approved == "" {
		c.enqueueStep(state.JobShow)
		return
	}
	c.enqueueStep(state.JobCommit)
}

// isCurrentDiff reports whether a diff is that of the changeset to be published.
func isCurrentDiff(c *change) bool {
	return c.t.Work != nil && of[event.DiffReady](c).Plan.Publish != nil &&
		of[event.DiffReady](c).Plan.Publish.Ref == c.t.Work.Ref && c.t.Step == state.JobShow
}

// createPublishRevision creates a revision of the changes and waits for its approval. It removes the text of older ones, which is large
// and remains in their comments only.
func createPublishRevision(c *change) {
	p, w := of[event.DiffReady](c).Plan, c.t.Work
	p.Kind, p.Revision, p.Summary, p.Run, p.Made, p.BaseSHA = state.PlanPublish, len(c.revisions(state.PlanPublish))+1, w.Summary, w.Run, c.e.Now, w.Base
	assignHash(c, &p)
	supersede(c, state.PlanPublish)
	for _, old := range c.revisions(state.PlanPublish) {
		old.Text, old.Publish.Stat = "", nil
	}
	c.t.Plans = append(c.t.Plans, p)
	c.enterPhase(state.PhaseAwaitingPublishApproval, fmt.Sprintf("changes to publish, revision %d (%s)", p.Revision, p.Short()))
	c.postPlan()
}

// publishApproved publishes the approved changeset.
func publishApproved(c *change, a state.Approval) {
	c.t.NewestPlan().Publish.Approved = &a
	c.t.Work.Approved = a.Hash
	c.enterPhase(c.buildingPhase(), "@"+a.By.Login+" approved the changes "+state.ShortHash(a.Hash))
	c.enqueueStep(state.JobCommit)
}

// isPublishApprovalWithdrawn reports whether the approval of the changes that are about to be published was withdrawn.
func isPublishApprovalWithdrawn(c *change) bool {
	k := c.e.Candidate()
	return isWithdrawn(c) && c.t.Step == state.JobCommit && c.t.Work != nil && k.Kind == state.PlanPublish && c.t.Work.Approved == k.Hash
}

// revokePublishApproval returns the task to waiting: the approval was withdrawn, or its author lost the permission.
func revokePublishApproval(c *change) {
	a := c.e.Candidate()
	p := c.planByHash(a.Hash)
	p.Publish.Approved, c.t.Work.Approved = nil, ""
	clearBox(c, p, &a.Approval)
	c.enterPhase(state.PhaseAwaitingPublishApproval, "the approval of @"+a.By.Login+" is no longer valid")
	if key := fmt.Sprintf("no-%s-%s-%d", state.ShortHash(a.Hash), of[event.ApprovalRejected](c).Rejection, a.By.ID); c.markOnce(key) {
		c.enqueuePost(key, state.Post{Kind: state.PostNotCounted, Reason: of[event.ApprovalRejected](c).Rejection, By: a.By, Hash: a.Hash})
	}
}

// reviseForCondition treats an approval with a condition as a change request.
func reviseForCondition(c *change, k state.Candidate) {
	c.feedback(state.Feedback{ID: commentID(k.Comment), Kind: state.FeedbackComment, By: k.By, At: k.Given, Body: k.With})
	c.react(state.ReactionEyes)
	c.startRevision("@" + k.By.Login + " approved with a condition")
}

// reviseForReview passes a review of the shown changes to the agent.
func reviseForReview(c *change) {
	keepFeedback(c)
	c.startRevision("a review asked for a change")
}

// showAgain creates a new revision of changes whose comment was edited or deleted.
func showAgain(c *change) {
	c.react(state.ReactionEyes)
	c.enterPhase(c.buildingPhase(), c.e.By.Handle()+" asked to see the changes again")
	c.enqueueStep(state.JobShow)
}

// isOwnRound reports whether the shown changes are those of a round that errand began by itself, and that does nothing else.
func isOwnRound(c *change) bool {
	asks := func(f state.Feedback) bool {
		return f.TakenBy != "" && f.By.ID != 0 && f.Kind != state.FeedbackCondition
	}
	return isPRState(state.PROpen)(c) && c.t.Phase == state.PhaseAwaitingPublishApproval &&
		slices.ContainsFunc(c.t.Feedback, isOwnFinding) && !slices.ContainsFunc(c.t.Feedback, asks)
}

// endExpiredRound ends a round whose changes nobody approved. Nobody asked for it, so the pull request stays as it is. errand does not try again
// before a person acts; if one has since the round began, it has counted from zero. The branch is read, because somebody may have pushed.
func endExpiredRound(c *change) {
	reason := fmt.Sprintf("nobody approved the changes of round %d in time", c.t.Round)
	post := state.Post{Kind: state.PostRoundExpired, OnPR: true, Hash: c.newestHash(), Reason: state.RoundConflict, By: c.personToNotify()}
	for _, f := range slices.Clone(c.t.Feedback) {
		switch {
		case f.Kind == state.FeedbackCI:
			r := repairs(c)
			post.Reason, r.HandedOver = state.RoundChecks, r.HandedOver || r.Runs > 0
		case f.Base != "" && c.t.PR.Updates > 0:
			c.t.PR.Updates = state.MaxUpdates + 1
		}
		if f.TakenBy != "" {
			c.removeAnsweredFeedback(f.TakenBy)
		}
	}
	saveUnpublished(c, reason)
	supersede(c, state.PlanPublish)
	c.t.Work, c.dropWork, c.t.Branch.BaseMoved = nil, true, true
	c.enterPhase(state.PhasePROpen, reason)
	c.enqueuePost("expired-"+state.ShortHash(post.Hash), post)
	c.enqueueGather(c.e.Now.Add(c.p.Gather))
}

// isRevisingChanges reports whether the agent is changing shown changes before their publication.
func isRevisingChanges(c *change) bool {
	p := c.t.NewestPlan()
	return p != nil && slices.Contains(building, c.t.Phase) && p.Kind == state.PlanPublish && p.Superseded
}

// buildingPhase returns the phase of the current work.
func (c *change) buildingPhase() state.Phase {
	if hasPR(c) {
		return state.PhaseAddressingReview
	}
	return state.PhaseImplementing
}

// newestOfPlans returns the newest revision that is a plan, or nil.
func newestOfPlans(c *change) *state.Plan {
	for i := len(c.t.Plans) - 1; i >= 0; i-- {
		if c.t.Plans[i].Kind != state.PlanPublish {
			return &c.t.Plans[i]
		}
	}
	return nil
}

// saveUnpublished stores a changeset that was read from the VM but not published when the task ends: it waits for
// approval, is being checked, or could not be published.
func saveUnpublished(c *change, reason string) {
	w := c.t.Work
	if w == nil || w.Ref == "" || w.Head != "" && w.Head == c.t.Branch.Head {
		return
	}
	c.t.Saved = append(c.t.Saved, state.SavedWork{Run: w.Run, Ref: w.Ref, At: c.e.Now, Reason: reason})
}

// continueFoundPR continues with a pull request that errand opened before its store was restored from an older backup.
func continueFoundPR(c *change) {
	found := of[event.PRFound](c)
	reason := fmt.Sprintf("pull request #%d has the work already", found.PR.Number)
	saveUnpublished(c, reason)
	c.dropRun(reason)
	c.t.PR, c.t.Work, c.dropWork = &found.PR, nil, true
	c.t.Branch.Head, c.t.Branch.Tree = found.Head, ""
	c.enterPhase(state.PhasePROpen, reason)
	c.enqueuePost(fmt.Sprintf("pr-%d", found.PR.Number), state.Post{Kind: state.PostPROpened, By: c.personToNotify()})
	c.enqueueGather(c.e.Now.Add(c.p.Gather))
}

// isLaunching reports whether the event is about the task's run, and that is about to be launched.
func isLaunching(c *change) bool {
	return c.t.Run != nil && c.t.Run.State == state.RunLaunching && c.t.Run.ID == c.e.Run
}

// isRebasing reports whether the event is about work that is to be rebased onto other commits.
func isRebasing(c *change) bool {
	return c.t.Work != nil && c.t.Work.Run == c.e.Run && c.t.Step == state.JobRebase
}

// continueUnanswered removes the feedback that errand had answered before its store was restored from an older backup. The run is launched
// for the rest; if nothing is left, the round is over, and unpublished work of it is saved. Work that would be rebased is saved as well, and
// the next round addresses the rest: the branch has that work already, in the form of the errand that was lost.
func continueUnanswered(c *change) {
	answered, left := of[event.AnswersFound](c).IDs, false
	c.t.Feedback = slices.DeleteFunc(c.t.Feedback, func(f state.Feedback) bool {
		if !slices.Contains(answered, f.ID) {
			left = left || f.Kind != state.FeedbackCondition && f.Kind != state.FeedbackConflict
			return false
		}
		c.t.SeenIDs = appendBounded(c.t.SeenIDs, f.ID, maxTrustedSeenIDs)
		moveToDiscussion(c, f)
		return true
	})
	if left && isLaunching(c) {
		c.enqueueStep(state.JobLaunch)
		return
	}
	if isRebasing(c) {
		for i := range c.t.Feedback {
			if f := &c.t.Feedback[i]; f.TakenBy == c.t.Work.Run && f.Kind != state.FeedbackCondition {
				f.TakenBy = ""
			}
		}
		c.t.Branch.Tree = ""
	}
	c.t.Feedback = slices.DeleteFunc(c.t.Feedback, func(f state.Feedback) bool { return f.Kind == state.FeedbackConflict }) // of work that is dropped
	reason := fmt.Sprintf("review round %d was answered before errand was restored from a backup", c.t.Round)
	saveUnpublished(c, reason)
	c.dropRun(reason)
	c.t.Work, c.dropWork = nil, true
	c.enterPhase(state.PhasePROpen, reason)
	c.gatherMissed(false)
}

// unreadRun returns the task's last run if its work exists only on the VM: it just ended, was interrupted, or asked a
// question.
func unreadRun(c *change) *state.Run {
	r := unpublishedRun(c)
	if r == nil || c.t.Work != nil && c.t.Work.Ref != "" ||
		slices.ContainsFunc(c.t.Saved, func(s state.SavedWork) bool { return s.Run == r.ID }) {
		return nil
	}
	return r
}

// unpublishedRun returns the task's last run if the task's VM has its work, and the branch does not.
func unpublishedRun(c *change) *state.Run {
	phase := c.t.Phase
	if slices.Contains(resumable, phase) {
		phase = c.t.Resume
	}
	if phase == state.PhasePRClosed || phase == state.PhasePROpen && hasPR(c) && c.t.PR.InRound { // of the round that the closing stopped
		phase = state.PhaseAddressingReview
	}
	if phase == state.PhaseAwaitingPublishApproval {
		phase = c.buildingPhase()
	}
	if w := c.t.Work; c.t.VM == nil || !slices.Contains(building, phase) || w != nil && w.Head != "" && w.Head == c.t.Branch.Head {
		return nil
	}
	for i := len(c.t.Runs) - 1; i >= 0; i-- {
		r := &c.t.Runs[i]
		if r.Kind == state.RunCheck || r.Started.IsZero() {
			continue
		}
		if r.Kind != runOfPhase(phase) || r.Round != c.t.Round || !c.t.VM.Contains(r.VM) {
			return nil
		}
		return r
	}
	return nil
}

// approvalSubject names the object that waits for an approval.
func approvalSubject(c *change) string {
	if c.t.Phase == state.PhaseAwaitingPublishApproval {
		return "the changes"
	}
	return "the plan"
}

// storeGateRefusals stores the push gate's refusals for the summary.
func storeGateRefusals(c *change) {
	n := min(len(of[event.Collected](c).Refusals), maxGateRules)
	g := state.GateRefusal{At: c.e.Now, Run: c.e.Run, Refusals: slices.Clone(of[event.Collected](c).Refusals[:n]),
		More: len(of[event.Collected](c).Refusals) - n}
	for i := range g.Refusals {
		r := &g.Refusals[i]
		r.Path, r.Detail, r.Remedy = state.Truncate(r.Path), state.Truncate(r.Detail), "" // the comment has the full text
	}
	if c.t.Work != nil {
		g.Run = c.t.Work.Run
	}
	c.t.GateRefusals = append(c.t.GateRefusals, g)
	c.t.GateRefusals = c.t.GateRefusals[max(0, len(c.t.GateRefusals)-maxGateRefusals):]
}

const (
	maxGateRefusals = 10 // refused changesets, the newest
	maxGateRules    = 5  // broken rules of each
)

// postRefusals posts the push gate's refusals and waits for people.
func postRefusals(c *change) {
	phase := c.t.Phase
	c.storeWork()
	storeGateRefusals(c)
	c.enterPhase(state.PhaseAwaitingAnswer, "the push gate refused the changeset")
	c.t.Resume, c.t.Step = phase, state.StepRun
	c.t.Question = &state.Question{Kind: state.AskRefused, AskedAt: c.e.Now, Text: "the push gate refused the changeset"}
	for _, r := range of[event.Collected](c).Refusals { // an unreadable changeset has no head
		c.feedback(state.Feedback{ID: fmt.Sprintf("refusal:%s:%s:%s", cmp.Or(c.t.Work.LocalHead, c.t.Work.Run), r.Rule, r.Path),
			Kind: state.FeedbackRefusal, At: c.e.Now,
			Path: r.Path, Body: r.Rule + ": " + r.Detail + ". Remedy: " + r.Remedy + "."})
	}
	c.enqueuePost(fmt.Sprintf("refused-%d", c.t.Version+1), state.Post{Kind: state.PostRefused,
		Refusals: of[event.Collected](c).Refusals, By: c.personToNotify()})
}

// askAboutNoChanges posts that the agent changed nothing, and asks how to continue.
func askAboutNoChanges(c *change) {
	phase := c.t.Phase
	text := ""
	if c.t.Work != nil {
		text = c.t.Work.Text
	}
	c.t.Work = nil
	c.enterPhase(state.PhaseAwaitingAnswer, "the agent changed nothing")
	c.t.Resume, c.t.Step = phase, state.StepRun
	c.t.Question = &state.Question{Kind: state.AskNoChange, AskedAt: c.e.Now, Text: "the agent changed nothing"}
	c.enqueuePost(fmt.Sprintf("no-changes-%d", c.t.Version+1), state.Post{Kind: state.PostNoChanges, Text: text, By: c.personToNotify()})
}

// dropRefusals forgets the push gate's refusals that no run has taken: the changeset is judged again.
func (c *change) dropRefusals() {
	c.t.Feedback = slices.DeleteFunc(c.t.Feedback, func(f state.Feedback) bool { return f.Kind == state.FeedbackRefusal && f.TakenBy == "" })
}
