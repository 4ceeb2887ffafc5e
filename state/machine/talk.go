package machine

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// reply returns an action that answers a command with a short comment.
func reply(reason string) func(*change) { return func(c *change) { c.reply(reason) } }

// reply answers where the person wrote. Who gave the command on errand's pages is answered by the caller of Next; of a comment on
// GitHub, people learn that they raised a cap.
func (c *change) reply(reason string) {
	if c.e.By.Operator {
		c.answer = reason
		if reason == state.ReplyBudgetRaised {
			onPR := hasPR(c) && c.t.PR.State == state.PROpen
			c.enqueuePost(c.e.ID, state.Post{Kind: state.PostReply, Reason: reason, By: c.e.By, OnPR: onPR})
		}
		return
	}
	p := state.Post{Kind: state.PostReply, Reason: reason, By: c.e.By, Text: c.o.Arg}
	key := fmt.Sprintf("reply-%s-%d", reason, c.t.Version+1)
	if m := c.e.Comment(); m != nil {
		p.OnPR = m.OnPR
		key = fmt.Sprintf("reply-%s-%d", reason, m.ID)
	}
	if reason == state.ReplyTooMany {
		all := of[event.Commented](c)
		p.Items, p.Text = all.Skipped, ""
		if more := all.MoreSkipped + max(0, len(all.Orders)-MaxOrders); more > 0 {
			p.Text = strconv.Itoa(more)
		}
	}
	if reason == state.ReplyUnknown {
		p.Items = []string{c.o.Text}
	}
	if reason == state.ReplyModelUnknown {
		p.Items = c.p.Models.Names
	}
	c.enqueuePost(key, p)
}

// replyToWithdrawnComment answers that a comment which was deleted, hidden or edited before it was processed had no effect.
// Deleted comments without a mention get no answer.
func replyToWithdrawnComment(c *change) {
	if c.e.Comment().Mention || c.e.Comment().Withdrawn == state.RejectedCommentEdited {
		c.reply(c.e.Comment().Withdrawn)
	}
}

// replyToEndedTask answers that a message to an ended task starts nothing: with a comment once per life, and with a
// reaction to each.
func replyToEndedTask(c *change) {
	c.react(state.ReactionConfused)
	if c.markOnce("ended-message") {
		c.reply(state.ReplyEnded)
	}
}

// storePosted stores the ID of a posted comment.
func storePosted(c *change) {
	p, post := of[event.Posted](c).Comment, c.e.Post()
	if post != nil && post.Kind == state.PostProvenance && c.t.PR != nil && c.t.PR.Number == p.Number {
		c.t.PR.Unstated, c.t.PR.StatementFailures = "", 0
	}
	if slices.ContainsFunc(c.t.Posted, func(o state.Posted) bool { return o.ID == p.ID }) {
		return
	}
	c.t.Posted = append(c.t.Posted, p)
	if len(c.t.Posted) > maxSeenIDs {
		c.t.Posted = slices.Delete(c.t.Posted, 0, len(c.t.Posted)-maxSeenIDs)
	}
	if c.e.Searched() {
		scheduleDuplicateCheck(c, p)
	}
	switch {
	case post == nil:
	case post.Kind == state.PostPlan:
		planPosted(c, post.Hash)
	case c.t.Question != nil && (post.Kind == state.PostQuestion || post.Kind == state.PostRefused || post.Kind == state.PostNoChanges):
		c.t.Question.Comment = p.ID
	}
}

// planPosted opens a revision for approval and schedules its reminders.
func planPosted(c *change, hash string) {
	p := c.planByHash(hash)
	if p == nil {
		return
	}
	p.Comment, p.CommentNode, p.CommentURL = of[event.Posted](c).Comment.ID, of[event.Posted](c).Comment.Node, of[event.Posted](c).Comment.URL
	p.PostedAt, p.BodyHash = of[event.Posted](c).Comment.At, of[event.Posted](c).BodyHash
	if p.Superseded {
		enqueueMinimize(c, p)
		return
	}
	if c.t.Phase.AwaitsApproval() && hash == c.newestHash() && len(c.t.PendingFeedback()) > 0 {
		startGathering(c)
	}
	if of[event.Posted](c).Ticked {
		clearUnseenTick(c, p)
	}
	scheduleReminders(c, hash)
}

