package machine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// isPRClosed reports whether the task waits because its pull request is closed, perhaps after a failed attempt to reopen it.
func isPRClosed(c *change) bool {
	stopped := c.t.Phase == state.PhaseFailed || c.t.Phase == state.PhaseInterrupted
	return hasPR(c) && (c.t.Phase == state.PhasePRClosed || stopped && c.t.Resume == state.PhasePRClosed)
}

// isCloseOutdated reports whether the pull request was reopened after it was closed: the webhook about the closing came late.
func isCloseOutdated(c *change) bool {
	return !c.e.At.IsZero() && c.e.At.Before(c.t.PR.ReopenedAt.Truncate(time.Second))
}

// isReopenOutdated reports whether the pull request was closed after it was reopened: the webhook about the reopening came
// late.
func isReopenOutdated(c *change) bool {
	return !c.e.At.IsZero() && c.e.At.Before(c.t.PR.ClosedAt.Truncate(time.Second))
}

// isTaskPR reports whether the event is about the task's present pull request.
func isTaskPR(c *change) bool {
	n := of[event.PRReopened](c).Number
	return hasPR(c) && (n == 0 || n == c.t.PR.Number)
}

// eventTime returns the time of the event by GitHub's clock, or by errand's if GitHub did not report it.
func eventTime(c *change) time.Time {
	if c.e.At.IsZero() {
		return c.e.Now
	}
	return c.e.At
}

// park stops the work on a pull request that was closed without a merge, and keeps the result for Policy.KeepAsleep.
// A pull request that is reopened soon, as people do to start checks again, keeps its VM and gets no comment.
func park(c *change) {
	reason := fmt.Sprintf("pull request #%d was closed without a merge%s", c.t.PR.Number, byPerson(c.e.By))
	saveUnpublished(c, reason)
	noteRound(c)
	unread := unreadRun(c)
	c.dropRun(reason)
	c.dropWork = true
	if unread != nil {
		saveEndedRun(c, unread, reason)
	}
	returnFeedback(c.t)
	c.t.PR.State, c.t.PR.ClosedAt, c.t.PR.KeptUntil = state.PRClosed, eventTime(c), c.e.Now.Add(c.p.KeepAsleep)
	c.t.PR.Ready, c.t.PR.ReadyBy = false, ""
	c.enterPhase(state.PhasePRClosed, reason)
	c.t.Resume = ""
	c.scheduleDue(state.DuePRClosed, "", c.e.Now.Add(c.p.Gather))
	c.scheduleDue(state.DueParked, "", c.t.PR.KeptUntil)
}

// returnFeedback makes the feedback of an unfinished round that of the next run. Review threads are read again, because some may
// have been answered.
func returnFeedback(t *state.Task) {
	t.Feedback = slices.DeleteFunc(t.Feedback, func(f state.Feedback) bool { return f.Kind == state.FeedbackThread })
	for i := range t.Feedback {
		if f := &t.Feedback[i]; f.Kind != "condition" {
			f.TakenBy = ""
		}
	}
}

// noteRound notes whether a review round is under way whose work is not published. The next round then continues it.
func noteRound(c *change) {
	phase := c.t.Phase
	if slices.Contains(resumable, phase) {
		phase = c.t.Resume
	}
	if w := c.t.Work; w != nil && w.Head != "" && w.Head == c.t.Branch.Head {
		return // only the answers are missing
	}
	if hasPR(c) && (slices.Contains(building, phase) || phase == state.PhaseAwaitingPublishApproval) {
		c.t.PR.InRound = true
	}
}

// storeLateHead stores the head of a branch that was moved after the pull request was closed: the round's work is published.
func storeLateHead(c *change) {
	storeHead(c)
	c.t.PR.InRound = false
}

// announceClosed suspends the VM of a closed pull request, and posts how to continue.
func announceClosed(c *change) {
	if at := c.t.Since.Add(c.p.Gather); c.e.Now.Before(at) { // it was reopened and closed again
		c.scheduleDue(state.DuePRClosed, "", at)
		return
	}
	if c.t.VM != nil {
		enqueueSuspend(c)
	}
	if c.t.Step == "" {
		c.enqueuePost(fmt.Sprintf("pr-closed-%d", c.t.Version+1), state.Post{Kind: state.PostPRClosed, OnPR: true})
	}
}

