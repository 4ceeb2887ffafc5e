package machine

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// maxFinishReads is the maximum number of reads in a row of which GitHub did not know whether the pull request can be merged.
const maxFinishReads = 10

// MayFinish reports whether, as far as the task knows, nothing is missing for the next thing that errand does with the pull request: marking
// it ready for review, or merging it. The job reads from GitHub whether that is true; only GitHub knows what people have approved.
func MayFinish(t *state.Task, now time.Time) bool {
	if t == nil || t.PR == nil || t.PR.State != state.PROpen || t.Phase != state.PhasePROpen {
		return false
	}
	isGreen := t.PR.Checks == "success"
	isLate := !t.PR.LateAt.IsZero() && !now.Before(t.PR.LateAt) && t.PR.Checks != checksFailed
	switch isMarked := t.PR.MarkedReady || t.Settings.Draft != settings.DraftUntilGreen; {
	case !isMarked && t.PR.Draft && (isGreen || isLate):
		return true
	case !isMarked && !t.PR.Draft: // a person marked it ready, so a review is requested now
		return true
	}
	return t.IsMergedByErrand() && (isGreen && !t.PR.Unread || t.PR.MergeTried != "" && t.PR.MergeTried == t.Branch.Head)
}

// followFinish has the pull request marked ready or merged when the last thing that is missing may have come.
func followFinish(c *change) {
	if !isPRState(state.PROpen)(c) {
		return
	}
	old := c.before
	if c.t.Ended() {
		if c.t.PR.Queued && old != nil && !old.Ended() { // it is not to be merged after that
			enqueueFinish(c, c.e.Now, state.JobArgs{})
		}
		return
	}
	isNew := old == nil || old.PR == nil || old.PR.State != state.PROpen || old.Branch.Head != c.t.Branch.Head || old.Gen != c.t.Gen
	if isNew {
		c.t.PR.MergeWaits, c.t.PR.LateAt = "", time.Time{}
		if c.t.PR.ApproveAgain && old != nil && old.Branch.Head != c.t.Branch.Head {
			c.t.PR.ApproveAgain = false
			c.enqueuePost("approve-again-"+state.ShortHash(c.t.Branch.Head), state.Post{Kind: state.PostMerge, OnPR: true, Reason: state.MergeApproveAgain,
				By: approver(c), Items: []string{c.t.Branch.Head}})
		}
	}
	if isNew && c.t.AwaitsReady() {
		c.t.PR.LateAt = c.e.Now.Add(c.p.DraftWait)
		c.scheduleDue(state.DueDraft, c.t.Branch.Head, c.t.PR.LateAt)
	}
	begins := c.t.Phase == state.PhaseAddressingReview && old != nil && old.Phase == state.PhasePROpen
	readChecks := c.e.Kind() == event.KindChecksRead
	switch {
	case c.t.PR.Queued && (begins || readChecks): // it may have to leave the merge queue
		enqueueFinish(c, c.e.Now, state.JobArgs{})
	case !MayFinish(c.t, c.e.Now):
		c.t.PR.MergeWaits = ""
	case c.e.Kind() == event.KindReviewed: // whose comments are gathered first
		if isAuthorized(c) {
			enqueueFinish(c, c.e.Now.Add(c.p.Gather), state.JobArgs{})
		}
	case c.e.Kind() == event.KindPRChanged, readChecks && (c.t.AwaitsReady() || c.t.PR.MergeWaits != ""), isDraftLate(c), isNew, !MayFinish(old, c.e.Now):
		enqueueFinish(c, c.e.Now, state.JobArgs{})
	}
}

func enqueueFinish(c *change, at time.Time, args state.JobArgs) {
	j := c.job(state.JobFinish, state.LaneTalk, "finish") // it is not to wait for the start of a run
	j.NotBefore, j.Args = at, args
	c.enqueue(j)
}

// approver returns who approved the pull request, or else whom comments address.
func approver(c *change) state.Person {
	if login := c.t.PR.ReadyBy; login != "" {
		return state.Person{Login: login}
	}
	return c.personToNotify()
}

// storePRChange stores whether the pull request is a draft, if the event says so.
func storePRChange(c *change) {
	if draft := of[event.PRChanged](c).Draft; draft != nil {
		c.t.PR.Draft, c.t.PR.DraftAt = *draft, c.e.Now
	}
}

