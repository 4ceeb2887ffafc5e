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

// MaxRetryTurns is the maximum of `retry turns=N`.
const MaxRetryTurns = 500

// turnsGrace is how long a run may continue after the gateway refused a model call because its turns were used up; then
// it is stopped. Well-behaved programs end immediately.
const turnsGrace = 3 * time.Minute

// correctResult judges the end of a run again by what errand knows.
func correctResult(c *change) {
	if c.result != nil && isActiveRun(c) {
		*c.result = c.t.Run.CorrectResult(*c.result)
	}
}

// turnsHint returns the hint to continue with more turns than the run had.
func turnsHint(r *state.Run) string {
	limit := r.TurnLimit
	if limit == 0 {
		limit = 30 // the run was launched by an older version of errand
	}
	switch {
	case limit > MaxRetryTurns:
		return "Comment `retry` to continue with the same number of turns, or split the issue."
	case limit == MaxRetryTurns:
		return fmt.Sprintf("Comment `retry turns=%d` to continue with the same number of turns, or split the issue.", limit)
	}
	return fmt.Sprintf("Comment `retry turns=%d` to continue with more turns.", min(2*limit, MaxRetryTurns))
}

// continuesWithoutTurns reports whether the run of the delayed check has no turns left and is still active.
func continuesWithoutTurns(c *change) bool {
	r := c.t.Run
	return r != nil && r.ID == of[event.Due](c).Run && r.State == state.RunActive && r.IsOutOfTurns()
}

// stopWithoutTurns stops a run that has no turns left and has not ended.
func stopWithoutTurns(c *change) {
	reason := c.t.Run.RunDenial.Detail
	c.dropRun(reason)
	r := &c.t.Runs[len(c.t.Runs)-1]
	r.Status, r.Class = state.StatusMaxTurns, state.RunFatal
	c.fail(state.End{Reason: reason, Hint: turnsHint(r), Class: state.ClassAgent})
}

// handleUnreadableBlock handles a closing block that cannot be parsed. A conclusion that the run reported with a tool replaces it.
// Otherwise the agent is asked to repeat it, and then the result contains the readable parts and a note.
func handleUnreadableBlock(c *change) {
	if c.result == nil || c.result.Broken == "" || !isActiveRun(c) {
		return
	}
	res := c.result
	switch r := c.t.Run; {
	case r.Conclusion != nil:
		res.Broken = ""
	case r.Repair != nil || reachedRunLimit(c):
		addUnreadableNote(res, r.Repair != nil)
		res.Broken = ""
	}
}

// addUnreadableNote adds a note to the agent's answer about how much of its conclusion is known.
func addUnreadableNote(r *state.RunResult, repaired bool) {
	again := ""
	if repaired {
		again = ", even after errand asked for it again"
	}
	treatment := "The outcome below is taken from its readable parts."
	if r.Guess {
		treatment = "errand treats the answer as a plan to build."
		if r.Outcome == state.OutcomeDone {
			treatment = "errand treats the work as finished."
		}
		treatment += " Please check whether that is right."
	}
	note := fmt.Sprintf("> **Note:** the block at the end of the agent's answer, which states its outcome, could not be read%s. %s", again, treatment)
	if r.Outcome == state.OutcomeQuestion || r.Outcome == state.OutcomeBlocked {
		r.Question = firstNonEmpty(r.Question, r.Text, r.Summary) + "\n\n" + note
		return
	}
	r.Text = firstNonEmpty(r.Text, r.Summary) + "\n\n" + note
}

// hasUnreadableBlock reports whether the run's closing block cannot be parsed.
func hasUnreadableBlock(c *change) bool { return c.result.Broken != "" }

// launchRepair launches a run that asks the agent to repeat the closing block. The rest of its answer is stored with that
// run, which also takes over the feedback to answer.
func launchRepair(c *change) {
	old, res := *c.t.Run, *c.result
	closeRun(c)
	c.launchRun(old.Kind)
	r := c.t.Run
	r.Repair = &state.Repair{Problem: res.Broken, Block: res.Block, Text: res.Text}
	r.Attempt, r.Repeat = old.Attempt, old.Repeat
	for i := range c.t.Feedback {
		if c.t.Feedback[i].TakenBy == old.ID {
			c.t.Feedback[i].TakenBy = r.ID
		}
	}
}

