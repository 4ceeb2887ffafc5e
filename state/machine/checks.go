package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// readChecks enqueues reading the checks of the pull request's head: a webhook reports one check only. The first is read at once; later
// there may be hundreds.
func readChecks(c *change) {
	settle := checksSettle
	if c.t.PR.Checks != "" {
		settle = max(settle, checksGaps*c.p.StatusGap/2)
	}
	enqueueChecks(c, c.e.Now.Add(settle), 0)
}

func enqueueChecks(c *change, at time.Time, reads int) {
	j := c.job(state.JobChecks, state.LaneTalk, "checks")
	j.NotBefore, j.Args.Reads = at, reads
	c.enqueue(j)
}

const (
	// checksSettle is the time in which webhooks of several checks are gathered, and checksGaps the same in halves of StatusGaps if some
	// were read before.
	checksSettle, checksGaps = time.Second, 3
	// checksLater is how long after the start of a head its checks are read if no webhook reports one.
	checksLater = 2 * time.Minute
	// checksRetry is the time after which they are read again if they could not be.
	checksRetry = time.Hour
	// maxChecksReads is the maximum number of reads in a row that no webhook asked for and that changed nothing.
	maxChecksReads = 30
)

// wantsChecksRead reports whether the checks that were read are those of the present head, and differ from the stored ones or are to be
// read again.
func wantsChecksRead(c *change) bool {
	read := of[event.ChecksRead](c)
	return hasPR(c) && (read.Head == "" || read.Head == c.t.Branch.Head) && (checksDiffer(c) || isReadAgain(c) || wantsExamination(c))
}

// checksDiffer reports whether the checks that were read differ from those that the status comment shows.
func checksDiffer(c *change) bool {
	read, pr := of[event.ChecksRead](c), c.t.PR
	return !read.Stale && (hasNewFlaky(c) || pr.Checks != read.Checks || pr.ChecksReason != read.Reason || pr.ChecksOptional != read.Optional || pr.DCO != read.DCO)
}

func isReadAgain(c *change) bool {
	read := of[event.ChecksRead](c)
	return !read.Again.IsZero() && c.t.PR.State == state.PROpen && (read.Reads < maxChecksReads || checksDiffer(c))
}

// storeChecks stores the checks that were read, and schedules the next read if nothing needs to be reported until they are decided.
func storeChecks(c *change) {
	read, pr := of[event.ChecksRead](c), c.t.PR
	reads := read.Reads + 1
	if checksDiffer(c) {
		reads = 1
	}
	if isReadAgain(c) {
		enqueueChecks(c, read.Again, reads)
	}
	if wantsExamination(c) {
		enqueueExamination(c)
	}
	if !read.Stale {
		storeFlaky(c, read.Flaky)
		if r := pr.Repair; read.Checks == "success" && r != nil { // what fails later is new
			r.Waits = 0
			endHandover(r)
		}
		pr.Checks, pr.ChecksReason, pr.ChecksOptional, pr.DCO = read.Checks, read.Reason, read.Optional, read.DCO
		switch {
		case !read.Pending:
			pr.Undecided = time.Time{}
		case pr.Undecided.IsZero():
			pr.Undecided = c.e.Now
		}
	}
}

// distrustChecks notes that the checks could not be read, so that those which were read before may be outdated. They are read again once, or as
// long as people may have to learn that they do not end.
func distrustChecks(c *change) {
	const why = "errand could not read the checks from GitHub"
	if !isPRState(state.PROpen)(c) {
		return
	}
	awaits := mayExamine(c) && !c.t.PR.Undecided.IsZero() && !slices.Contains(c.t.PostedOnce, pendingKey(c))
	if c.t.PR.ChecksReason != why || awaits {
		enqueueChecks(c, c.e.Now.Add(checksRetry), 0)
	}
	c.t.PR.Checks, c.t.PR.ChecksReason, c.t.PR.ChecksOptional = "unknown", why, ""
}

// followHead forgets the results of the checks of another head. If no webhook comes, the checks of a head that is new here, or of a pull
// request that is, are read after a while: their webhooks may have come before they were known, or perhaps none will come.
func followHead(c *change) {
	dropOutdated(c)
	old := c.before
	if old == nil || c.t.PR == nil || c.t.Ended() {
		return
	}
	moved := old.Branch.Head != c.t.Branch.Head
	rests := c.t.Phase == state.PhasePROpen && old.Phase != state.PhasePROpen
	if moved {
		c.t.PR.Checks, c.t.PR.ChecksReason, c.t.PR.ChecksOptional, c.t.PR.DCO = "", "", "", false
		c.t.PR.Undecided = time.Time{}
		forgetReruns(c)
	}
	if c.t.PR.State == state.PROpen && (moved || old.PR == nil || old.PR.State != state.PROpen || old.Gen != c.t.Gen) {
		if c.t.PR.Checks != "" { // nobody listened meanwhile
			readChecks(c)
			return
		}
		c.scheduleDue(state.DueChecks, c.t.Branch.Head, c.e.Now.Add(checksLater))
		return
	}
	if rests && c.t.PR.State == state.PROpen && c.t.PR.Checks == checksFailed { // they may have failed while the task did something else
		readChecks(c)
	}
}