// scheduleReminders schedules the reminder that a revision waits for approval, and the end of that wait.
func scheduleReminders(c *change, hash string) {
	l := c.t.Settings.Limits
	c.scheduleDue(state.DueRemind, hash, c.e.Now.Add(l.Remind))
	c.scheduleDue(state.DueExpire, hash, c.e.Now.Add(l.Expire))
}

// knowsComment reports whether the task refers to the comment of the event.
func knowsComment(c *change) bool {
	if c.e.Comment() == nil {
		return false
	}
	id := c.e.Comment().ID
	return id != 0 && (c.planByComment(id) != nil || c.t.Status.Comment == id ||
		c.t.Question != nil && c.t.Question.Comment == id || withheldIndex(c, id) >= 0 || pendingComment(c, id) >= 0)
}

func withheldIndex(c *change, id int64) int {
	return slices.IndexFunc(c.t.Context.Withheld, func(w state.Withheld) bool { return w.ID == id })
}

// forgetComment removes references to a deleted comment. A deleted status comment is posted again.
func forgetComment(c *change) {
	id := c.e.Comment().ID
	if p := c.planByComment(id); p != nil {
		p.CommentURL = ""
		if !c.t.Ended() {
			c.markStale("", state.StaleDeleted)
		}
	}
	if c.t.Status.Comment == id {
		c.t.Status.URL = ""
	}
	if q := c.t.Question; q != nil && q.Comment == id {
		q.Comment = 0
	}
	if i := pendingComment(c, id); i >= 0 {
		c.t.Feedback = slices.Delete(c.t.Feedback, i, i+1)
	}
	if i := withheldIndex(c, id); i >= 0 {
		c.t.Context.Withheld = slices.Delete(c.t.Context.Withheld, i, i+1)
	}
}

// storeStatus stores the version that the status comment shows.
func storeStatus(c *change) {
	s := of[event.StatusSent](c).Status
	if s.Shown < c.t.Status.Shown {
		s.Shown = c.t.Status.Shown
	}
	c.t.Status = s
	if c.e.Searched() {
		scheduleDuplicateCheck(c, state.Posted{ID: s.Comment, Key: fmt.Sprintf("%d.status", c.t.Gen), At: c.t.Trigger.At})
	}
}

// scheduleAnswerDuplicateChecks schedules checks for duplicate answers in threads.
func scheduleAnswerDuplicateChecks(c *change, uncertain *event.UncertainAnswers) {
	if uncertain == nil || c.t.PR == nil {
		return
	}
	for _, key := range uncertain.Keys {
		c.scheduleDue(state.DueDuplicate, key, c.e.Now.Add(time.Minute))
		args := &c.jobs[len(c.jobs)-1].Args
		args.Duplicate, args.Since, args.Number = state.DuplicateAnswer, uncertain.Since.UTC().Truncate(time.Second), c.t.PR.Number
	}
}

// scheduleDuplicateCheck schedules a check for a duplicate of a comment. The job contains all necessary data, because the task may be in
// its next life by then.
func scheduleDuplicateCheck(c *change, p state.Posted) {
	c.scheduleDue(state.DueDuplicate, fmt.Sprint(p.ID), c.e.Now.Add(time.Minute))
	args := &c.jobs[len(c.jobs)-1].Args
	args.Marker, args.Since, args.Number = p.Key, p.At.UTC().Truncate(time.Second), p.Number
}

// setModel sets the model of the next runs, if it is available.
func setModel(c *change) {
	if m := c.p.Models; m != nil && !m.Offers(c.o.Arg) {
		c.reply(state.ReplyModelUnknown)
		return
	}
	c.t.Model = c.o.Arg
	c.reply(state.ReplyModelSet)
}

// isRead reports whether errand reads a comment without a mention: on the issue, and on the pull request while a question of the
// agent is open or changes wait for approval.
func isRead(c *change) bool {
	q := c.t.Question
	return !c.e.Comment().OnPR || c.t.Phase == state.PhaseAwaitingPublishApproval ||
		c.t.Phase == state.PhaseAwaitingAnswer && q != nil && isReadByAgent(q)
}