// dropRepairedText removes the answer that a run repaired, because the run's result contains it.
func dropRepairedText(c *change, r *state.Run, text string) {
	if r.Repair == nil {
		return
	}
	if n := len(c.t.Runs); n > 0 && text != "" {
		c.t.Runs[n-1].LastMessage = ""
	}
	r.Repair = nil
}

// leavesPlan reports whether a run that considered comments keeps the newest revision: it answered, found that nothing has
// to change, or repeated the plan.
func leavesPlan(c *change) bool {
	p := c.t.ConsideredPlan()
	if p == nil || c.t.Frozen.Changed == nil && (p.Stale != "" || p.IssueHash != c.t.Frozen.Hash) {
		return false
	}
	return c.result.Outcome == state.OutcomeAnswered || c.result.Outcome == state.OutcomeUnchanged || repeatsPlan(p, c.result)
}

// repeatsPlan reports whether a result is the revision that exists.
func repeatsPlan(p *state.Plan, r *state.RunResult) bool {
	return r.Outcome == state.OutcomeBuild && strings.TrimSpace(r.Text) == strings.TrimSpace(p.Text) &&
		slices.Equal(r.Approaches, p.Approaches)
}

// keepPlan returns to waiting for an approval of the newest revision.
func keepPlan(c *change) {
	p, run, res := c.t.ConsideredPlan(), c.t.Run.ID, *c.result
	closeRun(c)
	answerComments(c, run, res)
	c.removeAnsweredFeedback(run)
	phase := state.PhaseAwaitingPlanApproval
	if p.Kind == state.PlanPreliminary {
		phase = state.PhaseAwaitingPreliminaryApproval
	}
	c.enterPhase(phase, fmt.Sprintf("comments left revision %d (%s) as it is", p.Revision, p.Short()))
	if p.Posted() { // those that came due meanwhile had no effect
		c.scheduleDue(state.DueRemind, p.Hash, c.e.Now.Add(c.t.Settings.Limits.Remind))
		c.scheduleDue(state.DueExpire, p.Hash, c.e.Now.Add(c.t.Settings.Limits.Expire))
	}
	if len(c.t.PendingFeedback()) > 0 {
		extendGathering(c)
		return
	}
	releaseHeld(c)
}

// answerComments posts the agent's answer to the comments that a run received. Without one, a direct mention gets a short
// answer, and 👀 on the other comments becomes 👍.
func answerComments(c *change, run string, res state.RunResult) {
	post := state.Post{Kind: state.PostAnswered}
	if res.Outcome == state.OutcomeAnswered {
		post.Text = firstNonEmpty(res.Text, res.Summary)
	}
	mentioned := false
	for _, f := range c.t.Feedback {
		if f.TakenBy != run || f.Kind != "comment" && f.Kind != "answer" {
			continue
		}
		post.OnPR = post.OnPR || f.OnPR
		mentioned = mentioned || f.Mention
		if id, ok := strings.CutPrefix(f.ID, "comment:"); ok && post.Text == "" && !f.Mention {
			c.approveComment(id)
		}
	}
	if post.Text != "" || mentioned {
		c.enqueuePost("answered-"+run, post)
	}
}

// approveComment replaces errand's 👀 on a comment by a 👍.
func (c *change) approveComment(id string) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return
	}
	j := c.job(state.JobReact, state.LaneTalk, "react-+1-"+id)
	j.Args = state.JobArgs{Comment: n, Reaction: state.ReactionThumbsUp, Replaces: state.ReactionEyes}
	c.enqueue(j)
}

