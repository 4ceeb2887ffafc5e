package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// collectWork enqueues reading the changeset of a successful run.
func collectWork(c *change) {
	storeAnswers(c)
	closeRun(c)
	c.enqueueStep(state.JobCollect)
}

// storeAnswers stores the agent's answers to feedback until they are posted.
func storeAnswers(c *change) {
	w := &state.Work{Run: c.t.Run.ID, Summary: c.result.Summary, Title: c.result.Title, Text: c.result.Text, Answers: c.result.Threads}
	if old := c.t.Work; old != nil { // an earlier attempt of the same round
		w.Rebases = old.Rebases
		for _, a := range old.Answers {
			if !slices.ContainsFunc(w.Answers, func(b state.ThreadAnswer) bool { return a.ID == b.ID }) {
				w.Answers = append(w.Answers, a)
			}
		}
	}
	c.t.Work = w
}

// storeWork stores the collected changeset with the answers.
func (c *change) storeWork() {
	n := *c.e.Work()
	if old := c.t.Work; old != nil {
		n.Run, n.Answers, n.Summary, n.Title, n.Text, n.Rebases = old.Run, old.Answers, old.Summary, old.Title, old.Text, old.Rebases
	}
	c.t.Work = &n
	if n.Base != "" {
		c.t.Branch.Root = n.Base
	}
}

// isBehind reports whether the branch has a push that the collected work is not based on.
func isBehind(c *change) bool {
	w, head := c.e.Work(), c.t.Branch.Head
	return w != nil && w.Base != "" && head != "" && w.Base != head
}

// rebaseFirst rebases collected work onto a push during the run.
func rebaseFirst(c *change) {
	c.storeWork()
	if mayRebase(c) {
		rebase(c, c.t.Branch.Head)
		return
	}
	rebaseLater(c, c.t.Branch.Head)
}

// storeAndPublish publishes the changeset, or shows it first.
func storeAndPublish(c *change) {
	c.storeWork()
	publishOrShow(c)
}

// storeAndCheck runs the repository's commands on the changeset's tree.
func storeAndCheck(c *change) {
	c.storeWork()
	c.launchRun(state.RunCheck)
	c.t.Run.Attempt = checkRounds(c) + 1
}

// checkRounds returns the number of check runs since the last agent run that was not a repair of failed checks.
func checkRounds(c *change) int {
	n := 0
	for i := len(c.t.Runs) - 1; i >= 0; i-- {
		r := c.t.Runs[i]
		if r.Kind == state.RunCheck {
			n++
		} else if r.Repeat != repeatChecks {
			break
		}
	}
	return n
}

// repeatChecks marks a run that was launched because checks failed.
const repeatChecks = "checks failed"

// applyChecks continues after the repository's commands.
func applyChecks(c *change) {
	res := *c.result
	rounds := c.t.Run.Attempt
	closeRun(c)
	c.t.Work.Checks = res.Checks
	failed := len(state.SummarizeChecks(res.Checks).Failed) > 0
	if !failed || rounds > c.t.Settings.Limits.Checks || reachedRunLimit(c) {
		if failed {
			c.t.Work.Notes = append(c.t.Work.Notes, fmt.Sprintf("the checks still fail after %d attempts", rounds))
		}
		publishOrShow(c)
		return
	}
	for _, r := range res.Checks {
		if r.Code != 0 || r.TimedOut {
			how := fmt.Sprintf("failed with exit code %d", r.Code)
			if r.Gate {
				how = "failed"
			}
			c.feedback(state.Feedback{ID: fmt.Sprintf("check:%s:%s", c.t.Work.LocalHead, r.Name), Kind: state.FeedbackChecks, At: c.e.Now,
				Body: fmt.Sprintf("`%s` %s:\n%s", r.Command, how, r.Tail)})
		}
	}
	c.launchRun(runOfPhase(c.t.Phase))
	c.t.Run.Repeat, c.t.Run.Attempt = repeatChecks, 1
}

// enqueueMove stores the published IDs and enqueues moving the branch.
func enqueueMove(c *change) {
	w := c.e.Work()
	c.t.Work.Head, c.t.Work.Tree, c.t.Work.IDs, c.t.Work.Digest, c.t.Work.Published = w.Head, w.Tree, w.IDs, w.Digest, w.Published
	c.t.BeginPublication(c.e.Now, c.p.Restored)
	c.enqueueStep(state.JobMove)
}

// storeHead stores the branch's new head, and states what was published.
func storeHead(c *change) {
	w := c.t.Work
	c.t.Branch.Head, c.t.Branch.Tree, c.t.Branch.VMHead, c.t.Branch.Root = w.Head, w.Tree, w.Head, w.Head
	if c.t.PR != nil {
		c.t.PR.PreventMerge = false
	}
	c.t.AddPublication(c.e.Now, c.p.Restored)
	c.postProvenance()
}

// storeUpdate stores an update of the branch by GitHub, and states it.
func storeUpdate(c *change) {
	p := of[event.BaseRead](c).Published
	if p == nil {
		return
	}
	stored := *p
	stored.At = c.e.Now
	if c.t.AddUpdate(stored, c.p.Restored) {
		c.postProvenance()
	}
}

// rebase moves the VM's commits onto commits that somebody pushed.
func rebase(c *change, head string) {
	c.t.Work.Rebases++
	c.t.Branch.Head = head
	c.postUnconfirmed()
	c.enqueueStepWith(state.JobRebase, state.JobArgs{Onto: head})
}