// expireClosed cancels the task whose pull request nobody reopened.
func expireClosed(c *change) {
	if at := c.t.PR.KeptUntil; c.e.Now.Before(at) {
		c.scheduleDue(state.DueParked, "", at)
		return
	}
	c.cancel(fmt.Sprintf("pull request #%d stayed closed for %s", c.t.PR.Number, state.DurationText(c.p.KeepAsleep)))
}

// requestReopening enqueues reopening the closed pull request, once.
func requestReopening(c *change) {
	c.react(state.ReactionEyes)
	if c.o.Turns > 0 {
		c.t.Turns = c.o.Turns
	}
	if c.o.Fresh {
		c.t.Fresh = true
	}
	if c.t.Step != state.JobReopen {
		c.enqueueStep(state.JobReopen)
	}
}

// keepAndReopen keeps a message for the next round, and reopens the pull request for it.
func keepAndReopen(c *change) {
	keepComment(c)
	requestReopening(c)
}

// isSaidBeforeClosing reports whether a person acted before the pull request was closed, so that the event came late.
func isSaidBeforeClosing(c *change) bool {
	return !c.e.At.IsZero() && c.e.At.Before(c.t.PR.ClosedAt.Truncate(time.Second))
}

// resumeReopened continues the task whose pull request is open again. Feedback that was not answered, or that arrived meanwhile,
// begins a round; one that was under way goes on.
func resumeReopened(c *change) {
	reason := fmt.Sprintf("pull request #%d was reopened%s", c.t.PR.Number, byPerson(c.e.By))
	if c.t.PR.State == state.PROpen {
		reason = fmt.Sprintf("pull request #%d is open", c.t.PR.Number)
	}
	if closed := c.t.PR.ClosedAt.Truncate(time.Second); closed.Equal(eventTime(c).Truncate(time.Second)) { // perhaps it was closed later
		c.scheduleDue(state.DuePRClosed, "", c.e.Now.Add(c.p.Gather))
	}
	storeReopened(c)
	if head := of[event.PRReopened](c).Head; head != "" && head != c.t.Branch.Head { // it moved while nothing was done here
		c.t.Branch.Head, c.t.Branch.Tree = head, ""
	}
	c.t.Work, c.t.Resume = nil, ""
	c.dropWork = true
	c.enterPhase(state.PhasePROpen, reason)
	c.enqueueGather(c.e.Now.Add(c.p.Gather))
}

// storeReopened stores that the pull request is open. Nobody has waited for its checks while it was closed.
func storeReopened(c *change) {
	c.t.PR.State, c.t.PR.ReopenedAt, c.t.PR.KeptUntil = state.PROpen, eventTime(c), time.Time{}
	c.t.PR.Undecided = time.Time{}
}

// isAdoptable reports whether the next life continues the pull request of the ended one: it is open, or was closed recently, or
// is perhaps just being opened.
func isAdoptable(c *change) bool {
	if t := c.t; t.PR == nil {
		return t.Branch.Head != "" && t.Work != nil && t.Work.Head == t.Branch.Head
	}
	return c.t.CanContinuePR(c.e.Now)
}

// nextLife returns the next life of the ended task, with its plans, changes, runs and costs.
func nextLife(c *change) *state.Task {
	t, old := c.t.Clone(), c.t.End
	t.Gen++
	t.TaskPhase = state.TaskPhase{}
	t.Question, t.PostedOnce, t.IgnoreLimits, t.Fresh, t.UnattendedLaunches, t.Turns = nil, nil, false, false, 0, 0
	if s := t.Status; s.Comment == 0 || s.Shown >= t.Visible {
		t.Status = state.StatusComment{}
	}
	if r := t.Run; r != nil { // it is being stopped
		r.State, r.Ended, r.Status, r.Class, r.Repair = state.RunEnded, c.e.Now, state.StatusInterrupted, state.RunRetryable, nil
		t.Runs, t.Run = append(t.Runs, *r), nil
	}
	returnFeedback(t)
	if old == nil || !old.Saving || c.o.Fresh { // otherwise the work is still on the VM
		c.replaceVM(t)
	}
	t.Trigger = nextTrigger(c, cmp.Or(c.e.Via, state.TriggerMention), t.Trigger.Base)
	return t
}

