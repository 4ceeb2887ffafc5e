package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// checkCandidate starts the check of a 👍 or a tick against GitHub.
func checkCandidate(c *change) {
	k := *c.e.Candidate()
	k.By = c.e.By
	k.Permission = c.e.Permission
	p := c.planByComment(k.Comment)
	if p == nil { // the result of posting this comment may not be stored yet; the check waits for it
		p = planByShortHash(c, k.Named)
	}
	if p == nil || p.Approved() {
		return
	}
	k.Kind, k.Hash = p.Kind, p.Hash
	checkApproval(c, k)
}

// clearSweptTick clears a ticked box that a sweep found. It is no approval: GitHub names the last editor of a comment, who
// may not be the person who ticked the box.
func clearSweptTick(c *change) {
	if p := c.planByComment(c.e.Comment().ID); p != nil {
		clearUnseenTick(c, p)
	}
}

// clearUnseenTick clears the box of a revision that an unknown person has ticked, and posts a comment about it.
func clearUnseenTick(c *change, p *state.Plan) {
	if !p.Open() || p.Approved() || c.e.Approving {
		return
	}
	c.enqueueUntick(p.Comment)
	if key := fmt.Sprintf("no-%s-%s", p.Short(), state.RejectedUnknownPerson); c.markOnce(key) {
		c.enqueuePost(key, state.Post{Kind: state.PostNotCounted, Reason: state.RejectedUnknownPerson, Hash: p.Hash})
	}
}

// rejectLateThumb answers a 👍 on a revision that was superseded by a change request.
func rejectLateThumb(c *change) {
	p := c.planByComment(c.e.Candidate().Comment)
	if p == nil || !p.Superseded {
		return
	}
	k := *c.e.Candidate()
	k.By, k.Permission, k.Hash = c.e.By, c.e.Permission, p.Hash
	rejectApproval(c, k, state.RejectedChangeRequested)
}

// replyQuotedCommand answers, once per revision, that a command in a quote, in code or in other markup does not count.
func replyQuotedCommand(c *change) {
	if key := "no-" + state.ShortHash(c.newestHash()) + "-" + state.RejectedQuoted; c.markOnce(key) {
		c.enqueuePost(key, state.Post{Kind: state.PostNotCounted, Reason: state.RejectedQuoted, By: c.e.By, Hash: c.newestHash()})
	}
}

// replyQuotedAndGather gathers a comment that has text besides a quoted command.
func replyQuotedAndGather(c *change) {
	replyQuotedCommand(c)
	gatherPlanComment(c)
}

// planByComment returns the revision that a comment shows, or nil.
func (c *change) planByComment(id int64) *state.Plan {
	for i := range c.t.Plans {
		if c.t.Plans[i].Comment == id && id != 0 {
			return &c.t.Plans[i]
		}
	}
	return nil
}

// planByShortHash returns the revision whose hash begins with short, or nil.
func planByShortHash(c *change, short string) *state.Plan {
	for i := range c.t.Plans {
		if p := &c.t.Plans[i]; short != "" && hashMatches(short, p.Hash) {
			return p
		}
	}
	return nil
}

// checkApproveCommand starts the check of an `approve`. One without a hash refers to the newest revision, if that had been
// posted long enough before.
func checkApproveCommand(c *change) {
	p, m := c.t.NewestPlan(), c.e.Comment()
	k := state.Candidate{Comment: m.ID, Reply: m.ID, Named: c.o.Hash}
	k.By, k.Permission, k.Via = c.e.By, c.e.Permission, state.ViaCommand
	k.Given, k.Delivery, k.With, k.Choice = m.At, c.e.Delivery, c.o.With, c.o.Choice
	k.CommentID, k.Node, k.CommentHash = m.ID, m.Node, state.CommentHash(m.Body)
	k.Kind, k.Hash = p.Kind, p.Hash
	if reason := commandRejection(c, p, k); reason != "" {
		rejectApproval(c, k, reason)
		return
	}
	if k.With != "" && k.Kind == state.PlanPublish {
		reviseForCondition(c, k)
		return
	}
	checkApproval(c, k)
}

