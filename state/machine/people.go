package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// beginTask creates a task for an authorized trigger, or begins the next life of an ended one. The next life continues the pull
// request of the ended one, if that can still be done.
func beginTask(c *change) {
	if c.t != nil && isAdoptable(c) {
		adopt(c)
		return
	}
	t := beginAnew(c, *c.e.Issue())
	t.Trigger = state.Trigger{By: c.e.By, Via: cmp.Or(c.e.Via, state.TriggerMention), At: c.e.At, Base: c.e.Base()}
	reason := fmt.Sprintf("%s by @%s", t.Trigger.Via, c.e.By.Login)
	if c.e.By.IsOperator() {
		t.Trigger.At, t.Trigger.Operator, reason = operatorTrigger(c), true, "started by the operator"
	}
	c.begin(t, reason)
	c.freeze()
	c.enqueueStep(state.JobStart)
}

// beginAnew returns a task, or the next life of one, that continues nothing of the one before.
func beginAnew(c *change, issue state.Issue) *state.Task {
	t := &state.Task{Key: c.e.Task, Gen: 1}
	if old := c.t; old != nil {
		t.Gen, t.RunSeq, t.Version, t.Visible = old.Gen+1, old.RunSeq, old.Version, old.Visible
		t.VMs, t.SeenIDs, t.SeenUntrustedIDs, t.UsedHashes = old.VMs, old.SeenIDs, old.SeenUntrustedIDs, usedHashes(old)
		t.Replaced, t.Installation, t.Repo = replacedPRs(old), old.Installation, old.Repo
		if s := old.Status; s.Comment != 0 && s.Shown < old.Visible {
			t.Status = s // it does not show the end yet: the new life continues it, so that no outdated comment remains
		}
		c.replaceVM(t)
	}
	t.IssueNode, t.Author = issue.Node, issue.Author
	t.Settings = settings.Default()
	t.Money.CapMicroUSD = t.Settings.Limits.MicroUSD
	t.Context = state.Context{Labels: issue.Labels, IssueType: issue.Type, Milestone: issue.Milestone}
	return t
}

// replaceVM deletes the VM of the ended life: its work is still being saved, or it is being deleted.
func (c *change) replaceVM(t *state.Task) {
	vm := c.t.VM
	if vm == nil {
		return
	}
	c.releaseVM(state.VMEndReplaced)
	old := *vm
	old.EndedAt, old.EndReason = c.e.Now, state.VMEndReplaced
	t.VM, t.VMs = nil, append(t.VMs, old)
}

// begin makes t the task, in its first phase.
func (c *change) begin(t *state.Task, reason string) {
	old := c.t
	c.t = t
	foldEndedLife(c, old)
	storeRepo(c)
	t.Phase, t.Since = state.PhaseQueued, c.e.Now
	t.History = []state.PhaseChange{{Phase: state.PhaseQueued, At: c.e.Now, Reason: reason}}
	c.react(state.ReactionEyes)
	closeReplaced(c)
}

// react adds errand's reaction to the event's subject: a comment, or the issue.
func (c *change) react(content state.Reaction) {
	if c.e.By.Operator {
		return // there is nothing to react to
	}
	j := c.job(state.JobReact, state.LaneTalk, "react-"+string(content)+"-issue")
	if m := c.e.Comment(); m != nil && !m.InIssue {
		j = c.job(state.JobReact, state.LaneTalk, fmt.Sprintf("react-%s-%d", content, m.ID))
		j.Args.Comment, j.Args.Review = m.ID, m.Thread != 0
	}
	j.Args.Reaction = content
	if c.e.Repo != nil { // there may be no task to read these from
		j.Args.Installation, j.Args.Owner, j.Args.Name = c.e.Installation, c.e.Repo.Owner, c.e.Repo.Name
	}
	j.Priority = 1
	c.enqueue(j)
}

// refuseTrigger answers a trigger by a user without write access with a reaction: no task, no comment.
func refuseTrigger(c *change) { c.react(state.ReactionConfused) }

// countIgnored counts an attempt by a user without write access.
func countIgnored(c *change) { c.t.Ignored++ }

