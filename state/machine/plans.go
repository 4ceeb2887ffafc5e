package machine

import (
	"fmt"
	"slices"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// beginFirstRun stores the results of the job start and launches the first run.
func beginFirstRun(c *change) {
	c.storeStart(of[event.Started](c).Start)
	removeReadComments(c)
	if rereadDiscussion(c) {
		return
	}
	switch c.t.Settings.Plan {
	case settings.PlanNone:
		c.t.Approval = &state.Approval{By: c.t.Trigger.By, Via: state.ViaSettings, Given: c.e.Now, At: c.e.Now, Permission: state.PermissionWrite}
		c.enterPhase(state.PhaseImplementing, "the repository requires no plan")
	case settings.PlanOneStep:
		c.enterPhase(state.PhasePlanning, "planning began")
	default:
		c.enterPhase(state.PhasePreliminaryPlanning, "planning began")
	}
	c.launchRun(runOfPhase(c.t.Phase))
}

// rereadDiscussion queues a second reading of the discussion, once, if somebody vouched for a comment during the first:
// otherwise the prompt would mention a comment that it does not contain.
func rereadDiscussion(c *change) bool {
	id, found := newlyVouched(c)
	if !found || !c.markOnce("read-again-"+id) {
		return false
	}
	c.enqueueStep(state.JobStart)
	c.jobs[len(c.jobs)-1].NotBefore = c.e.Now.Add(listingLag / 4)
	return true
}

// restartRun continues in the same phase with the new data.
func restartRun(c *change) {
	c.storeStart(of[event.Started](c).Start)
	c.launchRun(runOfPhase(c.t.Phase))
}

// storeStart stores settings, context and branch. A published branch keeps its name.
func (c *change) storeStart(s event.Start) {
	cleared, old := c.t.Context.Cleared, c.t.Settings.Limits
	if old.MicroUSD == c.t.Money.CapMicroUSD && s.Settings.Limits.MicroUSD > 0 {
		c.t.Money.CapMicroUSD = s.Settings.Limits.MicroUSD // the cap has not been raised
	}
	if old.Tokens == c.t.Money.CapTokens {
		c.t.Money.CapTokens = s.Settings.Limits.Tokens
	}
	c.t.Money.Subscription = c.t.Money.Subscription || s.Settings.Subscription
	if p := newestOfPlans(c); p != nil && p.Kind == state.PlanThorough && !p.Superseded {
		s.Settings.SignOff = s.Settings.SignOff && c.t.Settings.SignOff // its comment does not say that an approval signs off
	}
	c.t.Settings, c.t.Context = s.Settings, s.Context
	c.t.Context.Cleared = cleared || s.Context.Cleared
	if old := c.t.Branch; old.Head == "" {
		c.t.Branch = s.Branch
		c.t.Branch.Root, c.t.Branch.VMHead = old.Root, old.VMHead // the position of the VM's checkout, until a run changes it
	}
	if c.t.Ticket == "" {
		c.t.Ticket = s.Ticket
	}
	c.t.Waiting = nil
}

// waitForVisibleText waits for a 👍 on some text.
func waitForVisibleText(c *change) {
	c.t.Context = of[event.Started](c).Start.Context
	waitFor(c, state.Waiting{Kind: state.WaitText, Since: c.e.Now, Detail: "no text of the issue is visible to the agent yet"})
}

// storeStartWhilePaused stores settings, context and branch, and keeps the pause, also after an interruption.
func storeStartWhilePaused(c *change) {
	c.storeStart(of[event.Started](c).Start)
	c.t.Waiting = waitingForReplan(c.t.Frozen.Changed)
}

// waitingForReplan returns what a task waits for after a user without write access has changed the issue.
func waitingForReplan(changed *state.Frozen) *state.Waiting {
	return &state.Waiting{
		Kind: state.WaitEdit, Since: changed.At,
		Detail: fmt.Sprintf("@%s changed the issue; a person with write access has to comment `replan`", changed.By.Login),
	}
}

// waitFor stores a condition, other than an action by people, that the task waits for. Each detail is commented once. A pause
// ends only when the operator resumes, so it is not checked again by time, and then tasks continue in the order of Since.
func waitFor(c *change, w state.Waiting) {
	if old := c.t.Waiting; old != nil && (old.Kind == w.Kind || w.Kind == state.WaitPaused && old.Place > 0) {
		w.Since = old.Since
	}
	if w.Since.IsZero() {
		w.Since = c.e.Now
	}
	if w.Kind == state.WaitPaused {
		c.t.Waiting = &w
		return
	}
	if w.Until.IsZero() {
		w.Until = c.e.Now.Add(max(c.p.Recheck, min(c.e.Now.Sub(w.Since), 30*c.p.Recheck)))
	}
	c.t.Waiting = &w
	at := w.Until
	if latest := c.e.Now.Add(30 * c.p.Recheck); at.After(latest) { // it may end sooner: a cap was raised, or credit was bought
		at = latest
	}
	c.scheduleDue(state.DueRecheck, "", at) // one at a time, however often something makes it look
	postWaitReason(c, w)
}

// createPlan creates the next revision from the run's result, and posts it.
func createPlan(c *change) {
	res, kind := c.result, state.PlanThorough
	if c.t.Run.Kind == state.RunPreliminary {
		kind = state.PlanPreliminary
	}
	run := c.t.Run.ID
	closeRun(c)
	c.removeAnsweredFeedback(run)
	p := state.Plan{
		Kind: kind, Revision: len(c.revisions(kind)) + 1, Text: res.Text, Summary: res.Summary, Changes: res.Changes,
		Run: run, Made: c.e.Now, Approaches: res.Approaches, Files: res.Files, Estimate: res.Estimate,
		BaseSHA: c.t.Branch.BaseSHA, IssueHash: c.t.Frozen.Hash,
	}
	assignHash(c, &p)
	supersede(c, kind)
	c.t.Plans = append(c.t.Plans, p)
	c.t.Outcome = state.OutcomeBuild
	phase := state.PhaseAwaitingPlanApproval
	if kind == state.PlanPreliminary {
		phase = state.PhaseAwaitingPreliminaryApproval
	}
	c.enterPhase(phase, fmt.Sprintf("%s plan, revision %d (%s)", kind.Name(), p.Revision, p.Short()))
	if c.t.Frozen.Changed != nil {
		c.t.NewestPlan().Stale = state.StaleIssueChanged
	}
	c.postPlan()
	rejectHeld(c)
	if len(c.t.PendingFeedback()) > 0 {
		extendGathering(c)
	}
}

// assignHash sets a revision's hash. Its first digits, by which people may refer to it, differ from those of all
// other revisions, including those of earlier lives: an author of a plan's text could otherwise choose it so that two
// are alike.
func assignHash(c *change, p *state.Plan) {
	used := map[string]bool{}
	for _, short := range c.t.UsedHashes {
		used[short[:min(len(short), namedDigits)]] = true
	}
	for _, old := range c.t.Plans {
		used[old.Hash[:min(len(old.Hash), namedDigits)]] = true
	}
	for p.Hash = state.PlanHash(*p); used[p.Hash[:namedDigits]]; p.Hash = state.PlanHash(*p) {
		p.Salt++
	}
}

// usedHashes returns the short hashes of all revisions of this life and of earlier ones.
func usedHashes(t *state.Task) []string {
	list := slices.Clone(t.UsedHashes)
	for i := range t.Plans {
		list = append(list, t.Plans[i].Short())
	}
	return list
}

// supersede closes the revisions of a kind before a newer one replaces them.
func supersede(c *change, kind state.PlanKind) {
	for _, old := range c.revisions(kind) {
		if old.Posted() {
			enqueueMinimize(c, old)
		}
		old.Superseded = true
	}
}

// postPlan enqueues posting the newest revision. The key contains its hash, so it is never posted twice.
func (c *change) postPlan() {
	p := c.t.NewestPlan()
	c.enqueuePost("plan-"+p.Short(), state.Post{Kind: state.PostPlan, Hash: p.Hash})
}

// removeAnsweredFeedback removes the feedback that a run received and answered.
func (c *change) removeAnsweredFeedback(run string) {
	kept := c.t.Feedback[:0]
	for _, f := range c.t.Feedback {
		if f.TakenBy != run || f.Kind == state.FeedbackCondition {
			kept = append(kept, f)
		} else {
			c.t.SeenIDs = appendBounded(c.t.SeenIDs, f.ID, maxTrustedSeenIDs)
			moveToDiscussion(c, f)
		}
	}
	c.t.Feedback = kept
}

// maxDiscussion is the maximum number of comments in later prompts; the newest stay.
const maxDiscussion = 200

// moveToDiscussion moves answered feedback to the discussion, for later runs in other sessions.
func moveToDiscussion(c *change, f state.Feedback) {
	if f.Kind != state.FeedbackComment && f.Kind != state.FeedbackAnswer || slices.ContainsFunc(c.t.Context.Comments, func(m state.DiscussionComment) bool { return commentID(m.ID) == f.ID }) {
		return
	}
	addToDiscussion(c, state.DiscussionComment{By: f.By, At: f.At, Body: f.Body})
}

// addToDiscussion adds a trusted comment to the discussion in later prompts.
func addToDiscussion(c *change, m state.DiscussionComment) {
	list := append(c.t.Context.Comments, m)
	c.t.Context.Comments = list[max(0, len(list)-maxDiscussion):]
}

// keepInDiscussion stores a trusted comment that requests nothing.
func keepInDiscussion(c *change) {
	m := c.e.Comment()
	addToDiscussion(c, state.DiscussionComment{ID: m.ID, By: c.e.By, At: m.At, Body: m.Body})
}

// reviseBeforePosting starts a newer revision before the one that just ended is posted.
func reviseBeforePosting(c *change) {
	run, kind, attempt := c.t.Run.ID, c.t.Run.Kind, c.t.Run.Attempt
	closeRun(c)
	c.removeAnsweredFeedback(run)
	if _, found := newlyVouched(c); found {
		c.enqueueStep(state.JobStart) // the discussion must be read again
		return
	}
	c.launchRun(kind)
	c.t.Run.Attempt = attempt + 1
}

// endWithReport ends the task with the answer as a comment.
func endWithReport(c *change) {
	c.t.Outcome = c.result.Outcome
	text := c.result.Text
	closeRun(c)
	c.enqueuePost("report", state.Post{Kind: state.PostReport, Reason: string(c.t.Outcome), Text: text, By: c.t.Trigger.By})
	c.finish(state.PhaseDone, state.End{Reason: map[state.Outcome]string{
		state.OutcomeReport:          "answered by a report; there was nothing to build",
		state.OutcomeAlreadyFixed:    "already fixed",
		state.OutcomeNotReproducible: "not reproducible",
	}[c.t.Outcome]})
}

// removeReadFeedback removes the feedback of a planning run that asks a question: the agent's session contains it. Comments on
// a plan that still waits are kept until they are answered, as is the feedback for a building run until the work is published.
func (c *change) removeReadFeedback(kind state.RunKind, run string) {
	if (kind == state.RunPreliminary || kind == state.RunPlan) && c.t.ConsideredPlan() == nil {
		c.removeAnsweredFeedback(run)
	}
}

// postAgentQuestion posts the agent's question.
func postAgentQuestion(c *change) {
	text := firstNonEmpty(c.result.Question, c.result.Summary, c.result.Text)
	run, kind := c.t.Run.ID, c.t.Run.Kind
	var options []string
	if conclusion := c.t.Run.Conclusion; conclusion.IsQuestion() {
		options = conclusion.Options
	}
	closeRun(c)
	c.removeReadFeedback(kind, run)
	c.askQuestion(state.Question{Text: text, Kind: state.AskAgent, Options: options})
}

// postQuestion posts a question of errand's own.
func postQuestion(c *change) {
	q := of[event.QuestionRaised](c).Question
	if s := of[event.QuestionRaised](c).Start; s != nil {
		c.storeStart(*s)
	}
	c.askQuestion(q)
}

// askQuestion waits for people's answer.
func (c *change) askQuestion(q state.Question) {
	q.AskedAt = c.e.Now
	phase, step := c.t.Phase, c.t.Step
	c.enterPhase(state.PhaseAwaitingAnswer, "waiting for an answer to a question")
	c.t.Resume, c.t.Step, c.t.Question, c.t.Waiting = phase, step, &q, nil
	c.enqueuePost(fmt.Sprintf("question-%d", c.t.Version+1), state.Post{Kind: state.PostQuestion, Reason: q.Kind, Text: q.Text, Items: q.Options, By: c.personToNotify()})
}

// personToNotify returns the person whom questions address: the author of the last approval, else of the trigger.
func (c *change) personToNotify() state.Person {
	if a := c.t.Approval; a != nil {
		return a.By
	}
	return c.t.Trigger.By
}

// applyAnswer continues with a person's answer. Comments on a question whose answer an agent reads are gathered first.
func applyAnswer(c *change) {
	q := c.t.Question
	keepComment(c)
	c.react(state.ReactionEyes)
	if q != nil {
		last := &c.t.Feedback[len(c.t.Feedback)-1]
		last.Kind = state.FeedbackAnswer
		if isReadByAgent(q) {
			extendGathering(c)
			return
		}
		switch q.Kind {
		case state.AskExisting:
			c.t.Context.Cleared = true
		}
	}
	c.resumePhase(c.e.By.Handle() + " answered")
}

// isReadByAgent reports whether comments on a question are passed to an agent, which then acts on them.
func isReadByAgent(q *state.Question) bool {
	return q.Kind == state.AskAgent || q.Kind == state.AskRefused || q.Kind == state.AskNoChange
}

// considerAnswers has the agent read the gathered comments on the open question. Without any left, it stays open.
func considerAnswers(c *change) {
	applyReread(c)
	by := ""
	for _, f := range c.t.PendingFeedback() {
		if f.Kind == state.FeedbackAnswer {
			by = f.By.Login
		}
	}
	q := c.t.Question
	if by == "" || q == nil {
		c.t.Gathering = nil
		return
	}
	if q.Kind != state.AskAgent {
		c.t.Step = state.StepRun // the agent must act on it
	}
	c.resumePhase("@" + by + " commented on the question")
	if q.Kind == state.AskAgent && c.t.ConsideredPlan() == nil {
		c.t.Asked = q
	}
}

// leavesQuestion reports whether a run that read comments on its question keeps the question open.
func leavesQuestion(c *change) bool {
	return c.t.Asked != nil && c.result.Class == state.RunSucceeded &&
		(c.result.Outcome == state.OutcomeAnswered || c.result.Outcome == state.OutcomeUnchanged)
}

// reopenQuestion waits for an answer to the same question again.
func reopenQuestion(c *change) {
	q, run, res, phase, step := c.t.Asked, c.t.Run.ID, *c.result, c.t.Phase, c.t.Step
	closeRun(c)
	answerComments(c, run, res)
	c.t.Feedback = slices.DeleteFunc(c.t.Feedback, func(f state.Feedback) bool {
		if f.TakenBy != run || f.Kind != "answer" {
			return false
		}
		c.t.SeenIDs = appendBounded(c.t.SeenIDs, f.ID, maxTrustedSeenIDs)
		moveToDiscussion(c, f)
		return true
	})
	c.enterPhase(state.PhaseAwaitingAnswer, "the question is still open")
	c.t.Resume, c.t.Step, c.t.Question, c.t.Waiting = phase, step, q, nil
	for i := range c.t.Feedback {
		if f := &c.t.Feedback[i]; f.TakenBy == "" && f.Kind == state.FeedbackComment { // it came while the agent read the others
			f.Kind = "answer"
			extendGathering(c)
		}
	}
}

// answersTicketKey reports whether a person names the ticket key that errand asked for.
func answersTicketKey(c *change) bool {
	return c.o.Arg != "" && c.t.Question != nil && c.t.Question.Kind == state.AskKey
}

// resumeWithTicketKey continues with the ticket key that a person named.
func resumeWithTicketKey(c *change) {
	c.t.Ticket = c.o.Arg
	c.resumePhase(c.e.By.Handle() + " named the ticket")
}

// storeTicketKey stores a ticket key for later.
func storeTicketKey(c *change) {
	if c.o.Arg == "" {
		c.reply(state.ReplyTicketMissing)
		return
	}
	c.t.Ticket = c.o.Arg
	c.reply(state.ReplyTicketNoted)
}
