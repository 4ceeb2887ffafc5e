// Package machine decides how a task changes: [Next] takes a task and an event, and returns the changed task and the
// jobs that follow. It is pure: it reads no clock, no store and no network. [Table] lists every transition;
// docs/transitions.md is generated from it.
//
// Start with the files table_*.go, which have the rows, and guards.go, which has their conditions. The actions of a row
// are in the file of their subject, for example approvals.go or publish.go.
package machine

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// MaxOrders is the maximum number of commands in one comment.
const MaxOrders = 10

// Next returns the effect of an event on a task. It is pure: the same arguments give the same change, and t (nil if
// there is no task) is not modified. The first row of Table that fits decides. An event that fits no row changes
// nothing, and the change's note says so.
func Next(t *state.Task, e event.Event, p Policy) Change {
	if needsVet(e, t) {
		return Change{Jobs: []state.Job{vetJob(e)}, Note: "the permission of " + e.By.Login + " is checked first"}
	}
	switch begins := e.Kind() == event.KindTriggered; {
	case e.By.Operator && !begins && t == nil:
		return Change{Note: "there is no task for the command"}
	case e.By.Operator && begins && t != nil:
		return Change{Note: "the issue has a task"}
	}
	c := &change{e: e, p: p, before: t}
	if p, ok := e.Payload.(event.RunEnded); ok {
		c.result = &p.Result
	}
	if t != nil {
		c.t, c.hadIdleVM = t.Clone(), t.HasIdleVM()
		correctResult(c)
		mergeConclusion(c)
		handleUnreadableBlock(c)
		correctConclusion(c)
	}
	if e.Kind() == event.KindCommented && len(event.Of[event.Commented](e).Orders) > 0 && e.Comment().Withdrawn == "" &&
		(t == nil || e.Permission.CanWrite()) {
		applyCommands(c)
	} else {
		applyRow(c, "")
	}
	return finishChange(c)
}

// change collects the effects of an event while its rows are applied.
type change struct {
	t *state.Task
	e event.Event
	// result is the result of the run that ended, corrected by what errand knows; nil for other events.
	result   *state.RunResult
	o        state.Order // the command being applied, if the event is a comment
	p        Policy
	jobs     []state.Job
	dropWork bool
	dropDue  bool
	dropText bool
	matched  bool
	before   *state.Task // as it was before the event, nil if there was none
	// hadIdleVM reports whether the task had an idle VM before the event.
	hadIdleVM bool
	answer    string // to a command that was given on errand's pages
	note      string
}

// applyCommands applies the commands of one comment in turn.
func applyCommands(c *change) {
	all := of[event.Commented](c)
	for _, o := range all.Orders[:min(len(all.Orders), MaxOrders)] {
		c.o = o
		applyRow(c, o.Verb)
	}
	if c.t != nil && (len(all.Skipped) > 0 || all.MoreSkipped > 0 || len(all.Orders) > MaxOrders) {
		c.reply(state.ReplyTooMany)
	}
	if c.t != nil && c.matched && c.e.Comment() != nil && !hasReaction(c) {
		c.react(state.ReactionEyes)
	}
}

// hasReaction reports whether the event already gets a reaction.
func hasReaction(c *change) bool {
	return slices.ContainsFunc(c.jobs, func(j state.Job) bool { return j.Kind == state.JobReact })
}

// applyRow applies the first row that fits.
func applyRow(c *change, verb state.Verb) {
	for i := range table {
		r := &table[i]
		if r.On != c.e.Kind() || r.Verb != verb || !r.fits(c) {
			continue
		}
		c.matched = true
		storeUnknownOutcome(c)
		if c.t != nil && isAuthorized(c) {
			c.t.UnattendedLaunches, c.t.Outages = 0, 0
			if hasPR(c) && isPersonsAct(c) {
				c.t.PR.Updates = 0
			}
			if hasPR(c) && isAct(c) {
				resetRepairs(c)
			}
		}
		if c.t != nil && isStepSuccess(c) {
			c.t.Outages = 0
		}
		hideFromPublic(c)
		r.do(c)
		if c.note == "" {
			c.note = r.Doc
		}
		return
	}
}