// commandRejection returns the reason why a written approval does not count according to the store, or "".
func commandRejection(c *change, p *state.Plan, k state.Candidate) string {
	switch {
	case k.Named != "" && !hashMatches(k.Named, p.Hash):
		return state.RejectedOldHash
	case k.Choice > len(p.Approaches):
		return state.RejectedUnknownChoice
	case k.Named != "":
		return ""
	case !p.Posted() || k.Given.Before(p.PostedAt):
		return state.RejectedTooEarly // it was written before this revision was posted
	case len(c.t.Plans) > 1 && k.Given.Before(p.PostedAt.Add(c.p.SettleFor)):
		return state.RejectedTooEarly
	}
	return ""
}

// hashMatches reports whether named, which has at least 7 digits, is a prefix of hash or the reverse.
func hashMatches(named, hash string) bool {
	if len(named) < len(hash) {
		return len(named) >= namedDigits && hash[:len(named)] == named
	}
	return named[:len(hash)] == hash
}

// revisions returns the revisions of a kind.
func (c *change) revisions(k state.PlanKind) []*state.Plan {
	var list []*state.Plan
	for i := range c.t.Plans {
		if c.t.Plans[i].Kind == k {
			list = append(list, &c.t.Plans[i])
		}
	}
	return list
}

// checkApproval enqueues the job that checks an approval against GitHub.
func checkApproval(c *change, k state.Candidate) {
	j := c.job(state.JobApprove, state.LaneControl, fmt.Sprintf("approve-%s-%s-%d-%d", state.ShortHash(k.Hash), k.Via, k.By.ID, k.Given.Unix()))
	j.Candidate = &k
	c.enqueue(j)
}

// maxApprovalDelays is the maximum number of times that an approval waits for comments that are being vetted, since anybody can
// always add more.
const maxApprovalDelays = 10

// isBeingAnswered reports whether somebody has approved the plan, or commented on it, and errand has not finished checking that.
func isBeingAnswered(c *change) bool { return c.e.Approving || c.e.Unvetted }

// hasUnvettedComments reports whether comments that may ask for a change are being vetted, so that the approval must wait.
func hasUnvettedComments(c *change) bool {
	return c.e.Unvetted && c.e.Candidate().Waited < maxApprovalDelays
}

// delayApprovalCheck repeats the check of an approval when the comments before it have been vetted.
func delayApprovalCheck(c *change) {
	k := *c.e.Candidate()
	k.Waited++
	j := c.job(state.JobApprove, state.LaneControl, fmt.Sprintf("approve-%s-%s-%d-%d-waited", state.ShortHash(k.Hash), k.Via, k.By.ID, k.Given.Unix()))
	j.Candidate, j.NotBefore = &k, c.e.Now.Add(time.Duration(k.Waited)*500*time.Millisecond)
	c.enqueue(j)
}

// clearTick clears a tick that does not count. A tick by a user without write access is counted.
func clearTick(c *change) {
	if !isAuthorized(c) {
		c.t.Ignored++
	}
	id := c.e.Comment().ID
	if p := c.planByComment(id); p == nil || p.Stale != "" {
		return
	}
	c.enqueueUntick(id)
}

func (c *change) enqueueUntick(comment int64) {
	j := c.job(state.JobUntick, state.LaneControl, fmt.Sprintf("untick-%d-%d", comment, c.t.Version))
	j.Args.Comment = comment
	c.enqueue(j)
}