// dropOutdated drops failing checks and conflicts of another head than the present one, unless a run has them already.
func dropOutdated(c *change) {
	c.t.Feedback = slices.DeleteFunc(c.t.Feedback, func(f state.Feedback) bool {
		return f.TakenBy == "" && f.Head != "" && f.Head != c.t.Branch.Head
	})
	if isIdleRound(c) {
		reason := fmt.Sprintf("nothing is left to do in round %d", c.t.Round)
		c.dropRun(reason)
		c.dropWork = true
		c.jobs = slices.DeleteFunc(c.jobs, func(j state.Job) bool { return j.Kind == state.JobLaunch })
		c.enterPhase(state.PhasePROpen, reason)
		c.enqueueGather(c.e.Now.Add(c.p.Gather)) // a job for it may be among the dropped ones
	}
}

// isIdleRound reports whether a run of a round is about to be launched that has nothing to do, and no run of that round has begun.
func isIdleRound(c *change) bool {
	r := c.t.Run
	if c.t.Phase != state.PhaseAddressingReview || r == nil || r.State != state.RunLaunching || c.t.Work != nil || c.t.PR == nil || c.t.PR.InRound {
		return false
	}
	isWork := func(f state.Feedback) bool { return f.Kind != state.FeedbackCondition }
	began := func(o state.Run) bool { return o.Kind == r.Kind && o.Round == r.Round && !o.Started.IsZero() }
	return !slices.ContainsFunc(c.t.Feedback, isWork) && !slices.ContainsFunc(c.t.Runs, began)
}

// isRequest reports whether somebody wants other changes. errand finds failing checks and conflicts by itself.
func isRequest(f state.Feedback) bool {
	return f.Kind != state.FeedbackCI && f.Kind != state.FeedbackConflict
}

// isOwnFinding reports whether errand began a round for the feedback by itself.
func isOwnFinding(f state.Feedback) bool { return f.Kind == state.FeedbackCI || f.Base != "" }

// areChecksUnread reports whether a head has been known for a while, but nothing about its checks.
func areChecksUnread(c *change) bool {
	return isDue(state.DueChecks)(c) && isPRState(state.PROpen)(c) && of[event.Due](c).Head == c.t.Branch.Head && c.t.PR.Checks == ""
}

// checksFailed is the state of checks that are repaired.
const checksFailed = "failure"

// maxRepairs is the maximum number of agent runs in a row that repair failing checks, even if the repository's limit is higher.
const maxRepairs = 3

// repairs returns what was done about failing checks. It may be changed.
func repairs(c *change) *state.CIRepair {
	if c.t.PR.Repair == nil {
		c.t.PR.Repair = &state.CIRepair{}
	}
	return c.t.PR.Repair
}

// wantsExamination reports whether the checks that were read failed and have to be repaired, or handed over, now, or do not end, which was
// not said yet. While a round is under way, its end decides.
func wantsExamination(c *change) bool {
	read := of[event.ChecksRead](c)
	if !read.Settled || !mayExamine(c) || c.t.Phase != state.PhasePROpen {
		return false
	}
	if read.Checks == checksFailed {
		return mayRepair(c)
	}
	return !slices.Contains(c.t.PostedOnce, pendingKey(c))
}

// pendingKey is the key of the comment about checks of the head that do not end.
func pendingKey(c *change) string { return "checks-pending-" + state.ShortHash(c.t.Branch.Head) }

// namePending asks people, once per head, to look at checks that do not end. What is reported later is treated as before.
func namePending(c *change, notes []state.CheckNote) {
	c.note = "people are asked to look at checks that do not end"
	if key := pendingKey(c); c.markOnce(key) {
		c.enqueuePost(key, state.Post{Kind: state.PostChecks, OnPR: true, Checks: notes, By: c.personToNotify()})
	}
}

func enqueueExamination(c *change) { c.enqueue(c.job(state.JobExamine, state.LaneWork, "examine")) }

// mayExamine reports whether people have not been asked to take over the checks.
func mayExamine(c *change) bool {
	return isPRState(state.PROpen)(c) && (c.t.PR.Repair == nil || !c.t.PR.Repair.HandedOver)
}

// mayRepair reports whether errand still has to do with failing checks.
func mayRepair(c *change) bool { return mayExamine(c) && c.t.Settings.Limits.Checks > 0 }

func isExamined(c *change) bool {
	return mayExamine(c) && of[event.ChecksExamined](c).Head == c.t.Branch.Head
}