// startsNothing reports whether a comment is addressed to somebody else, or consists of thanks, an emoji or a bare +1. The
// answer to a question may be a +1. Where nothing waits for approval, "LGTM" requests nothing either.
func startsNothing(c *change) bool {
	switch c.e.Comment().Remark {
	case state.RemarkToOthers, state.RemarkThanks:
		return true
	case state.RemarkReaction:
		return c.t == nil || c.t.Phase != state.PhaseAwaitingAnswer
	case state.RemarkApproving:
		return c.t != nil && (c.t.Phase == state.PhasePROpen || slices.Contains(building, c.t.Phase))
	}
	return false
}

// isApprovingRemark reports whether a comment such as "LGTM" is about a plan or changes, of which it approves nothing.
func isApprovingRemark(c *change) bool { return c.e.Comment().Remark == state.RemarkApproving }

// acknowledgeRemark gives a remark that mentions errand a 👍.
func acknowledgeRemark(c *change) {
	c.react(state.ReactionThumbsUp)
	if c.t != nil && !c.t.Ended() && !c.e.Comment().OnPR {
		keepInDiscussion(c)
	}
}

// replyHowToApprove answers, once per revision, how the newest one is approved.
func replyHowToApprove(c *change) {
	keepInDiscussion(c)
	postHowToApprove(c, c.e.By)
}

// postHowToApprove posts that a comment approves nothing, and how the newest revision is approved.
func postHowToApprove(c *change, by state.Person) {
	p := c.t.NewestPlan()
	if p == nil || !p.Open() {
		return
	}
	if key := "how-" + p.Short(); c.markOnce(key) {
		c.enqueuePost(key, state.Post{Kind: state.PostReply, Reason: state.ReplyHowToApprove, By: by, Hash: p.Hash})
	}
}

// gatherPlanComment stores a comment on a waiting plan or on shown changes, and waits for more before the agent considers them.
func gatherPlanComment(c *change) {
	keepComment(c)
	c.react(state.ReactionEyes)
	extendGathering(c)
}

// startGathering begins to gather comments, if that has not begun.
func startGathering(c *change) {
	if c.t.Gathering == nil {
		extendGathering(c)
	}
}

// extendGathering waits for further comments, up to a limit after the first one.
func extendGathering(c *change) {
	g := state.Gathering{Since: c.e.Now}
	if c.t.Gathering != nil {
		g = *c.t.Gathering
	}
	g.Until = c.e.Now.Add(c.p.GatherTalk)
	if latest := g.Since.Add(c.p.GatherMax); g.Until.After(latest) {
		g.Until = latest
	}
	c.t.Gathering = &g
	c.scheduleDue(state.DueComments, "", g.Until) // one at a time; an early one is scheduled again
}

// stillGathers reports whether the time to gather comments was extended.
func stillGathers(c *change) bool { return c.t.Gathering != nil && c.e.Now.Before(c.t.Gathering.Until) }

// considerComments has the agent consider the gathered comments. A plan stays open meanwhile; comments on shown changes request
// other changes.
func considerComments(c *change) {
	applyReread(c)
	if len(c.t.PendingFeedback()) == 0 {
		c.t.Gathering = nil
		releaseHeld(c)
		return
	}
	p := c.t.NewestPlan()
	if p.Kind == state.PlanPublish {
		c.startRevision("comments ask for a change")
		return
	}
	c.enterPhase(p.Kind.PlanningPhase(), "comments on the plan are considered")
	if _, found := newlyVouched(c); found {
		c.enqueueStep(state.JobStart) // the present discussion decides whether the agent may see the comment
		return
	}
	c.launchRun(runOfPhase(c.t.Phase))
}