// foldEndedLife folds the comments of the life before that no longer hold: its status, unless the new life continues that comment,
// and its plans, unless the new life has them, too.
func foldEndedLife(c *change, old *state.Task) {
	if old == nil {
		return
	}
	if s := old.Status; s.Node != "" && c.t.Status.Comment != s.Comment {
		j := c.job(state.JobMinimize, state.LaneTalk, fmt.Sprintf("minimise-status-%d", s.Comment))
		j.Args.Node = s.Node
		c.enqueue(j)
	}
	if len(c.t.Plans) > 0 {
		return
	}
	for i := range old.Plans {
		if p := &old.Plans[i]; p.CommentNode != "" && !p.Superseded {
			enqueueMinimize(c, p)
		}
	}
}

// enqueueMinimize folds a revision that no longer counts on GitHub.
func enqueueMinimize(c *change, p *state.Plan) {
	j := c.job(state.JobMinimize, state.LaneTalk, "minimise-"+p.Short())
	j.Args.Node = p.CommentNode
	c.enqueue(j)
}

// adopt begins the next life, which continues the pull request of the ended one.
func adopt(c *change) {
	t := nextLife(c)
	if t.PR == nil {
		c.begin(t, begunBy(c, t.Trigger.Via))
		if c.e.Issue() != nil && !c.e.By.Operator {
			c.freeze()
		}
		c.enterPhase(state.PhaseImplementing, "the changes are on the branch already")
		if t.UnknownOutcomes == nil {
			t.UnknownOutcomes = map[string]time.Time{}
		}
		t.UnknownOutcomes[fmt.Sprintf("%d.%s-", t.Gen, state.JobOpenPR)] = c.e.Now // the ended life may have opened it
		c.enqueueStep(state.JobOpenPR)
		return
	}
	t.Work = nil
	t.PR.Ready, t.PR.ReadyBy = false, ""
	c.begin(t, fmt.Sprintf("%s; it continues with pull request #%d", begunBy(c, t.Trigger.Via), t.PR.Number))
	if c.e.Issue() != nil && !c.e.By.Operator { // a command on the pull request comes without it
		c.freeze()
	}
	if a := t.Suspended; a != nil {
		c.scheduleDue(state.DueUnused, "", a.At.Add(c.p.KeepAsleep))
	}
	c.enqueueStep(state.JobReopen)
}

// isAdopting reports whether the task checks the pull request that it continues, or failed to.
func isAdopting(c *change) bool {
	stopped := c.t.Phase == state.PhaseFailed || c.t.Phase == state.PhaseInterrupted
	return hasPR(c) && c.t.Step == state.JobReopen && (c.t.Phase == state.PhaseQueued || stopped && c.t.Resume == state.PhaseQueued)
}

// restart begins the task anew, whatever it is doing, and closes its pull request.
func restart(c *change) {
	old := c.t
	if old.Phase == state.PhaseQueued && old.Since.Equal(c.e.Now) {
		return // the same comment says it twice
	}
	issue := state.Issue{Node: old.IssueNode, Title: old.Frozen.Title, Body: old.Frozen.Body, Author: old.Author,
		Labels: old.Context.Labels, Type: old.Context.IssueType, Milestone: old.Context.Milestone, Unvouched: old.Frozen.By == state.Person{}}
	if i := c.e.Issue(); i != nil && !c.e.By.Operator {
		issue = *i
	}
	via := state.TriggerMention
	if !old.Ended() {
		c.dropRun("restarted by " + c.e.By.Handle())
		c.dropWork, c.dropDue = true, true
		via = old.Trigger.Via
		if a := old.Suspended; a != nil {
			c.scheduleDue(state.DueForget, string(a.Mode)+":"+a.Ref, c.e.Now.Add(c.p.KeepAfterEnd))
		}
	}
	t := beginAnew(c, issue)
	t.Trigger = nextTrigger(c, via, firstNonEmpty(c.e.Base(), old.Trigger.Base))
	if !old.Ended() {
		t.Status = old.Status
	}
	c.begin(t, "restarted by "+c.e.By.Handle())
	c.freezeIssue(issue)
	if c.e.By.Operator || c.e.Issue() == nil {
		t.Frozen.ShownAt = old.Frozen.ShownAt
	}
	if c.e.By.Operator { // whose command does not accept edits: the text is the one that was frozen before
		t.Frozen.By = old.Frozen.By
	}
	c.enqueueStep(state.JobStart)
}

