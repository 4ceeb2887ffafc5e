package machine

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/errand-bot/errand/state"
)

// MaxOrders bounds the commands that one comment may give.
const MaxOrders = 10

// Next says what an event does to a task. It is pure: the same arguments give the same change, and t
// (nil when there is no task) is not modified. The rows of Table decide; the first one that fits
// wins. An event that fits none changes nothing, and the change's note says so.
func Next(t *state.Task, e state.Event, p Policy) Change {
	if needsVet(e, t) {
		return Change{Jobs: []state.Job{vetJob(e)}, Note: "ask GitHub what " + e.By.Login + " may do"}
	}
	c := &change{e: e, p: p}
	if t != nil {
		c.t, c.rested = t.Clone(), t.Resting()
		correct(c)
		concluded(c)
		unread(c)
	}
	if e.Kind == state.EventCommented && len(e.Orders) > 0 && e.Comment.Withdrawn == "" && (t == nil || e.Permission.CanWrite()) {
		orders(c)
	} else {
		step(c, "")
	}
	return done(c)
}

// change collects what an event does while its rows are applied.
type change struct {
	t    *state.Task
	e    state.Event
	o    state.Order // the order under way, when the event is a comment
	p    Policy
	jobs []state.Job
	drop bool
	hit  bool
	// rested says that the task had an idle VM before.
	rested bool
	note   string
}

// orders applies the commands of one comment in turn.
func orders(c *change) {
	for _, o := range c.e.Orders[:min(len(c.e.Orders), MaxOrders)] {
		c.o = o
		step(c, o.Verb)
	}
	if c.e.More += max(0, len(c.e.Orders)-MaxOrders); c.t != nil && (len(c.e.Left) > 0 || c.e.More > 0) {
		c.reply(state.ReplyTooMany)
	}
	if c.t != nil && c.hit && c.e.Comment != nil && !reacted(c) {
		c.react("eyes")
	}
}

// reacted reports whether the event gets a reaction already.
func reacted(c *change) bool {
	return slices.ContainsFunc(c.jobs, func(j state.Job) bool { return j.Kind == state.JobReact })
}

// step applies the first row that fits.
func step(c *change, verb state.Verb) {
	for i := range table {
		r := &table[i]
		if r.On != c.e.Kind || r.Verb != verb || !r.fits(c) {
			continue
		}
		c.hit = true
		doubt(c)
		if c.t != nil && allowed(c) {
			c.t.Unasked, c.t.Outages = 0, 0
		}
		if c.t != nil && steps(c) {
			c.t.Outages = 0
		}
		r.do(c)
		if c.note == "" {
			c.note = r.Doc
		}
		return
	}
}

// done turns the collected change into a Change. A task whose rows fired counts one more visible
// version, and its status comment is to be brought up to date.
func done(c *change) Change {
	if !c.hit || c.t == nil {
		note := c.note
		if note == "" {
			note = fmt.Sprintf("%s does nothing here", c.e.Kind)
		}
		return Change{Jobs: c.jobs, Note: note}
	}
	if !unseen(c) && !c.statusFailed() {
		c.t.Visible++
	}
	if statusDue(c) {
		c.add(statusJob(c))
	}
	if c.t.Resting() && (!c.rested || c.drop) {
		park(c)
	}
	boundTexts(c.t)
	return Change{Task: c.t, Jobs: c.jobs, DropWork: c.drop, DropDue: c.t.Ended(), Note: c.note}
}

// progressGaps is how many StatusGaps lie between two edits of the status comment that show nothing
// but signs of life: GitHub bounds what an App writes in an hour, and people need it for other things.
const progressGaps = 6

// unseen reports whether the event changed nothing that people would miss in the status comment.
func unseen(c *change) bool {
	switch c.e.Kind {
	case state.EventStatusSent, state.EventSpent: // the next sign of life shows the money, too
		return true
	case state.EventDue:
		return due(state.DueIdle)(c) || due(state.DueForget)(c) || due(state.DueSpan)(c) && c.t.Run != nil
	case state.EventProgress, state.EventCalled:
		return c.e.Now.Before(c.t.Status.At.Add(progressGaps * c.p.StatusGap))
	case state.EventThumb: // whether it counts shows when it has been checked
		return c.e.Candidate != nil && c.t.Phase.AwaitsApproval()
	case state.EventCommented: // strangers' talk
		return !allowed(c) && !c.e.Comment.Mention
	}
	return false
}

// statusDue reports whether the status comment has to be written again.
func statusDue(c *change) bool {
	if mute(c.t) {
		return false
	}
	return c.t.Status.Shown < c.t.Visible
}

// statusJob makes the coalesced job of the status comment, StatusGap after the last edit.
func statusJob(c *change) state.Job {
	j := c.job(state.JobStatus, state.LaneStatus, "status")
	if at := c.t.Status.At; !at.IsZero() {
		j.NotBefore = at.Add(c.p.StatusGap)
	}
	if c.statusFailed() { // what makes it fail does not pass at once
		j.NotBefore = c.e.Now.Add(statusPause * c.p.Backoff)
	}
	return j
}

// statusPause is how long the status comment rests after it could not be written, in Policy.Backoff.
const statusPause = 5