// applyReread updates the gathered comments that were edited, and drops those that were withdrawn or no longer request
// anything.
func applyReread(c *change) {
	for _, m := range of[event.Due](c).Reread {
		i := slices.IndexFunc(c.t.Feedback, func(f state.Feedback) bool { return f.ID == commentID(m.ID) && f.TakenBy == "" })
		switch {
		case i < 0:
		case m.Withdrawn != "":
			c.t.Feedback = slices.Delete(c.t.Feedback, i, i+1)
		case m.Remark != "" && !isShortAnswer(c, m.Remark):
			dropRemark(c, c.t.Feedback[i].By, m)
			c.t.Feedback = slices.Delete(c.t.Feedback, i, i+1)
		default:
			c.t.Feedback[i].Body, c.t.Feedback[i].Mention = m.Body, m.Mention
		}
	}
}

// isShortAnswer reports whether a remark answers the open question: "yes", or +1.
func isShortAnswer(c *change, r state.Remark) bool {
	return c.t.Phase == state.PhaseAwaitingAnswer && (r == state.RemarkReaction || r == state.RemarkApproving)
}

// dropRemark handles a gathered comment that was edited and requests nothing now, like one that was written so.
func dropRemark(c *change, by state.Person, m state.Comment) {
	c.approveComment(strconv.FormatInt(m.ID, 10))
	addToDiscussion(c, state.DiscussionComment{ID: m.ID, By: by, At: c.e.Now, Body: m.Body})
	if m.Remark == state.RemarkApproving && c.t.Phase.AwaitsApproval() {
		postHowToApprove(c, by)
	}
}

// postProvenance enqueues the statement about the published changes, which replaces the previous one on the pull request. A restored errand
// knows less than the previous one says, until it publishes something.
func (c *change) postProvenance() {
	if last := c.t.LastPublication(); c.t.PR != nil && last != nil && !last.At.Before(c.p.Restored) && !cannotComment(c.t) {
		c.t.PR.StatementFailures = 0
		c.enqueuePost(provenanceKey(c), state.Post{Kind: state.PostProvenance, OnPR: true})
	}
}

func provenanceKey(c *change) string { return fmt.Sprintf("provenance-%d", c.t.PR.Number) }

// maxStatementFailures is how often the statement is posted again after it failed for good, until errand publishes something again.
const maxStatementFailures = 5

// isStatementFailure reports whether the job failed that posts the statement about the published changes.
func isStatementFailure(c *change) bool {
	post := c.e.Post()
	return c.t.PR != nil && of[event.StepFailed](c).Failure.Job == state.JobPost && post != nil && post.Kind == state.PostProvenance
}

// retryStatement posts the statement again after a while. Meanwhile, and when errand gives up, the status comment says why it is missing.
func retryStatement(c *change) {
	noteFailure(c)
	c.t.PR.Unstated = c.note
	if c.t.PR.StatementFailures++; c.t.PR.StatementFailures > maxStatementFailures || cannotComment(c.t) {
		return
	}
	j := c.job(state.JobPost, state.LaneTalk, provenanceKey(c))
	j.Post, j.Args.Number = c.e.Post(), c.t.PR.Number
	j.NotBefore = c.e.Now.Add(min(statusRetryDelay*c.p.Backoff<<(c.t.PR.StatementFailures-1), c.p.BackoffMax))
	c.enqueue(j)
}

// postUnconfirmed enqueues the statement if it is not known whether the last changeset was published, and nothing else will tell.
func (c *change) postUnconfirmed() {
	if n := len(c.t.Publications); n > 0 && c.t.Publications[n-1].Unconfirmed {
		c.postProvenance()
	}
}

// replyWithoutTask answers commands on an issue without a task with a reaction and a comment. The comment's key names only the reason: the step
// that posts it leaves it out where it was posted lately.
func replyWithoutTask(reason string) func(*change) {
	return func(c *change) {
		if hasReaction(c) {
			return // to an earlier command of the comment
		}
		c.react(state.ReactionConfused)
		j := c.job(state.JobPost, state.LaneTalk, "reply-"+reason)
		j.Post = &state.Post{Kind: state.PostReply, Reason: reason, By: c.e.By}
		if c.e.Repo != nil {
			j.Args.Installation, j.Args.Owner, j.Args.Name = c.e.Installation, c.e.Repo.Owner, c.e.Repo.Name
		}
		c.enqueue(j)
	}
}