// replacedPRs returns the pull requests that the next life does not continue. Merged ones cannot be opened again.
func replacedPRs(old *state.Task) []state.ReplacedPR {
	list := slices.Clone(old.Replaced)
	switch {
	case old.PR != nil && old.PR.State != state.PRMerged:
		list = append(list, state.ReplacedPR{Number: old.PR.Number, URL: old.PR.URL, Branch: old.Branch.Name,
			Closed: old.PR.State == state.PRClosed})
	case old.PR == nil && old.Branch.Head != "": // perhaps just being opened
		list = append(list, state.ReplacedPR{Branch: old.Branch.Name})
	}
	return list[max(0, len(list)-state.MaxReplaced):]
}

// closeReplaced enqueues closing the replaced pull requests that may be open. One that is not known is looked for when GitHub
// surely lists it.
func closeReplaced(c *change) {
	for _, r := range c.t.Replaced {
		if r.Closed {
			continue
		}
		j := c.job(state.JobClosePR, state.LaneControl, fmt.Sprintf("close-pr-%d-%s", r.Number, r.Branch))
		j.Args.Number, j.Args.Branch = r.Number, r.Branch
		if r.Number == 0 {
			j.NotBefore = c.e.Now.Add(listingLag)
		}
		c.enqueue(j)
	}
}

// replacedIndex returns the index of a replaced pull request by its number, or of the unknown one of a branch; -1 if there is none.
func replacedIndex(t *state.Task, number int, branch string) int {
	i := slices.IndexFunc(t.Replaced, func(r state.ReplacedPR) bool { return number != 0 && r.Number == number })
	if i < 0 {
		i = slices.IndexFunc(t.Replaced, func(r state.ReplacedPR) bool { return r.Number == 0 && branch != "" && r.Branch == branch })
	}
	return i
}

// storeReplaced stores that a replaced pull request is not open. If errand closed it, a comment there says why.
func storeReplaced(c *change) {
	p := of[event.PRReplaced](c)
	i := replacedIndex(c.t, p.Number, p.Branch)
	if i < 0 {
		return
	}
	if p.Number == 0 {
		c.t.Replaced = slices.Delete(c.t.Replaced, i, i+1)
		return
	}
	c.t.Replaced[i] = state.ReplacedPR{Number: p.Number, URL: p.URL, Branch: firstNonEmpty(p.Branch, c.t.Replaced[i].Branch), Closed: true}
	if key := fmt.Sprintf("replaced-%d", p.Number); p.Closed && c.markOnce(key) {
		j := c.job(state.JobPost, state.LaneTalk, key)
		j.Post, j.Args.Number = &state.Post{Kind: state.PostReplaced, OnPR: true}, p.Number
		c.enqueue(j)
	}
}

// isReplacedPR reports whether the event is about a pull request that was replaced.
func isReplacedPR(c *change) bool { return c.t.IsReplacedPR(of[event.PRReopened](c).Number) }

// closeReopened closes a replaced pull request again.
func closeReopened(c *change) {
	c.t.Replaced[replacedIndex(c.t, of[event.PRReopened](c).Number, "")].Closed = false
	closeReplaced(c)
}

// replaceLatePR closes a pull request that a job of an earlier life opened after its task began anew.
func replaceLatePR(c *change) {
	pr := of[event.PROpened](c).PR
	r := state.ReplacedPR{Number: pr.Number, URL: pr.URL}
	if i := slices.IndexFunc(c.t.Replaced, func(r state.ReplacedPR) bool { return r.Number == 0 }); i >= 0 {
		r.Branch = c.t.Replaced[i].Branch
		c.t.Replaced[i] = r
	} else {
		c.t.Replaced = append(c.t.Replaced, r)
	}
	closeReplaced(c)
}

// storePRState stores that people closed, merged or reopened the pull request of an ended task.
func storePRState(c *change) {
	switch {
	case c.e.Kind() == event.KindPRReopened:
		storeReopened(c)
	case of[event.PRClosed](c).Merged:
		c.t.PR.State = state.PRMerged
	default:
		c.t.PR.State, c.t.PR.ClosedAt, c.t.PR.KeptUntil = state.PRClosed, eventTime(c), c.e.Now.Add(c.p.KeepAsleep)
	}
}

// isPRState returns a condition that holds if the pull request is in one of the states.
func isPRState(states ...state.PRState) func(*change) bool {
	return func(c *change) bool { return hasPR(c) && slices.Contains(states, c.t.PR.State) }
}