// isDraftLate reports whether a draft has waited long enough for checks of its head to start.
func isDraftLate(c *change) bool {
	return isDue(state.DueDraft)(c) && of[event.Due](c).Head == c.t.Branch.Head && c.t.AwaitsReady()
}

// storeFinish stores what was done to have the pull request reviewed or merged, and what is missing. GitHub reports a merge as it reports
// that of a person.
func storeFinish(c *change) {
	read, pr := of[event.PRFinished](c), c.t.PR
	if pr.MergeWaits = ""; !read.ReadAt.Before(pr.DraftAt) { // else somebody changed it after the read
		pr.Draft = read.Draft
	}
	isReviewed := read.ReadAt.Before(pr.ReviewedAt)                     // after the read: what people think of it may have changed
	if read.By.ID != 0 && read.Head == c.t.Branch.Head && !isReviewed { // also if the webhook was lost, or a round ended without a commit
		pr.Ready, pr.ReadyBy = true, read.By.Login
	}
	head := state.ShortHash(read.Head)
	post := func(key, reason, text string, items ...string) {
		if c.markOnce(key) {
			c.enqueuePost(key, state.Post{Kind: state.PostMerge, OnPR: true, Reason: reason, By: approver(c), Text: text, Items: items})
		}
	}
	if read.Dequeued || read.Unqueued {
		pr.Queued = false
	}
	if read.Dequeued {
		pr.MergeTried = ""
		post(fmt.Sprintf("taken-back-%s-%d", head, c.t.Round), state.MergeTakenBack, read.Waits)
	}
	switch read.Result {
	case event.FinishReady:
		pr.MarkedReady = true
		c.note = "the pull request is ready for review"
		if read.Late {
			post("ready-late-"+head, state.MergeReadyLate, "", read.Head)
		}
		if MayFinish(c.t, c.e.Now) {
			enqueueFinish(c, c.e.Now, state.JobArgs{})
		}
	case event.FinishMerged:
		c.note = fmt.Sprintf("errand merged the pull request, whose commit %s %s had approved", head, read.By.Login)
	case event.FinishQueued:
		pr.MergeTried, pr.Queued = read.Head, true
		pr.MergeWaits = "it is in GitHub's merge queue"
		if c.t.Phase != state.PhasePROpen { // a round has begun, or the task has ended, meanwhile
			enqueueFinish(c, c.e.Now, state.JobArgs{})
		}
	case event.FinishWaits:
		if c.t.IsMergedByErrand() || c.t.AwaitsReady() {
			pr.MergeWaits = read.Waits
		}
	case event.FinishRefused:
		if read.Draft {
			pr.MarkedReady = true
			post(fmt.Sprintf("not-ready-%d", pr.Number), state.MergeNotReady, read.Refusal)
			return
		}
		if isReviewed { // the approval that was missing may have come
			break
		}
		pr.MergeTried, pr.MergeWaits = read.Head, read.Waits
		post("merge-refused-"+head, state.MergeRefused, read.Refusal)
	case event.FinishUnknown:
		pr.MergeWaits = "GitHub has not found out yet whether it can be merged"
		if read.Reads < maxFinishReads {
			enqueueFinish(c, c.e.Now.Add(c.p.StatusGap/2), state.JobArgs{Reads: read.Reads + 1, Refused: read.Refused})
		}
	}
}

// askForApprovalAgain notes that GitHub adds commits of the base to what was approved, if errand is to merge that and nobody asked for them. When the
// new head is known, a comment asks for another approval.
func askForApprovalAgain(c *change) {
	if of[event.BaseRead](c).Request == (state.UpdateRequest{}) && c.t.IsMergedByErrand() && c.t.PR.Ready {
		c.t.PR.ApproveAgain = true
	}
}

// preventMerge says that errand is about to keep GitHub from merging the pull request by itself, and does it with the push.
func preventMerge(c *change) {
	pending, head := of[event.MergePending](c), state.ShortHash(c.t.Work.Head)
	c.t.PR.PreventMerge = true
	if pending.AutoMerge != "" {
		c.enqueuePost("auto-merge-"+head, state.Post{Kind: state.PostMerge, OnPR: true, Reason: state.MergeAutoDisabled, Items: []string{pending.AutoMerge}})
	}
	if pending.Queued {
		c.enqueuePost("dequeued-"+head, state.Post{Kind: state.PostMerge, OnPR: true, Reason: state.MergeDequeued})
	}
	c.enqueueStep(state.JobMove)
}