// applyExamination stores which checks are to run again before GitHub is asked, waits for those that do, begins a round that repairs the other
// ones, or asks people to take over. If errand repairs none, it only names checks that do not end.
func applyExamination(c *change) {
	e := of[event.ChecksExamined](c)
	fails := func(n state.CheckNote) bool { return n.Fault != state.CheckPending }
	if !mayRepair(c) {
		if len(e.Notes) > 0 && !slices.ContainsFunc(e.Notes, fails) {
			namePending(c, e.Notes)
		}
		return
	}
	r := repairs(c)
	intends := false
	for _, x := range e.Reran {
		r.StoreRerun(x)
		intends = intends || x.Intended
		if !x.Intended { // nobody has waited for it yet
			c.t.PR.Undecided = time.Time{}
		}
	}
	if intends {
		c.note = "errand is about to have checks run again"
		enqueueExamination(c)
		return
	}
	if !e.Again.IsZero() {
		r.Waits++
		c.note = "errand waits for checks that run again"
		enqueueChecks(c, e.Again, 0)
		return
	}
	if c.t.PR.Checks != checksFailed && (len(e.Failures) > 0 || slices.ContainsFunc(e.Notes, fails)) {
		c.note = "the checks have changed since they were read"
		return
	}
	if len(e.Failures) > 0 && mayLaunchRepair(c) {
		beginRepair(c)
		return
	}
	switch {
	case slices.ContainsFunc(e.Notes, fails):
		handOver(c, e.Notes, "")
	case len(e.Notes) > 0:
		namePending(c, e.Notes)
	}
}

// mayLaunchRepair reports whether an agent may try to repair the checks of this head.
func mayLaunchRepair(c *change) bool {
	r := repairs(c)
	return r.Tried != c.t.Branch.Head && r.Runs < min(maxRepairs, c.t.Settings.Limits.Checks) && !reachedRunLimit(c)
}

// beginRepair begins a round that repairs failing checks, and does what else people have asked for meanwhile.
func beginRepair(c *change) {
	for _, f := range of[event.ChecksExamined](c).Failures {
		c.feedback(f)
	}
	beginRound(c)
	r := repairs(c)
	r.Runs++
	r.Tried = c.t.Branch.Head
	c.note = fmt.Sprintf("review round %d repairs failing checks, run %d in a row", c.t.Round, r.Runs)
}

// handOver asks people to look at failing checks, once until one of them does something.
func handOver(c *change, notes []state.CheckNote, reason string) {
	if !isPRState(state.PROpen)(c) {
		return
	}
	r := repairs(c)
	r.HandedOver = true
	c.note = "people are asked to look at failing checks"
	key := fmt.Sprintf("checks-%s-%d", state.ShortHash(c.t.Branch.Head), r.Series) // the same after a restoration from a backup
	c.enqueuePost(key, state.Post{Kind: state.PostChecks, OnPR: true, Checks: notes, Text: reason, By: c.personToNotify()})
}

// resetRepairs begins a new series of repairs, because a person pushed, reviewed, or gave a command.
func resetRepairs(c *change) {
	if c.t.PR != nil && c.t.PR.Repair != nil {
		r := c.t.PR.Repair
		if r.HandedOver && c.t.PR.Checks == checksFailed { // no webhook comes
			readChecks(c)
		}
		r.Runs, r.Tried, r.Waits = 0, "", 0
		endHandover(r)
	}
	if c.t.PR != nil { // they may have begun again
		c.t.PR.Undecided = time.Time{}
	}
}

// endHandover lets errand handle failing checks again after people were asked to take over. The next comment that asks them is another one.
func endHandover(r *state.CIRepair) {
	if r.HandedOver {
		r.HandedOver = false
		r.Series++
	}
}

// isAct reports whether the event is a review, a command or a new trigger, not only a comment.
func isAct(c *change) bool {
	switch c.e.Kind() {
	case event.KindReviewed, event.KindTriggered:
		return true
	case event.KindCommented:
		return len(of[event.Commented](c).Orders) > 0
	}
	return false
}

// hasPersonsFeedback reports whether people have asked for something that no run has received yet.
func hasPersonsFeedback(c *change) bool {
	return slices.ContainsFunc(c.t.PendingFeedback(), func(f state.Feedback) bool { return f.By.ID != 0 && !f.By.Bot })
}

// storeFlaky stores that checks succeeded when they were run again.
func storeFlaky(c *change, names []string) {
	for _, name := range names {
		if r := repairs(c); !slices.Contains(r.Flaky, name) {
			r.Flaky = append(r.Flaky, name)
		}
	}
}

func hasNewFlaky(c *change) bool {
	return slices.ContainsFunc(of[event.ChecksRead](c).Flaky, func(name string) bool {
		return c.t.PR.Repair == nil || !slices.Contains(c.t.PR.Repair.Flaky, name)
	})
}

// forgetReruns forgets what ran again on another head.
func forgetReruns(c *change) {
	if r := c.t.PR.Repair; r != nil {
		r.Reran, r.Flaky, r.Waits = nil, nil, 0
	}
}