// correctConclusion turns a revision into a plan like any other. It also turns a conclusion about comments into a plan if
// the issue, or the comment with the revision, was edited meanwhile: the text of the last revision becomes the new one.
// An answer is posted in any case.
func correctConclusion(c *change) {
	res := c.result
	if res != nil && res.Outcome == state.OutcomeRevised {
		res.Outcome = state.OutcomeBuild
	}
	if res == nil || !isActiveRun(c) || isRunStopping(c) || res.Class != state.RunSucceeded || res.Broken != "" ||
		res.Outcome != state.OutcomeAnswered && res.Outcome != state.OutcomeUnchanged || leavesPlan(c) || leavesQuestion(c) {
		return
	}
	kind := state.PlanThorough
	switch c.t.Run.Kind {
	case state.RunPreliminary:
		kind = state.PlanPreliminary
	case state.RunPlan:
	default:
		if p := c.t.NewestPlan(); res.Outcome == state.OutcomeAnswered && p != nil && p.Kind == state.PlanPublish {
			answerComments(c, c.t.Run.ID, *res)
		}
		res.Outcome = state.OutcomeDone
		return
	}
	old := c.revisions(kind)
	if len(old) == 0 {
		res.Outcome = state.OutcomeBuild
		if res.Text == "" {
			res.Status, res.Class, res.Message = state.StatusCrashed, state.RunRetryable, "the agent's last message contains no plan"
		}
		return
	}
	if res.Outcome == state.OutcomeAnswered {
		answerComments(c, c.t.Run.ID, *res)
	}
	p := old[len(old)-1]
	res.Outcome, res.Text, res.Summary, res.Approaches, res.Files, res.Estimate = state.OutcomeBuild, p.Text, p.Summary, p.Approaches, p.Files, p.Estimate
}

// storeLastMessage stores the last message of the last run's agent for a run in another session. The result of a planning
// run is in the plan.
func storeLastMessage(c *change, text string) {
	last := &c.t.Runs[len(c.t.Runs)-1]
	if text == "" || last.Kind != state.RunImplement && last.Kind != state.RunReview && last.Status != state.StatusContextOverflow {
		return
	}
	if r := []rune(text); len(r) > maxMessageLength {
		text = "… " + string(r[len(r)-maxMessageLength:])
	}
	last.LastMessage = text
	kept := 0
	for i := len(c.t.Runs) - 1; i >= 0; i-- {
		if c.t.Runs[i].LastMessage == "" {
			continue
		}
		if kept++; kept > maxMessageRuns {
			c.t.Runs[i].LastMessage = ""
		}
	}
}

// isFirstOverflow reports whether the run's conversation became too long for the first time in this work: a new session
// begins with less context, so it may succeed.
func isFirstOverflow(c *change) bool {
	if c.result.Status != state.StatusContextOverflow || reachedRunLimit(c) {
		return false
	}
	for i := len(c.t.Runs) - 1; i >= 0; i-- {
		r := &c.t.Runs[i]
		if r.Kind != c.t.Run.Kind || r.Class == state.RunSucceeded {
			return true
		}
		if r.Status == state.StatusContextOverflow {
			return false
		}
	}
	return true
}

// restartSession repeats the run in a new session, whose prompt contains the conversation so far.
func restartSession(c *change) {
	kind, lastMessage := c.t.Run.Kind, c.result.Summary
	closeRun(c)
	storeLastMessage(c, lastMessage)
	c.launchRun(kind)
	c.t.Run.Repeat = "its conversation became too long for the model, so this is a new one. Its changes are still in the checkout: review them with git status, git diff and git log before you continue"
}

// How much of the agents' last messages is stored with a task: characters per run, and runs.
const (
	maxMessageLength = 2000
	maxMessageRuns   = 6
)

// programOutputHint tells where to find the output of an agent's program, which no comment repeats.
const programOutputHint = "The output of the agent's program is in errand's log and in the run's transcript; the operator can read both. "

// failureHint returns the hint after a filed run with this status.
func failureHint(c *change, status state.RunStatus) string {
	hint := "Comment `retry` to continue from here, or `retry fresh` for a new VM."
	switch status {
	case state.StatusCrashed, state.StatusInvalid, state.StatusNoOp:
		hint = programOutputHint + hint
	case state.StatusRefused:
		hint = "Rephrase the request, or choose another model with `model NAME`; then comment `retry` to continue from here."
	case state.StatusContextOverflow:
		hint = "The task is too large for one conversation with this model. Choose another one with `model NAME` and comment `retry`, or split the issue."
	case state.StatusMaxTurns:
		hint = turnsHint(&c.t.Runs[len(c.t.Runs)-1])
	case state.StatusBudget:
		hint = state.HintBudget
	case state.StatusAuth, state.StatusBilling:
		hint = "The operator has to check errand's account and the permissions of its key at the model's provider; then comment `retry` to continue from here."
	case state.StatusStartFailed:
		hint = "The operator has to install the agent's program on the machine where agents run (errand's log has its name); then comment `retry` to continue from here."
	case state.StatusDuration:
		hint = "Comment `retry` to continue; the limit on agent activity starts again."
	}
	return hint
}
