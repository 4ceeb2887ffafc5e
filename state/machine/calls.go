package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// acceptsCall reports whether the event's tool call is accepted and new.
func acceptsCall(c *change) bool {
	call := of[event.ToolCalled](c).Call
	return isActiveRun(c) && !slices.Contains(c.t.Run.Calls, call.ID) && c.t.CallRejection(c.e.Run, call) == ""
}

// storeCall stores an accepted tool call.
func storeCall(c *change) {
	call, r := of[event.ToolCalled](c).Call, c.t.Run
	r.LastActivity = c.e.Now
	if call.Tool == state.CallContext {
		r.Reads++
		return
	}
	r.Calls = append(r.Calls, call.ID)
	switch {
	case call.Note != nil:
		n := *call.Note
		n.ID, n.Run, n.At = call.ID, r.ID, c.e.Now
		c.t.Notes = append(c.t.Notes, n)
		limitNotes(c)
	case call.Proposal != nil:
		p := *call.Proposal
		p.N, p.ID, p.Run, p.At = len(c.t.Proposed)+1, call.ID, r.ID, c.e.Now
		p.By, p.Issue, p.URL = state.Person{}, 0, ""
		c.t.Proposed = append(c.t.Proposed, p)
	case call.Result != nil:
		r.Conclusion = call.Result
		if call.Result.IsQuestion() {
			c.scheduleDue(state.DueQuestion, r.ID, c.e.Now.Add(questionGrace))
		}
	}
}

// limitNotes drops the oldest note beyond the limit; decisions are dropped last.
func limitNotes(c *change) {
	if len(c.t.Notes) <= state.MaxNotes {
		return
	}
	i := max(0, slices.IndexFunc(c.t.Notes, func(n state.Note) bool { return n.Kind != state.NoteDecision }))
	c.t.Notes = slices.Delete(c.t.Notes, i, i+1)
}

// mergeConclusion merges the conclusion that the run reported with a tool into its result. A question counts however the run
// ended; a conclusion by the finish tool counts if the run ended successfully, or ran out of turns afterwards.
func mergeConclusion(c *change) {
	if c.result == nil || !isActiveRun(c) {
		return
	}
	if res, ok := c.t.Run.WithConclusion(*c.result); ok {
		c.t.Run.RunDenial, *c.result = nil, res
	}
}

// continuesAfterQuestion reports whether the run of the delayed check asked people a question and is still active.
func continuesAfterQuestion(c *change) bool {
	r := c.t.Run
	return r != nil && r.ID == of[event.Due](c).Run && r.State == state.RunActive && r.Conclusion.IsQuestion()
}

// stopAndPostQuestion stops a run that asked a question and has not ended, and posts the question.
func stopAndPostQuestion(c *change) {
	conclusion, run, kind := c.t.Run.Conclusion, c.t.Run.ID, c.t.Run.Kind
	c.dropRun("it asked a question and did not end")
	c.t.Runs[len(c.t.Runs)-1].Class = state.RunSucceeded // it did all that was possible
	c.removeReadFeedback(kind, run)
	c.askQuestion(state.Question{Text: conclusion.Question, Kind: state.AskAgent, Options: conclusion.Options})
}

// createIssue enqueues the creation of a proposed issue, once.
func createIssue(c *change) {
	p := c.t.Proposal(c.o.Choice)
	switch {
	case p == nil:
		c.reply(state.ReplyNoProposal)
	case p.Issue != 0:
		replyIssueCreated(c, p, c.e.By, c.e.Comment())
	default:
		p.By = c.e.By
		c.react(state.ReactionEyes)
		j := c.job(state.JobIssue, state.LaneTalk, fmt.Sprintf("create-issue-%d", p.N))
		j.Args.Proposal = p.N
		if m := c.e.Comment(); m != nil {
			j.Args.OnPR = m.OnPR
		}
		c.enqueue(j)
	}
}

// storeCreatedIssue stores the number of a created issue and answers the person who requested it.
func storeCreatedIssue(c *change) {
	created := of[event.IssueCreated](c)
	p := c.t.Proposal(created.N)
	p.Issue, p.URL = created.Issue, created.URL
	var asked *state.Comment
	if created.OnPR {
		asked = &state.Comment{ID: int64(p.N), OnPR: true}
	}
	replyIssueCreated(c, p, p.By, asked)
}

// replyIssueFailed answers the person who requested a proposed issue with the reason of the failure.
func replyIssueFailed(c *change) {
	f := of[event.StepFailed](c).Failure
	_, number, _ := strings.Cut(f.Key, "create-issue-")
	n, err := strconv.Atoi(number)
	p := c.t.Proposal(n)
	if err != nil || p == nil {
		noteFailure(c)
		return
	}
	post := state.Post{Kind: state.PostReply, Reason: state.ReplyIssueFailed, By: p.By, Items: []string{number}, Text: f.Reason}
	c.enqueuePost(fmt.Sprintf("issue-failed-%d-%d", n, c.t.Version+1), post)
}

func replyIssueCreated(c *change, p *state.Proposal, to state.Person, asked *state.Comment) {
	post := state.Post{Kind: state.PostReply, Reason: state.ReplyIssueCreated, By: to, Items: []string{fmt.Sprint(p.N)}}
	key := fmt.Sprintf("created-%d", p.N)
	if asked != nil {
		post.OnPR = asked.OnPR
		key = fmt.Sprintf("created-%d-%d", p.N, asked.ID)
	}
	c.enqueuePost(key, post)
}

// questionGrace is how long a run may continue after it asked people a question; then it is stopped.
const questionGrace = 3 * time.Minute

