package machine

import (
	"fmt"
	"slices"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// maxBaseReads is the maximum number of reads in a row of which GitHub did not know the result yet.
const maxBaseReads = 10

// maxUpdateRequests is the maximum number of commands that wait for an update of one pull request's branch.
const maxUpdateRequests = 10

// requestUpdate queues a command to add the newest commits of the base. It is carried out at once or after the present work. Of several
// such commands in one comment the last one counts.
func requestUpdate(c *change) {
	asked := state.UpdateRequest{By: c.e.By, Rebase: c.o.Verb == state.VerbRebase}
	if m := c.e.Comment(); m != nil {
		asked.Comment = m.ID
	}
	list := updateRequests(c.t.PR)
	same := slices.IndexFunc(list, func(r state.UpdateRequest) bool { return r.Comment == asked.Comment && r.By == asked.By })
	switch {
	case same >= 0:
		list[same] = asked
	case len(list) == maxUpdateRequests:
		c.reply(state.ReplyUpdatesFull)
		return
	default:
		list = append(list, asked)
	}
	storeRequests(c.t.PR, list)
	if c.t.Phase != state.PhasePROpen {
		c.reply(state.ReplyUpdateLater)
		return
	}
	enqueueUpdate(c, 0)
}

// updateRequests returns the commands to update a pull request's branch that have no answer yet, in the order in which they are carried out.
func updateRequests(pr *state.PR) []state.UpdateRequest {
	if pr == nil || pr.Update == (state.UpdateRequest{}) {
		return nil
	}
	return append([]state.UpdateRequest{pr.Update}, pr.MoreUpdates...)
}

// storeRequests stores what updateRequests returns.
func storeRequests(pr *state.PR, list []state.UpdateRequest) {
	pr.Update, pr.MoreUpdates = state.UpdateRequest{}, nil
	if len(list) > 0 {
		pr.Update = list[0]
	}
	if len(list) > 1 {
		pr.MoreUpdates = list[1:]
	}
}

// removeRequest removes a command that is about to be answered, and has the next one carried out. It reports whether the command was waiting
// for an answer.
func removeRequest(c *change, r state.UpdateRequest) bool {
	list := updateRequests(c.t.PR)
	i := slices.Index(list, r)
	if i < 0 || r == (state.UpdateRequest{}) {
		return false
	}
	storeRequests(c.t.PR, slices.Delete(list, i, i+1))
	if len(list) > 1 && c.t.Phase == state.PhasePROpen {
		enqueueUpdate(c, 0)
	}
	return true
}

// dropRequests answers the commands to update the branch that are not carried out any more, because the pull request was closed or the task
// ended. Nobody would expect them after a later continuation.
func dropRequests(c *change) {
	pr, reason := c.t.PR, state.BaseEnded
	switch {
	case pr == nil: // the task began anew without it
		pr, reason = c.before.PR, state.BaseClosed
	case pr.State == state.PRMerged:
		reason = state.BaseMerged
	case pr.State == state.PRClosed:
		reason = state.BaseClosed
	case !c.t.Ended():
		return
	}
	list := updateRequests(pr)
	if c.t.PR != nil {
		storeRequests(c.t.PR, nil)
	}
	if cannotComment(c.t) || !c.t.Purged.IsZero() {
		return
	}
	for i, r := range list {
		if slices.ContainsFunc(list[:i], func(o state.UpdateRequest) bool { return o.By == r.By }) {
			continue // one comment says it to a person
		}
		c.enqueuePost(fmt.Sprintf("base-%s-%d", reason, r.Comment),
			state.Post{Kind: state.PostBase, OnPR: c.t.PR != nil, Reason: reason, By: r.By, Items: []string{c.t.Branch.Base}})
	}
}

// noteBaseMoved compares the branch with its base, at once or after the present work.
func noteBaseMoved(c *change) {
	c.t.Branch.BaseMoved = true
	if c.t.Phase == state.PhasePROpen && isPRState(state.PROpen)(c) {
		enqueueUpdate(c, 0)
	}
}

// enqueueUpdate enqueues comparing the branch with its base: at once for a command, otherwise when pushes and reviews of a moment are known.
func enqueueUpdate(c *change, reads int) {
	j := c.job(state.JobUpdate, state.LaneWork, "update")
	j.Args.Reads, j.NotBefore = reads, c.e.Now
	switch {
	case reads > 0:
		j.NotBefore = c.e.Now.Add(c.p.StatusGap / 2)
	case c.t.PR.Update == state.UpdateRequest{}:
		j.NotBefore = c.e.Now.Add(c.p.Gather)
	}
	c.enqueue(j)
}

// followBase compares the branch with its base when the present work ends, if somebody asked for it or the base moved meanwhile, and when
// the pull request becomes approved and green. While it conflicts, or errand has stopped updating it, every push and every act of a person
// may have changed that.
func followBase(c *change) {
	if c.before == nil {
		return
	}
	dropRequests(c)
	if !isPRState(state.PROpen)(c) || c.t.Ended() {
		return
	}
	isStuck := c.before.PR != nil && (c.before.PR.Conflict || c.before.PR.Updates > state.MaxUpdates)
	if isStuck && (isPersonsAct(c) || isNewHead(c)) {
		noteBaseMoved(c)
		return
	}
	if c.t.Phase != state.PhasePROpen {
		return
	}
	begins := c.before.Phase != state.PhasePROpen && (c.t.Branch.BaseMoved || c.t.PR.Update != state.UpdateRequest{})
	if begins || c.t.IsMergeReady() && !c.before.IsMergeReady() {
		enqueueUpdate(c, 0)
	}
}

// isPersonsAct reports whether the event is an act of a person with write access after which errand's updates are counted from zero: any
// but a comment that gives no command.
func isPersonsAct(c *change) bool {
	return isAuthorized(c) && (c.e.Kind() != event.KindCommented || isAct(c))
}

// isNewHead reports whether the event is a push of commits that the task did not know.
func isNewHead(c *change) bool {
	head := of[event.Pushed](c).Head
	return head != "" && head != c.before.Branch.Head
}

// storePush stores the new head of errand's branch after a person's push.
func storePush(c *change) {
	if hasPR(c) && isPersonsPush(c) {
		c.t.PR.Updates = 0
		resetRepairs(c)
	}
	head := of[event.Pushed](c).Head
	switch {
	case head == "":
	case c.t.Work == nil:
		c.t.Branch.Head, c.t.Branch.Tree = head, ""
	case head != c.t.Branch.Head && head != c.t.Work.Head: // the branch is read after the present work
		c.t.Branch.BaseMoved = true
	}
}

// isPersonsPush reports whether the event is a push of commits by a person. GitHub's own account and Apps are none.
func isPersonsPush(c *change) bool {
	return !c.e.By.Bot && c.e.By.Login != "" && c.e.By.Login != "web-flow" && of[event.Pushed](c).Head != c.t.Branch.Head
}

// isBaseResult returns a condition on how the branch compares with its base.
func isBaseResult(r event.BaseResult) func(*change) bool {
	return func(c *change) bool { return of[event.BaseRead](c).Result == r }
}

// isOutdatedRead reports whether the branch has moved since it was compared with its base.
func isOutdatedRead(c *change) bool {
	read, head := of[event.BaseRead](c), c.t.Branch.Head
	return head != read.Known && head != read.Head
}

// mayResolve reports whether an agent may resolve a conflict with the base: not again and again, and only if the result can be published.
func mayResolve(c *change) bool {
	return of[event.BaseRead](c).Workflow == "" && c.t.PR.Updates < state.MaxUpdates && !reachedRunLimit(c)
}

// nextRound returns the number of the round that is about to begin.
func nextRound(c *change) int {
	if c.t.PR.InRound { // it goes on, with the work that is not published yet
		return c.t.Round
	}
	return c.t.Round + 1
}

// startRound begins a round. The reason is for the history.
func startRound(c *change, reason string) {
	c.t.Round = nextRound(c)
	c.t.PR.InRound, c.t.PR.PreventMerge = false, false
	if slices.ContainsFunc(c.t.PendingFeedback(), isRequest) { // after any other round the approval stands
		c.t.PR.Ready, c.t.PR.ReadyBy = false, ""
	}
	c.enterPhase(state.PhaseAddressingReview, reason)
	c.launchRun(state.RunReview)
}

// resolveBaseConflict begins a round in which the agent merges the base.
func resolveBaseConflict(c *change) {
	read := of[event.BaseRead](c)
	storeUpdate(c)
	storeComparison(c)
	c.t.PR.Updates++
	c.t.Branch.BaseMoved = true // compared again after the round
	c.feedback(state.Feedback{ID: "base:" + read.Newest, Kind: state.FeedbackConflict, At: c.e.Now, OnPR: true, Base: read.Newest,
		Head: c.t.Branch.Head, Body: fmt.Sprintf("The branch conflicts with its base `%s`. Fetch `%s` from origin, merge its commit %s, and resolve the conflicts so that "+
			"the changes of both sides keep working. Commit the merge; do not rebase, and do not change anything else.", read.Base, read.Base, read.Newest)})
	startRound(c, fmt.Sprintf("conflict with %s", read.Base))
	answerUpdate(c, state.BaseConflict)
}

// storeBaseRead stores how the branch compares with its base, and answers the command that asked for it.
func storeBaseRead(c *change) {
	read := of[event.BaseRead](c)
	storeUpdate(c)
	if read.Begun {
		c.t.PR.Updates++
		askForApprovalAgain(c)
	}
	if c.t.Phase != state.PhasePROpen && read.Result != event.BaseUpdated { // the work that began meanwhile may change it
		c.t.Branch.BaseMoved = true
		return
	}
	if isOutdatedRead(c) && read.Result != event.BaseUpdated {
		enqueueUpdate(c, 0)
		return
	}
	if read.Result == event.BaseUnknown && read.Reads < maxBaseReads {
		storeReadHead(c)
		enqueueUpdate(c, read.Reads+1)
		return
	}
	storeComparison(c)
	switch read.Result {
	case event.BaseUpdated:
		c.t.PR.Updates++
		reason := state.BaseUpdated
		if read.Rebased {
			reason = state.BaseRebased
		}
		answerUpdate(c, reason, read.Head)
		askForApprovalAgain(c)
	case event.BaseCurrent:
		answerUpdate(c, state.BaseCurrent, read.Head)
	case event.BaseUnknown:
		answerUpdate(c, state.BaseUnknown)
	case event.BaseRefused:
		answerRefusal(c)
	case event.BaseConflict:
		if read.Workflow != "" {
			answerOnce(c, state.BaseConflictWorkflows, read.Workflow)
			return
		}
		if c.t.PR.Updates < state.MaxUpdates { // otherwise mayResolve would let an agent resolve it
			stopUpdating(c, state.BaseRunLimit)
			return
		}
		stopUpdating(c, state.BaseConflictLeft)
	case event.BaseLimit:
		stopUpdating(c, state.BaseLeft)
	}
}

// storeReadHead stores the branch's head that was read: a push whose webhook has not arrived yet, or an update by GitHub.
func storeReadHead(c *change) {
	if head := of[event.BaseRead](c).Head; head != "" && head != c.t.Branch.Head && c.t.Work == nil && !isOutdatedRead(c) {
		c.t.Branch.Head, c.t.Branch.Tree = head, ""
	}
}

// storeComparison stores the branch's head, and whether it conflicts with its base.
func storeComparison(c *change) {
	read := of[event.BaseRead](c)
	storeReadHead(c)
	if read.Result == event.BaseUpdated {
		c.t.Branch.Updated = read.Head
	}
	c.t.Branch.BaseMoved = false
	c.t.PR.Conflict = read.Result == event.BaseConflict
}

// answerRefusal says why GitHub did not update the branch.
func answerRefusal(c *change) {
	switch read := of[event.BaseRead](c); {
	case read.Workflow != "":
		answerOnce(c, state.BaseWorkflows, read.Workflow)
	case read.Rebased:
		answerUpdate(c, state.BaseNotRebased)
	default:
		answerOnce(c, state.BaseRefused)
	}
}

// answerUpdate answers the command to update the branch, if there was one that has no answer yet.
func answerUpdate(c *change, reason string, items ...string) {
	if asked := of[event.BaseRead](c).Request; removeRequest(c, asked) {
		postBase(c, fmt.Sprintf("base-%s-%d", reason, asked.Comment), reason, items...)
	}
}

// answerOnce answers the command to update the branch. If there was none, it says why the branch is not updated, unless that was said before.
func answerOnce(c *change, reason string, items ...string) {
	asked := of[event.BaseRead](c).Request != state.UpdateRequest{}
	answerUpdate(c, reason, items...)
	key := fmt.Sprintf("base-%s-pr-%d", reason, c.t.PR.Number)
	if isNew := c.markOnce(key); isNew && !asked {
		postBase(c, key, reason, items...)
	}
}

// stopUpdating says, once until a person acts again, that errand does not continue by itself.
func stopUpdating(c *change, reason string) {
	asked, isStopped := of[event.BaseRead](c).Request != state.UpdateRequest{}, c.t.PR.Updates > state.MaxUpdates
	answerUpdate(c, reason)
	if !isStopped && !asked {
		postBase(c, fmt.Sprintf("base-%s-%d", reason, c.t.Version+1), reason)
	}
	c.t.PR.Updates = state.MaxUpdates + 1
}

// postBase enqueues a comment on the pull request about its base. The items follow the name of the base.
func postBase(c *change, key, reason string, items ...string) {
	read := of[event.BaseRead](c)
	by := read.Request.By
	if by.ID == 0 {
		by = c.personToNotify()
	}
	c.enqueuePost(key, state.Post{Kind: state.PostBase, OnPR: true, Reason: reason, By: by, Text: read.Refusal,
		Items: append([]string{read.Base}, items...)})
}

// isUpdateFailure reports whether the job failed that compares the branch with its base.
func isUpdateFailure(c *change) bool {
	return c.t.PR != nil && of[event.StepFailed](c).Failure.Job == state.JobUpdate
}

// answerFailedUpdate answers the command to update the branch that the reason is GitHub's failure.
func answerFailedUpdate(c *change) {
	noteFailure(c)
	asked := c.t.PR.Update
	if !removeRequest(c, asked) {
		return
	}
	c.enqueuePost(fmt.Sprintf("base-failed-%d", asked.Comment), state.Post{Kind: state.PostBase, OnPR: true, Reason: state.BaseRefused, By: asked.By,
		Text: of[event.StepFailed](c).Failure.Reason, Items: []string{c.t.Branch.Base}})
}

// updateRows returns the rows of a command to add the newest commits of the base to the pull request.
func updateRows(verb state.Verb) []Row {
	return []Row{
		{
			From: without(open, state.PhasePRClosed), On: event.KindCommented, Verb: verb,
			If: "the pull request is open", when: isPRState(state.PROpen),
			To: same, do: requestUpdate,
			Doc: "the branch is compared with its base, at once or after the present work; GitHub adds missing commits",
		},
		{
			From: anyPhase, On: event.KindCommented, Verb: verb,
			To: same, do: reply(state.ReplyNoOpenPR),
			Doc: "there is no open pull request to update",
		},
	}
}