// hideFromPublic stores that the task's repository is public if the event says so. That it is private is stored from a webhook
// about the repository itself, or a sweep, only: other webhooks may be old, and comments name costs in private repositories.
func hideFromPublic(c *change) {
	if r := c.e.Repo; c.t != nil && r != nil && r.ID == c.t.Key.Repo && !r.Private {
		c.t.Repo.Private = false
	}
}

// finishChange converts the collected change into a Change. If a row was applied, the task's visible version increases and its
// status comment is scheduled for an update.
func finishChange(c *change) Change {
	if !c.matched || c.t == nil {
		note := c.note
		if note == "" {
			note = fmt.Sprintf("%s has no effect here", c.e.Kind())
		}
		return Change{Jobs: c.jobs, Note: note}
	}
	keepPausedSince(c)
	followHead(c)
	followBase(c)
	followFinish(c)
	if !needsNoUpdate(c) && !c.isStatusFailure() {
		c.t.Visible++
	}
	if needsStatusUpdate(c) && !leavesStatusJob(c) {
		c.enqueue(statusJob(c))
	}
	if c.t.HasIdleVM() && (!c.hadIdleVM || c.dropWork) {
		scheduleIdleCheck(c)
	}
	boundTexts(c.t)
	return Change{Task: c.t, Jobs: c.jobs, DropWork: c.dropWork, DropDue: c.t.Ended() || c.dropDue, DropTexts: c.dropText,
		Answer: c.answer, Note: c.note}
}

// keepPausedSince keeps since when a task has waited for a pause while it checks again whether the pause is in effect: the wait is not
// shown then, but if the step finds it again, it did not begin anew.
func keepPausedSince(c *change) {
	if c.before == nil {
		return
	}
	since := c.before.PausedSince
	if w := c.before.Waiting; w != nil {
		since = time.Time{}
		if w.Kind == state.WaitPaused {
			since = w.Since
		}
	}
	c.t.PausedSince = time.Time{}
	switch w := c.t.Waiting; {
	case since.IsZero() || c.t.Gen != c.before.Gen || c.t.Phase != c.before.Phase:
	case w == nil && (c.t.Run == nil || c.t.Run.State == state.RunLaunching):
		c.t.PausedSince = since
	case w != nil && w.Kind == state.WaitPaused:
		w.Since = since
	}
}

// progressGaps is the number of StatusGaps between two edits of the status comment that show nothing but the last
// activity, or why the checks are as they are: GitHub limits an App's writes per hour, and people need them for other things.
const progressGaps = 6

// needsNoUpdate reports whether the event changed nothing that people need to see in the status comment.
func needsNoUpdate(c *change) bool {
	switch c.e.Kind() {
	case event.KindStatusSent, event.KindModelCalled, event.KindVMWanted, event.KindPurged: // the next progress event shows the cost, too
		return true
	case event.KindChecksChanged, event.KindBaseMoved: // the read shows what changed
		return true
	case event.KindChecksRead, event.KindPRChanged, event.KindPRFinished: // read again without a change
		return c.before.PR != nil && reflect.DeepEqual(c.before.PR, c.t.PR)
	case event.KindBaseRead:
		return c.before.Branch.Head == c.t.Branch.Head && c.before.Phase == c.t.Phase && c.before.PR.Conflict == c.t.PR.Conflict
	case event.KindDue:
		return isDue(state.DueIdle)(c) || isDue(state.DueForget)(c) || isDue(state.DueChecks)(c) || isDue(state.DueDraft)(c) || isDue(state.DueSpan)(c) && c.t.Run != nil
	case event.KindProgress, event.KindToolCalled:
		return c.e.Now.Before(c.t.Status.At.Add(progressGaps * c.p.StatusGap))
	case event.KindThumb: // the check of the approval shows whether it counts
		return c.e.Candidate() != nil && c.t.Phase.AwaitsApproval()
	case event.KindCommented: // comments by users without write access, and refused commands of the operator
		return !isAuthorized(c) && !c.e.Comment().Mention || c.answer != "" && c.answer != state.ReplyBudgetRaised
	}
	return false
}