// runOfEvent returns the run that the event is about, active or filed, or nil if the task has none with that ID.
func runOfEvent(c *change) *state.Run {
	if isActiveRun(c) {
		return c.t.Run
	}
	for i := range c.t.Runs {
		if c.t.Runs[i].ID == c.e.Run {
			return &c.t.Runs[i]
		}
	}
	return nil
}

// addCost adds the cost of a model call. The gateway's count replaces the agent's report.
func addCost(c *change) {
	r := runOfEvent(c)
	if !r.Metered {
		if !isActiveRun(c) { // filed with its agent's report, which is part of the task's sum
			c.t.Money.InputTokens -= r.Money.InputTokens
			c.t.Money.OutputTokens -= r.Money.OutputTokens
			c.t.Money.MicroUSD -= r.Money.MicroUSD
		}
		r.Metered, r.Money = true, state.Money{}
	}
	spent := of[event.ModelCalled](c)
	if spent.Money != (state.Money{}) { // otherwise the call was refused
		r.Answers++
		r.CallDenial, r.Unfinished = "", nil
	}
	r.Money.Add(spent.Money)
	c.t.Money.Add(spent.Money)
	switch h, w := r.RunDenial, spent.Waiting; {
	case w != nil && w.Kind == state.WaitRefused:
		r.CallDenial = w.Detail
	case w != nil && w.IsAboutAnswer():
		r.Unfinished = w
	case w != nil:
		if w.Kind == state.WaitTurns && !r.IsOutOfTurns() && isActiveRun(c) {
			c.scheduleDue(state.DueTurns, r.ID, c.e.Now.Add(turnsGrace))
		}
		r.RunDenial = w
	case h != nil && !h.Until.IsZero() && !h.Until.After(c.e.Now):
		r.RunDenial = nil // the limit has ended, and the model answers again
	}
}

// hasTemporaryDenial reports whether the run was refused model calls because of a limit that ends with time: a cap of all tasks
// together, or a limit or a refused key of the model's provider. The limit may have ended by the time that the agent
// ends.
func hasTemporaryDenial(c *change) bool {
	r := c.t.Run
	return r.RunDenial != nil && !r.RunDenial.Until.IsZero() && c.result.Class != state.RunSucceeded
}

// isAtCap reports whether the run was refused model calls because it, or its task, reached its own cap.
func isAtCap(c *change) bool {
	r, res := c.t.Run, c.result
	return r.RunDenial != nil && !r.IsOutOfTurns() && r.RunDenial.Until.IsZero() && res.Class != state.RunSucceeded &&
		res.Status != state.StatusVMLost
}

// waitForLimit interrupts the task until the limit that stopped its run has ended. It counts neither as a failure nor as an
// attempt.
func waitForLimit(c *change) {
	w := *c.t.Run.RunDenial
	c.t.Run.Attempt--
	closeRun(c)
	if w.Until.Before(c.e.Now) {
		w.Until = c.e.Now
	}
	c.interrupt(w.Detail, w.Until)
	c.t.Waiting.Kind, c.t.Waiting.Hint = w.Kind, w.Hint
	postWaitReason(c, w)
}

// postWaitReason posts the reason why a task waits, once, if a person must act.
func postWaitReason(c *change, w state.Waiting) {
	reason, ok := map[state.WaitKind]string{
		state.WaitBlocked: state.WaitingBlocked, state.WaitConfig: state.WaitingConfig, state.WaitText: state.WaitingText, state.WaitDisabled: state.WaitingDisabled, state.WaitKey: state.WaitingKey, state.WaitPermission: state.WaitingPermission,
	}[w.Kind]
	key := "waiting-" + string(w.Kind) + "-" + state.FreezeHash(w.Detail, "")[:8]
	if w.Kind == state.WaitPermission && c.t.Run != nil { // it may have been granted and withdrawn again
		key += "-" + c.t.Run.ID
		w.Detail = fmt.Sprintf("%s; run %d waits", w.Detail, len(c.t.Runs)+1)
	}
	if ok && c.markOnce(key) {
		c.enqueuePost(key, state.Post{Kind: state.PostWaiting, Reason: reason, Text: w.Detail, Hint: w.Hint, Items: w.Issues, URL: w.URL})
	}
}

// storeReportedCost stores the cost that an agent reports for its run, unless the gateway has counted it.
func storeReportedCost(c *change, r *state.Run, m state.Money) {
	if r.Metered {
		return
	}
	r.Money = m
	c.t.Money.Add(m)
}

// raiseBudget raises the cap; a task that stopped at it continues. A subscription has no cap in dollars, and not each task one on tokens.
func raiseBudget(c *change) {
	if c.o.MicroUSD > 0 && c.t.Money.Free() {
		c.reply(state.ReplyNoBudget)
		return
	}
	if c.o.Tokens > 0 && c.t.Money.CapTokens == 0 {
		c.reply(state.ReplyNoTokenCap)
		return
	}
	c.t.Money.CapMicroUSD += c.o.MicroUSD
	c.t.Money.CapTokens += c.o.Tokens
	c.t.MoreVMHours += c.o.VMHours
	c.reply(state.ReplyBudgetRaised)
	if c.t.Phase == state.PhaseFailed && endedAtCap(c) {
		c.resumePhase(c.e.By.Handle() + " raised the cap")
	}
}

// endedAtCap reports whether the task failed at the cap that a command raises.
func endedAtCap(c *change) bool {
	if c.o.VMHours > 0 {
		return c.t.End != nil && c.t.End.Class == state.ClassVMHours
	}
	n := len(c.t.Runs)
	return c.t.End != nil && c.t.End.Class == state.ClassBudget || n > 0 && c.t.Runs[n-1].Status == state.StatusBudget
}