// rebaseLater waits until people have stopped pushing.
func rebaseLater(c *change, head string) {
	c.t.Work.Rebases = 0
	c.t.Branch.Head = head
	c.postUnconfirmed()
	c.t.Step = state.JobRebase
	c.interrupt("people keep pushing to the branch", c.e.Now.Add(c.p.Backoff))
}

// askToResolve asks the agent to resolve conflicts of a rebase.
func askToResolve(c *change) {
	failed := of[event.Conflict](c)
	c.t.Branch.Head = failed.Head
	c.feedback(state.Feedback{ID: "conflict:" + failed.Head, Kind: state.FeedbackConflict, At: c.e.Now, Items: failed.Paths, Head: failed.Head,
		Body: "Somebody pushed to the branch, and your changes conflict with the new commits. Rebase onto " + failed.Head + " and resolve the conflicts in these paths; keep that person's changes."})
	if c.t.Work != nil && c.t.Work.Rebases >= maxRebases {
		c.t.Work.Rebases, c.t.Step = 0, state.StepRun
		c.askQuestion(state.Question{Kind: state.AskAgent, Text: "Somebody pushed to the branch, and the agent failed several times to rebase its commits onto theirs. The conflicts are in " +
			strings.Join(failed.Paths, ", ") + ". What should be done?"})
		return
	}
	c.launchRun(runOfPhase(c.t.Phase))
}

// waitForReview waits for people.
func waitForReview(c *change) {
	storePR(c)
	if c.t.Work != nil {
		c.removeAnsweredFeedback(c.t.Work.Run)
	}
	c.t.Work = nil
	c.enterPhase(state.PhasePROpen, fmt.Sprintf("pull request #%d is open", c.t.PR.Number))
	c.enqueuePost(fmt.Sprintf("pr-%d", c.t.PR.Number), state.Post{Kind: state.PostPROpened, By: c.personToNotify()})
	c.gatherMissed(c.e.Searched()) // then it existed before errand knew of it, so somebody may have reviewed it
}

// gatherMissed gathers the next round if feedback arrived meanwhile, or may have.
func (c *change) gatherMissed(reviewed bool) {
	if len(c.t.PendingFeedback()) > 0 || c.t.PR.Unread || reviewed {
		c.t.PR.Unread = false
		c.enqueueGather(c.e.Now.Add(c.p.Gather))
	}
}

// enqueueGather enqueues reading the review threads for one round.
func (c *change) enqueueGather(at time.Time) {
	j := c.job(state.JobGather, state.LaneWork, "gather")
	j.NotBefore = at
	c.enqueue(j)
}

// gatherReview gathers a review; a bare approval also sets ready to merge. A remark such as "LGTM", or one to somebody else, is no
// feedback unless the review requests changes.
func gatherReview(c *change) {
	v := of[event.Reviewed](c).Review
	c.t.PR.ReviewedAt = c.e.Now
	if v.State == state.ReviewApproved && !v.Machine {
		c.t.PR.MergeTried, c.t.PR.MergeWaits = "", ""
		c.t.PR.Ready, c.t.PR.ReadyBy = true, c.e.By.Login
	}
	if v.State == state.ReviewChangesRequested {
		c.t.PR.Ready, c.t.PR.ReadyBy = false, ""
	}
	if v.Body != "" && (v.Remark == "" || v.State == state.ReviewChangesRequested) {
		c.feedback(state.Feedback{ID: fmt.Sprintf("review:%d", v.ID), Kind: state.FeedbackReview, By: c.e.By, At: v.At, Body: v.Body, OnPR: true})
	}
	c.enqueueGather(c.e.Now.Add(c.p.Gather))
}

// gatherComment gathers a comment that addresses errand.
func gatherComment(c *change) {
	keepComment(c)
	c.react(state.ReactionEyes)
	c.enqueueGather(c.e.Now.Add(c.p.Gather))
}

// keepFeedback stores gathered feedback.
func keepFeedback(c *change) {
	for _, f := range of[event.Gathered](c).Feedback {
		if !slices.Contains(c.t.SeenIDs, f.ID) {
			c.feedback(f)
		}
	}
}

// beginRound begins a review round.
func beginRound(c *change) {
	keepFeedback(c)
	if hasPersonsFeedback(c) {
		resetRepairs(c)
	}
	startRound(c, fmt.Sprintf("review round %d", nextRound(c)))
}

// submitReview enqueues submitting the round's review.
func submitReview(c *change) {
	e := of[event.ThreadsAnswered](c)
	c.t.Work.Review = e.Review
	c.enqueueStep(state.JobAnswer)
	scheduleAnswerDuplicateChecks(c, e.Uncertain)
}

// endRound ends a round, and gathers the next one if feedback arrived meanwhile.
func endRound(c *change) {
	if c.t.Work != nil {
		c.removeAnsweredFeedback(c.t.Work.Run)
	}
	c.t.Work = nil
	c.enterPhase(state.PhasePROpen, fmt.Sprintf("review round %d is answered", c.t.Round))
	if p := c.e.Post(); p != nil {
		c.enqueuePost(fmt.Sprintf("round-%d", c.t.Round), *p)
	}
	scheduleAnswerDuplicateChecks(c, of[event.ThreadsAnswered](c).Uncertain)
	c.gatherMissed(false)
}