// needsStatusUpdate reports whether the status comment must be written again.
func needsStatusUpdate(c *change) bool {
	if cannotComment(c.t) || !c.t.Purged.IsZero() { // of a purged task nothing is left to show: the comment stays as it is
		return false
	}
	return c.t.Status.Shown < c.t.Visible
}

// leavesStatusJob reports whether the job of the status comment, which an earlier event enqueued, need not come earlier because of this one:
// each of hundreds of checks may change what the comment says.
func leavesStatusJob(c *change) bool {
	return c.before != nil && c.before.Status.Shown < c.before.Visible && (c.e.Kind() == event.KindChecksChanged || explainsChecks(c))
}

// explainsChecks reports whether the checks that were read have the result that was known, perhaps for another reason.
func explainsChecks(c *change) bool {
	if c.e.Kind() != event.KindChecksRead || c.before == nil || c.before.PR == nil {
		return false
	}
	return c.before.PR.Checks == c.t.PR.Checks && c.before.PR.DCO == c.t.PR.DCO
}

// statusJob returns the coalesced job of the status comment, due StatusGap after the last edit, or later if little changed.
func statusJob(c *change) state.Job {
	j := c.job(state.JobStatus, state.LaneStatus, "status")
	if at := c.t.Status.At; !at.IsZero() {
		j.NotBefore = at.Add(c.p.StatusGap)
		if explainsChecks(c) {
			j.NotBefore = at.Add(progressGaps * c.p.StatusGap)
		}
	}
	if c.isStatusFailure() { // the cause of the failure may take a while to pass
		j.NotBefore = c.e.Now.Add(statusRetryDelay * c.p.Backoff)
	}
	return j
}

// statusRetryDelay is the delay after a failure to write the status comment, in units of Policy.Backoff.
const statusRetryDelay = 5

// endRetries is the maximum number of retries of the status comment of a task that ended long ago.
const endRetries = 10

// isEndUnshown reports whether the status comment of an ended task could not be written and should be retried. The
// retries are limited, because the issue may be locked permanently.
func isEndUnshown(c *change) bool {
	return c.isStatusFailure() && (c.e.Now.Before(c.t.End.At.Add(c.p.KeepAfterEnd)) || c.t.Status.Failed < endRetries)
}

// isStatusFailure reports whether the job of the status comment failed permanently.
func (c *change) isStatusFailure() bool {
	return of[event.StepFailed](c).Failure.Job == state.JobStatus
}

// enterPhase moves the task to a phase and adds it to the history.
func (c *change) enterPhase(phase state.Phase, reason string) {
	if c.t.Phase == phase {
		return
	}
	c.t.Phase, c.t.Since, c.t.Gathering = phase, c.e.Now, nil
	c.t.History = append(c.t.History, state.PhaseChange{Phase: phase, At: c.e.Now, Reason: reason})
	if phase != state.PhaseAwaitingAnswer {
		c.t.Question = nil
	}
	if phase != state.PhaseFailed && !phase.Terminal() {
		c.t.End = nil
	}
	if phase.AwaitsApproval() || phase.Terminal() || phase == state.PhasePROpen || phase == state.PhasePRClosed {
		c.t.Waiting, c.t.Step = nil, ""
	}
}

// nextTrigger returns the trigger of the next life that the event begins. One that the operator begins repeats the request of the
// life before, so that questions go to the person who made it.
func nextTrigger(c *change, via state.TriggerVia, base string) state.Trigger {
	if c.e.By.IsOperator() {
		if c.t.Ended() { // the assignment or the label may be gone
			via = state.TriggerOperator
		}
		return state.Trigger{By: c.t.Trigger.By, Via: via, At: c.e.Now, Base: base, Operator: true}
	}
	if via == state.TriggerOperator { // the life before was begun by the operator, this one is not
		via = state.TriggerMention
	}
	if c.e.By.Operator {
		return state.Trigger{By: state.Person{ID: c.e.By.ID, Login: c.e.By.Login}, Via: via, At: c.e.Now, Base: base}
	}
	return state.Trigger{By: c.e.By, Via: via, At: c.e.At, Base: base}
}