// countMention counts mentions by users without write access; the agent does not see the comment.
func countMention(c *change) {
	if c.e.Comment().Mention {
		c.t.Ignored++
	}
}

// triggerWindow is the time within which an assignment or a label belongs to the trigger that started the task: people do several
// of these when they open an issue.
const triggerWindow = time.Minute

// addTrigger answers, once, that the issue already has a task. An assignment or a label right after the task's trigger belongs to it, and
// replaces a mention as the trigger, so that removing it cancels the task.
func addTrigger(c *change) {
	t := &c.t.Trigger
	if c.e.Via == t.Via && c.e.At.After(t.Again) {
		t.Again = c.e.At
	}
	if c.e.Via == event.ViaSweep || c.e.Via == t.Via {
		return
	}
	if c.e.At.Sub(t.At).Abs() < triggerWindow {
		if t.Via == state.TriggerMention {
			t.Via = c.e.Via
		}
		return
	}
	if c.markOnce("one-task") {
		c.reply(state.ReplyOneTask)
	}
}

// freeze stores the issue's text as the sender of the event saw it.
func (c *change) freeze() { c.freezeIssue(*c.e.Issue()) }

// freezeIssue stores an issue's text as the sender of the event vouches for it.
func (c *change) freezeIssue(i state.Issue) {
	frozen := state.Frozen{Title: i.Title, Body: i.Body, Hash: state.FreezeHash(i.Title, i.Body), At: c.e.Now, By: c.e.By, ShownAt: c.e.At}
	if old := c.t.Frozen; old.Matches(i.Title, i.Body) {
		frozen.Hash, frozen.Files = old.Hash, old.Files
	}
	c.t.Frozen = frozen
	c.t.Attachments = slices.DeleteFunc(c.t.Attachments, func(a state.Attachment) bool { return a.Unread != "" }) // to be tried again
	if i.Unvouched {
		c.t.Frozen.By = state.Person{}
	}
}

// storeAttachments stores the attachments that a launch read. The files attached to the frozen text become part of its
// hash, unless a valid revision is already based on it.
func (c *change) storeAttachments(l state.Launch) {
	for _, a := range l.Attachments {
		if !slices.ContainsFunc(c.t.Attachments, func(b state.Attachment) bool { return b.ID == a.ID }) {
			c.t.Attachments = append(c.t.Attachments, a)
		}
	}
	f := &c.t.Frozen
	based := func(p state.Plan) bool { return p.IssueHash == f.Hash && !p.Superseded && p.Stale == "" }
	if len(l.FrozenFiles) > 0 && l.FrozenHash == f.Hash && !slices.ContainsFunc(c.t.Plans, based) {
		f.Files, f.Hash = l.FrozenFiles, state.FreezeHash(f.Title, f.Body, l.FrozenFiles...)
	}
}

// resumeAfterRevertedEdit ends a pause after the edit that caused it was reverted.
func resumeAfterRevertedEdit(c *change) {
	wasPaused := c.t.Waiting != nil && c.t.Waiting.Kind == state.WaitEdit
	c.t.Frozen.Changed = nil
	if c.e.At.After(c.t.Frozen.ShownAt) {
		c.t.Frozen.ShownAt = c.e.At
	}
	if wasPaused {
		c.t.Waiting = nil
	}
	switch {
	case c.e.Via == event.ViaStart && c.t.Step == state.JobStart: // the job found a change that a webhook has since reported
		c.enqueueStep(state.JobStart)
	case wasPaused:
		c.resumeWaiting()
	}
}

// pauseForEdit pauses the task: nothing is approved or posted until a writer comments replan.
func pauseForEdit(c *change) {
	i := c.e.Issue()
	if old := c.t.Frozen.Changed; old != nil && old.Hash == state.FreezeHash(i.Title, i.Body) {
		return // already reported
	}
	c.t.Frozen.Changed = &state.Frozen{Title: i.Title, Body: i.Body, Hash: state.FreezeHash(i.Title, i.Body), At: c.e.Now, By: c.e.By, ShownAt: c.e.At}
	c.t.Waiting = waitingForReplan(c.t.Frozen.Changed)
	if p := c.t.NewestPlan(); p != nil && (c.t.Phase.AwaitsPlan() || c.t.ConsideredPlan() != nil) {
		p.Stale = state.StaleIssueChanged
	}
	c.enqueuePost("edited-"+c.t.Frozen.Changed.Hash, state.Post{Kind: state.PostWaiting, Reason: state.WaitingEdited, By: c.e.By})
}

