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