// rejectApproval handles an approval that does not count. It answers people with write access once per revision and reason; other
// people and bots get no answer, and their approvals are counted.
func rejectApproval(c *change, k state.Candidate, reason string) {
	if reason == state.StaleEdited || reason == state.StaleIssueChanged || reason == state.StaleDeleted {
		if p := c.planByHash(k.Hash); p != nil {
			p.Stale = firstNonEmpty(p.Stale, reason)
			if reason == state.StaleDeleted {
				p.CommentURL = ""
			}
		}
	}
	if k.Via == state.ViaBox && reason != state.RejectedUnticked { // if the box is ticked now, that is another approval
		c.enqueueUntick(k.Comment)
	}
	if k.By.Bot || !k.Permission.CanWrite() {
		c.t.Ignored++
		return
	}
	if key := fmt.Sprintf("no-%s-%s", state.ShortHash(k.Hash), reason); c.markOnce(key) {
		c.enqueuePost(key, state.Post{Kind: state.PostNotCounted, Reason: reason, By: k.By, Hash: c.newestHash()})
	}
}

func (c *change) newestHash() string {
	if p := c.t.NewestPlan(); p != nil {
		return p.Hash
	}
	return ""
}

func (c *change) planByHash(hash string) *state.Plan { return c.t.PlanByHash(hash) }

// markStale closes a revision for good and says so, once. Without a hash it is the revision of the event's comment.
func (c *change) markStale(hash, reason string) {
	p := c.planByHash(hash)
	if p == nil && c.e.Comment() != nil {
		p = c.planByComment(c.e.Comment().ID)
	}
	if p == nil || p.Stale != "" || p.Superseded || !c.t.Phase.AwaitsApproval() && c.t.ConsideredPlan() == nil ||
		p.Kind != c.t.NewestPlan().Kind || p.Approved() {
		return
	}
	p.Stale = reason
	if key := fmt.Sprintf("no-%s-%s", p.Short(), reason); c.markOnce(key) {
		c.enqueuePost(key, state.Post{Kind: state.PostNotCounted, Reason: reason, By: c.e.By, Hash: p.Hash})
	}
}

// startApproved starts the approved work.
func startApproved(c *change) {
	a := c.e.Candidate().Approval
	a.At = c.e.Now
	if a.Kind == state.PlanPublish {
		publishApproved(c, a)
		return
	}
	if old := c.t.Approval; old != nil && old.Kind != a.Kind {
		a.Before = old
	}
	c.t.Approval = &a
	if a.With != "" {
		c.feedback(state.Feedback{ID: a.ConditionID(), Kind: state.FeedbackCondition, By: a.By, At: a.Given, Body: a.With})
	}
	if a.Kind == state.PlanPreliminary {
		c.enterPhase(state.PhasePlanning, "@"+a.By.Login+" approved the preliminary plan "+state.ShortHash(a.Hash))
	} else {
		c.enterPhase(state.PhaseImplementing, "@"+a.By.Login+" approved the plan "+state.ShortHash(a.Hash))
	}
	c.launchRun(runOfPhase(c.t.Phase))
}

// maxHeld is the maximum number of held approvals.
const maxHeld = 20

// mustHold reports whether a checked approval of the newest revision waits until comments on it have been considered.
func mustHold(c *change) bool {
	p := c.t.NewestPlan()
	return p != nil && c.e.Candidate().Hash == p.Hash && p.Open() && (p.Kind == state.PlanPublish || p.IssueHash == c.t.Frozen.Hash) &&
		(c.t.ConsideredPlan() != nil || c.t.Phase.AwaitsApproval() && c.t.Gathering != nil)
}

// isHeldRevision reports whether a 👍 is on the revision whose comments the agent considers.
func isHeldRevision(c *change) bool {
	p, k := c.t.ConsideredPlan(), c.e.Candidate()
	return p != nil && k != nil && (k.Comment == p.Comment || k.Named != "" && hashMatches(k.Named, p.Hash))
}

// holdApproval stores an approval that is checked again when the comments have been considered.
func holdApproval(c *change) {
	k := *c.e.Candidate()
	k.Waited = 0
	c.t.Held = slices.DeleteFunc(c.t.Held, func(o state.Candidate) bool { return o.By.ID == k.By.ID && o.Via == k.Via })
	if len(c.t.Held) < maxHeld {
		c.t.Held = append(c.t.Held, k)
	}
}