// isEditOutdated reports whether the issue's text is known as it was after this edit: the event came late. What the job start found is never
// outdated, because the task would wait for nothing then.
func isEditOutdated(c *change) bool {
	if c.e.Via == event.ViaStart {
		return false
	}
	known := c.t.Frozen.ShownAt
	if changed := c.t.Frozen.Changed; changed != nil && changed.ShownAt.After(known) {
		known = changed.ShownAt
	}
	return !c.e.At.IsZero() && c.e.At.Before(known.Truncate(time.Second))
}

// refreeze accepts a writer's edit.
func refreeze(c *change) {
	c.freeze()
	c.feedback(state.Feedback{ID: "edit:" + c.t.Frozen.Hash, Kind: state.FeedbackEdit, By: c.e.By, At: c.e.At, Body: "The issue's title or text was edited; it is as shown above now."})
	if w := c.t.Waiting; w != nil && w.Kind == state.WaitEdit {
		c.t.Waiting = nil
		c.resumeWaiting()
	}
}

// refreezeAndStart accepts an edit that the job start found, and reads everything again.
func refreezeAndStart(c *change) {
	refreeze(c)
	c.enqueueStep(state.JobStart)
}

// refreezeAndRevise starts a new revision for the edited issue.
func refreezeAndRevise(c *change) {
	refreeze(c)
	c.startRevision(c.e.By.Handle() + " edited the issue")
}

// replan reads and freezes the issue again and starts a new revision.
func replan(c *change) {
	if c.e.Issue() != nil {
		c.freeze()
	}
	c.t.Frozen.Changed, c.t.Waiting, c.t.Asked = nil, nil, nil
	if c.o.Text != "" { // the request's reason, which GitHub may not list yet when the discussion is read
		keepComment(c)
	}
	c.dropRun("replanned")
	c.planAgain(c.e.By.Handle() + " asked for a new plan")
}

// planAgain supersedes all revisions and starts a new one of the newest kind of plan.
func (c *change) planAgain(reason string) {
	if c.t.Branch.Head != "" { // commits without a pull request stay where they are
		c.t.Branch, c.t.Work, c.t.Fresh = state.Branch{}, nil, true
		if c.t.VM != nil {
			c.releaseVM(state.VMEndFresh)
		}
	}
	phase := state.PhaseQueued
	for _, p := range c.revisions(state.PlanPublish) {
		p.Superseded = true
	}
	if p := newestOfPlans(c); p != nil {
		p.Superseded = true
		if a := c.t.Approval; a != nil && a.Hash == p.Hash {
			removeApproval(c)
		}
		phase = p.Kind.PlanningPhase()
	}
	rejectHeld(c)
	c.enterPhase(phase, reason)
	c.enqueueStep(state.JobStart)
}

// startRevision returns from a waiting plan to planning.
func (c *change) startRevision(reason string) {
	p := c.t.NewestPlan()
	p.Superseded = true
	rejectHeld(c)
	phase := p.Kind.PlanningPhase()
	if p.Kind == state.PlanPublish {
		phase = c.buildingPhase()
	}
	c.enterPhase(phase, reason)
	c.launchRun(runOfPhase(c.t.Phase))
}

// keepComment stores a comment as feedback for the next run.
func keepComment(c *change) { c.feedback(commentFeedback(c)) }

// commentFeedback returns the feedback of a comment.
func commentFeedback(c *change) state.Feedback {
	m := c.e.Comment()
	return state.Feedback{ID: commentID(m.ID), Kind: state.FeedbackComment, By: c.e.By, At: m.At, Body: commandText(c), OnPR: m.OnPR, Mention: m.Mention, Node: m.Node}
}