// begunBy returns how a life of the task began, for its history.
func begunBy(c *change, via state.TriggerVia) string {
	if c.e.By.Operator {
		return c.e.By.Handle() + " said retry"
	}
	return fmt.Sprintf("%s by @%s", via, c.e.By.Login)
}

// job returns a job of this task. The key is unique within the task's life.
func (c *change) job(kind state.JobKind, lane state.Lane, key string) state.Job {
	return state.Job{Kind: kind, Task: c.e.Task, Lane: lane, Key: fmt.Sprintf("%d.%s", gen(c), key), Created: c.e.Now}
}

// gen returns the number of the task's life, 1 if there is no task yet.
func gen(c *change) int {
	if c.t == nil {
		return 1
	}
	return c.t.Gen
}

// enqueue enqueues a job.
func (c *change) enqueue(j state.Job) {
	if c.t != nil {
		j.UnknownSince = unknownSince(c.t, j)
	}
	if j.Kind == state.JobStart || j.Kind == state.JobGather || j.Kind == state.JobLaunch {
		j.Vetted = c.e.Vetted
	}
	c.jobs = append(c.jobs, j)
}

// enqueueStep makes a job of LaneWork the task's current step and enqueues it. Version and run make its key unique: the same
// step is repeated in a life, and by several commands of one comment.
func (c *change) enqueueStep(kind state.JobKind) { c.enqueueStepWith(kind, state.JobArgs{}) }

// enqueueStepWith is enqueueStep for a job with arguments.
func (c *change) enqueueStepWith(kind state.JobKind, args state.JobArgs) {
	c.t.Step = kind
	j := c.job(kind, state.LaneWork, fmt.Sprintf("%s-%d.%d", kind, c.t.Version+1, c.t.RunSeq))
	j.Run, j.Args = runID(c), args
	c.enqueue(j)
}

// runID returns the ID of the active run, of the work that is being published, or of the last run.
func runID(c *change) string {
	switch {
	case c.t.Run != nil:
		return c.t.Run.ID
	case c.t.Work != nil:
		return c.t.Work.Run
	}
	for i := len(c.t.Runs) - 1; i >= 0; i-- {
		if c.t.Runs[i].Kind != state.RunCheck {
			return c.t.Runs[i].ID
		}
	}
	return ""
}

// enqueuePost enqueues a comment. key identifies it: equal keys in one life are one comment.
func (c *change) enqueuePost(key string, p state.Post) {
	j := c.job(state.JobPost, state.LaneTalk, key)
	j.Post = &p
	if p.OnPR && c.t.PR != nil { // by the time it is posted the task may be in its next life, with another one
		j.Args.Number = c.t.PR.Number
	}
	c.enqueue(j)
}

// markOnce reports whether key is used for the first time, and stores it.
func (c *change) markOnce(key string) bool {
	if slices.Contains(c.t.PostedOnce, key) {
		return false
	}
	c.t.PostedOnce = appendBounded(c.t.PostedOnce, key, maxSeenIDs)
	return true
}

// scheduleDue enqueues a job that applies a Due event at a time.
func (c *change) scheduleDue(kind state.DueKind, key string, at time.Time) {
	j := c.job(state.JobDue, state.LaneControl, "due-"+string(kind)+"-"+key)
	j.NotBefore = at
	j.Args = state.JobArgs{Due: kind, Key: key}
	c.enqueue(j)
}

// vetJob returns the job that reads the permission of an event's sender from GitHub. The store adds the event to it.
func vetJob(e event.Event) state.Job {
	key := e.ID
	if key == "" {
		key = fmt.Sprintf("%s-%d-%d", e.Kind(), e.By.ID, e.Now.UnixNano())
	}
	return state.Job{Kind: state.JobVet, Task: e.Task, Lane: state.LaneControl, Key: state.VetPrefix + key, Created: e.Now}
}