// releaseHeld checks the held approvals again: the comments have left the plan as it is.
func releaseHeld(c *change) {
	held := c.t.Held
	c.t.Held = nil
	for _, k := range held {
		checkApproval(c, k)
	}
}

// rejectHeld answers the held approvals of a revision that is replaced.
func rejectHeld(c *change) {
	held := c.t.Held
	c.t.Held = nil
	for _, k := range held {
		rejectApproval(c, k, state.RejectedRevised)
	}
}

// isApprovedAlready reports whether another approval of the same plan came first.
func isApprovedAlready(c *change) bool {
	return c.t.Approval != nil && c.t.Approval.Hash == c.e.Candidate().Hash
}

// isWithdrawn reports whether a counted approval is reported as no longer valid.
func isWithdrawn(c *change) bool {
	switch of[event.ApprovalRejected](c).Rejection {
	case state.RejectedRevoked, state.RejectedUnticked, state.RejectedCommentDeleted, state.RejectedCommentEdited:
		return true
	}
	return false
}

// revokeApproval returns the task to waiting: the approval was withdrawn before the start, or its author lost the permission.
func revokeApproval(c *change) {
	p, a := c.t.NewestPlan(), c.t.Approval
	c.dropRun("the approval was withdrawn before the start")
	if p == nil || a == nil {
		return
	}
	phase := state.PhaseAwaitingPlanApproval
	if a.Kind == state.PlanPreliminary {
		phase = state.PhaseAwaitingPreliminaryApproval
	}
	removeApproval(c)
	reprocessThumbs(c)
	c.enterPhase(phase, "the approval of @"+a.By.Login+" is no longer valid")
	clearBox(c, p, a)
	if len(c.t.PendingFeedback()) > 0 {
		startGathering(c)
	}
	key := fmt.Sprintf("no-%s-%s-%d", p.Short(), of[event.ApprovalRejected](c).Rejection, a.By.ID)
	if c.markOnce(key) {
		c.enqueuePost(key, state.Post{Kind: state.PostNotCounted, Reason: of[event.ApprovalRejected](c).Rejection, By: a.By, Hash: p.Hash})
	}
}

// clearBox clears the box of an approval that is no longer valid, so that somebody else can tick it.
func clearBox(c *change, p *state.Plan, a *state.Approval) {
	if a.Via == state.ViaBox && of[event.ApprovalRejected](c).Rejection != state.RejectedUnticked {
		c.enqueueUntick(p.Comment)
	}
}

// reprocessThumbs lets every 👍 be processed again: those given besides a withdrawn approval, or right before the task was canceled,
// did not count then, and may count now.
func reprocessThumbs(c *change) {
	isThumb := func(id string) bool { return strings.HasPrefix(id, "thumb:") }
	c.t.SeenIDs, c.t.SeenUntrustedIDs = slices.DeleteFunc(c.t.SeenIDs, isThumb), slices.DeleteFunc(c.t.SeenUntrustedIDs, isThumb)
}

// removeApproval removes the approval with its condition. The one before it is valid again: a detailed plan is based on an
// approved preliminary one.
func removeApproval(c *change) {
	a := c.t.Approval
	c.t.Approval = a.Before
	c.t.Feedback = slices.DeleteFunc(c.t.Feedback, func(f state.Feedback) bool {
		return f.Kind == state.FeedbackCondition && f.ID == a.ConditionID()
	})
	releaseConditions(c)
}

func isReminded(c *change) bool { return c.t.NewestPlan().Reminded }

// isReminderOrEnd reports whether a time limit of a plan has ended.
func isReminderOrEnd(c *change) bool { return isDue(state.DueRemind)(c) || isDue(state.DueExpire)(c) }

// postReminder posts the only reminder that the newest revision is not approved yet.
func postReminder(c *change) {
	c.t.NewestPlan().Reminded = true
	c.enqueuePost("remind-"+state.ShortHash(of[event.Due](c).Plan), state.Post{Kind: state.PostReminder, Hash: of[event.Due](c).Plan})
}

const namedDigits = 7