// commandText returns the text of the current command, or of the whole comment.
func commandText(c *change) string {
	if c.o.Text != "" {
		return c.o.Text
	}
	return c.e.Comment().Body
}

// keepVouched stores a comment that somebody vouched for; a task that waits for text checks again. While the task is
// queued, its start may have read the discussion already: see removeReadComments.
func keepVouched(c *change) {
	vouch(c)
	if c.t.Phase == state.PhaseQueued && c.t.Waiting != nil {
		recheckWaiting(c)
	}
}

// gatherVouched gathers a comment that somebody gave a 👍 like a comment by that person.
func gatherVouched(c *change) {
	vouch(c)
	extendGathering(c)
}

// vouchedPrefix begins the IDs of feedback about withheld comments that became visible.
const vouchedPrefix = "vouched:"

// commentID and vouchID return the IDs of feedback about a comment on GitHub.
func commentID(comment int64) string { return fmt.Sprintf("comment:%d", comment) }
func vouchID(comment int64) string   { return fmt.Sprintf("%s%d", vouchedPrefix, comment) }

// vouch stores feedback that a withheld comment became visible.
func vouch(c *change) {
	c.feedback(state.Feedback{ID: vouchID(c.e.Comment().ID), Kind: state.FeedbackComment, By: c.e.By, At: c.e.At,
		Body: "I gave a 👍 to a comment that was withheld from you before; it is in the discussion now. Take it into account."})
}

// newlyVouched returns the ID of the first feedback about a comment that became visible, if no run has seen it yet.
func newlyVouched(c *change) (id string, found bool) {
	for _, f := range c.t.PendingFeedback() {
		if strings.HasPrefix(f.ID, vouchedPrefix) {
			return f.ID, true
		}
	}
	return "", false
}

// keepEarlyComment stores a comment on a task that has not begun. Its start reads the discussion, but may have read it before
// the comment arrived: removeReadComments tells the two apart. A task that waits checks again.
func keepEarlyComment(c *change) {
	keepComment(c)
	if c.o.Verb == state.VerbMessage {
		c.react(state.ReactionEyes)
	}
	if c.t.Waiting != nil {
		recheckWaiting(c)
	}
}

// listingLag is how long GitHub may take to list a new comment, and how far its clock may differ from errand's.
const listingLag = time.Minute

// removeReadComments drops the stored comments that the start has read. A comment that was written well before the reading and is
// not in the discussion was withdrawn, and is dropped as well.
func removeReadComments(c *change) {
	read := map[string]bool{}
	for _, m := range c.t.Context.Comments {
		read[commentID(m.ID)], read[vouchID(m.ID)] = true, true
	}
	before := of[event.Started](c).Start.ReadAt.Add(-listingLag)
	c.t.Feedback = slices.DeleteFunc(c.t.Feedback, func(f state.Feedback) bool {
		return f.Kind == state.FeedbackComment && f.TakenBy == "" && (read[f.ID] || f.At.Before(before))
	})
}

// keepMessage stores a message and answers once per run that it is processed later.
func keepMessage(c *change) {
	if r := c.t.Run; c.o.After && r != nil && r.Kind != state.RunCheck {
		c.keepForEnd()
	} else {
		keepComment(c)
	}
	c.react(state.ReactionEyes)
	if c.markOnce("kept-" + runID(c)) {
		c.reply(state.ReplyMessageKept)
	}
}

// feedback stores an item for the next run, once per ID.
func (c *change) feedback(f state.Feedback) {
	for _, old := range c.t.Feedback {
		if old.ID == f.ID {
			return
		}
	}
	c.t.Feedback = append(c.t.Feedback, f)
}

// triggerNoun returns the noun for a withdrawn trigger.
func triggerNoun(via state.TriggerVia) string {
	if via == state.TriggerLabel {
		return "label"
	}
	return "assignment"
}

// byPerson formats the name of a person, if it is known.
func byPerson(who state.Person) string {
	if who.Login == "" {
		return ""
	}
	return " by @" + who.Login
}