// endRetries is how often the status comment of a task that ended long ago is tried again.
const endRetries = 10

// endUnshown reports whether the status comment of an ended task could not be written. It is not tried
// for ever: the issue may be locked for good.
func endUnshown(c *change) bool {
	return c.statusFailed() && (c.e.Now.Before(c.t.End.At.Add(c.p.KeepAfterEnd)) || c.t.Status.Failed < endRetries)
}

// statusFailed reports whether the job of the status comment gave up.
func (c *change) statusFailed() bool {
	return c.e.Kind == state.EventStepFailed && c.e.Failure != nil && c.e.Failure.Job == state.JobStatus
}

// to moves the task to a phase and writes the history.
func (c *change) to(phase state.Phase, why string) {
	if c.t.Phase == phase {
		return
	}
	c.t.Phase, c.t.Since = phase, c.e.Now
	c.t.History = append(c.t.History, state.PhaseChange{Phase: phase, At: c.e.Now, Why: why})
	if phase != state.PhaseAwaitingAnswer {
		c.t.Question = nil
	}
	if phase != state.PhaseFailed && !phase.Terminal() {
		c.t.End = nil
	}
	if phase.AwaitsApproval() || phase.Terminal() || phase == state.PhasePROpen {
		c.t.Waiting, c.t.Step = nil, ""
	}
}

// job makes a job of this task. The key is unique within the task's life.
func (c *change) job(kind state.JobKind, lane state.Lane, key string) state.Job {
	return state.Job{Kind: kind, Task: c.e.Task, Lane: lane, Key: fmt.Sprintf("%d.%s", gen(c), key), Created: c.e.Now}
}

// gen returns the number of the task's life, 1 before there is a task.
func gen(c *change) int {
	if c.t == nil {
		return 1
	}
	return c.t.Gen
}

// add enqueues a job.
func (c *change) add(j state.Job) {
	if c.t != nil {
		j.Doubt = doubtOf(c.t, j)
	}
	if j.Kind == state.JobStart || j.Kind == state.JobGather || j.Kind == state.JobLaunch {
		j.Vetted = c.e.Vetted
	}
	c.jobs = append(c.jobs, j)
}

// work makes a job of LaneWork the task's present step and enqueues it. Version and run make its key
// unique: the same step is taken many times in a life, and by several commands of one comment.
func (c *change) work(kind state.JobKind, args ...string) {
	c.t.Step = kind
	j := c.job(kind, state.LaneWork, fmt.Sprintf("%s-%d.%d", kind, c.t.Version+1, c.t.RunSeq))
	j.Run = runID(c)
	if len(args) > 0 {
		j.Args = map[string]string{}
	}
	for i := 0; i+1 < len(args); i += 2 {
		j.Args[args[i]] = args[i+1]
	}
	c.add(j)
}

// runID returns the id of the active run, of the work that is being published, or of the last run.
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

// post enqueues a comment. key names the effect; equal keys of one life are one comment.
func (c *change) post(key string, p state.Post) {
	j := c.job(state.JobPost, state.LaneTalk, key)
	j.Post = &p
	if p.OnPR && c.t.PR != nil { // when it is posted the task may be in its next life, with another one
		j.Args = map[string]string{"number": strconv.Itoa(c.t.PR.Number)}
	}
	c.add(j)
}

// once reports whether key is answered for the first time, and remembers it.
func (c *change) once(key string) bool {
	if slices.Contains(c.t.Answered, key) {
		return false
	}
	c.t.Answered = remember(c.t.Answered, key, maxSeen)
	return true
}

// due enqueues a reminder to ourselves.
func (c *change) due(what state.DueKind, key string, at time.Time) {
	j := c.job(state.JobDue, state.LaneControl, "due-"+string(what)+"-"+key)
	j.NotBefore = at
	j.Args = map[string]string{"what": string(what), "key": key}
	c.add(j)
}

// needsVet reports whether the sender's permission has to be asked first.
func needsVet(e state.Event, t *state.Task) bool {
	if e.Kind == state.EventUntriggered && t == nil {
		return e.Permission == "" // the trigger may still be asked about: this one queues up behind it
	}
	if e.Permission != "" || !e.Kind.NeedsPermission() {
		return false
	}
	if e.Kind == state.EventThumb && e.Candidate != nil && t != nil && t.Phase.AwaitsApproval() {
		return false // the job that checks the approval asks
	}
	if e.Kind == state.EventPlanEdited && !e.Ticked {
		return false // any other edit makes the revision stale, whoever did it
	}
	mention := e.Kind == state.EventCommented && e.Comment.Mention
	return e.Kind == state.EventTriggered || mention || t != nil && !t.Ended()
}

// vetJob makes the job that asks for the permission of an event's sender.
func vetJob(e state.Event) state.Job {
	key := e.ID
	if key == "" {
		key = fmt.Sprintf("%s-%d-%d", e.Kind, e.By.ID, e.Now.UnixNano())
	}
	return state.Job{Kind: state.JobVet, Task: e.Task, Lane: state.LaneControl, Key: state.VetPrefix + key, Created: e.Now, Event: &e}
}
