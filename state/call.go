package state

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CallTool is a tool of errand's that an agent calls while its run goes on. The names are those that the
// agent knows.
type CallTool string

// The tools that change a task.
const (
	CallAsk     CallTool = "ask_human"
	CallNote    CallTool = "note"
	CallPropose CallTool = "propose_issue"
	CallFinish  CallTool = "finish"
	CallContext CallTool = "context" // changes no more than how often it was called
)

// Call is what an agent says through a tool. All of it is the agent's word, bounded and redacted.
type Call struct {
	// ID is the call's own: a call that is repeated, because its answer was lost, has the same and counts once.
	ID       string      `json:"id"`
	Tool     CallTool    `json:"tool"`
	Note     *Note       `json:"note,omitempty"`
	Proposal *Proposal   `json:"proposal,omitempty"`
	Result   *Conclusion `json:"result,omitempty"` // of ask_human and finish
}

// NoteKind is what a note is.
type NoteKind string

// The kinds of notes.
const (
	NoteFact     NoteKind = "fact"
	NoteDecision NoteKind = "decision"
	NoteStep     NoteKind = "step_done"
)

// Note is something that the agent wants to be remembered: later prompts carry it, decisions stand in the pull
// request's text, and the newest step in the status comment.
type Note struct {
	ID   string    `json:"id"` // Call.ID
	Run  string    `json:"run"`
	Kind NoteKind  `json:"kind"`
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// Proposal is an issue that the agent proposes. It exists on GitHub only after a person has said so.
type Proposal struct {
	N     int       `json:"n"`  // by which people name it, from 1
	ID    string    `json:"id"` // Call.ID
	Run   string    `json:"run"`
	Title string    `json:"title"`
	Body  string    `json:"body"`
	At    time.Time `json:"at"`
	// By had it created; Issue and URL are set when it is there.
	By    Person `json:"by,omitzero"`
	Issue int    `json:"issue,omitempty"`
	URL   string `json:"url,omitempty"`
}

// Conclusion is what the agent said through a tool about how its run ends. It is laid over what the run's last
// words say, field by field.
type Conclusion struct {
	Outcome  string         `json:"outcome"`
	Question string         `json:"question,omitempty"`
	Options  []string       `json:"options,omitempty"` // answers that the agent proposes
	Title    string         `json:"title,omitempty"`
	Summary  string         `json:"summary,omitempty"`
	Changes  string         `json:"changes,omitempty"`
	Estimate string         `json:"estimate,omitempty"`
	Files    []string       `json:"files,omitempty"`
	Choices  []string       `json:"choices,omitempty"` // RunResult.Approaches
	Threads  []ThreadAnswer `json:"threads,omitempty"`
}

// How much agents may say through tools.
const (
	MaxCalls        = 100 // of a run, but for CallContext
	MaxReads        = 50  // of a run, by CallContext
	MaxRunNotes     = 40  // of a run
	MaxNotes        = 100 // of a task; the oldest make room, decisions last
	MaxRunProposals = 5   // of a run
	MaxProposals    = 20  // of a task
)

// askGrace is how long a run may go on after it asked people something; then it is stopped.
const askGrace = 3 * time.Minute

// dueAsk is the reminder to look whether a run that asked has stopped; Event.Hash is its id.
const dueAsk = "asked"

// asks reports whether it is a question to people.
func (r *Conclusion) asks() bool { return r != nil && r.Outcome == "question" }

// Refuses says, in words for the agent, why a task does not take a call of a run, or returns the empty string.
// A call that was taken before is not refused.
func (t *Task) Refuses(run string, call Call) string {
	r := t.Run
	switch {
	case r == nil || r.ID != run || r.State != RunActive && r.State != RunLaunching || r.Kind == RunCheck:
		return "this run is over; nothing is taken from it any more"
	case slices.Contains(r.Calls, call.ID):
		return ""
	case call.Tool == CallContext && r.Reads >= MaxReads:
		return fmt.Sprintf("a run may ask for context %d times", MaxReads)
	case call.Tool == CallContext:
		return ""
	case len(r.Calls) >= MaxCalls:
		return fmt.Sprintf("a run may call errand's tools %d times", MaxCalls)
	case r.Concluded.asks():
		return "a question was asked already: end now, without another call; the answer comes in the next run"
	}
	notes, proposals := 0, 0
	for i := range t.Notes {
		if t.Notes[i].Run == run {
			notes++
		}
	}
	for i := range t.Proposed {
		if t.Proposed[i].Run == run {
			proposals++
		}
	}
	switch {
	case call.Tool == CallNote && notes >= MaxRunNotes:
		return fmt.Sprintf("a run may keep %d notes", MaxRunNotes)
	case call.Tool == CallPropose && proposals >= MaxRunProposals:
		return fmt.Sprintf("a run may propose %d issues", MaxRunProposals)
	case call.Tool == CallPropose && len(t.Proposed) >= MaxProposals:
		return fmt.Sprintf("a task may propose %d issues", MaxProposals)
	}
	return ""
}

// callable reports whether the event's call is taken, and is new.
func (c *change) callable() bool {
	return c.e.Call != nil && c.thisRun() && !slices.Contains(c.t.Run.Calls, c.e.Call.ID) && c.t.Refuses(c.e.Run, *c.e.Call) == ""
}

// called keeps what the agent said through a tool.
func (c *change) called() {
	call, r := c.e.Call, c.t.Run
	r.Sign = c.e.Now
	if call.Tool == CallContext {
		r.Reads++
		return
	}
	r.Calls = append(r.Calls, call.ID)
	switch {
	case call.Note != nil:
		n := *call.Note
		n.ID, n.Run, n.At = call.ID, r.ID, c.e.Now
		c.t.Notes = append(c.t.Notes, n)
		c.boundNotes()
	case call.Proposal != nil:
		p := *call.Proposal
		p.N, p.ID, p.Run, p.At = len(c.t.Proposed)+1, call.ID, r.ID, c.e.Now
		p.By, p.Issue, p.URL = Person{}, 0, ""
		c.t.Proposed = append(c.t.Proposed, p)
	case call.Result != nil:
		r.Concluded = call.Result
		if call.Result.asks() {
			c.due(dueAsk, r.ID, c.e.Now.Add(askGrace))
		}
	}
}

// boundNotes drops the oldest note beyond the bound, decisions last.
func (c *change) boundNotes() {
	if len(c.t.Notes) <= MaxNotes {
		return
	}
	i := max(0, slices.IndexFunc(c.t.Notes, func(n Note) bool { return n.Kind != NoteDecision }))
	c.t.Notes = slices.Delete(c.t.Notes, i, i+1)
}

// concluded lays what the run said through its tools over its result. A question holds however the run ended;
// what finish said holds for a run that did end well, or that was cut off by its turns afterwards.
func (c *change) concluded() {
	if c.e.Kind != EventRunEnded || c.e.Result == nil || !c.thisRun() {
		return
	}
	if res, ok := c.t.Run.concluded(*c.e.Result); ok {
		c.t.Run.Held, c.e.Result = nil, &res
	}
}

// concluded returns a result with what the run said through its tools, and whether that counts.
func (r *Run) concluded(res RunResult) (RunResult, bool) {
	said := r.Concluded
	if said == nil || r.State == RunStopping || res.Class != "success" && !said.asks() && res.Status != StatusMaxTurns {
		return res, false
	}
	res.Class, res.Outcome = "success", said.Outcome
	for _, f := range []struct {
		to   *string
		said string
	}{
		{&res.Question, said.Question}, {&res.Title, said.Title}, {&res.Summary, said.Summary}, {&res.Changes, said.Changes}, {&res.Estimate, said.Estimate},
	} {
		if f.said != "" {
			*f.to = f.said
		}
	}
	if len(said.Files) > 0 {
		res.Files = said.Files
	}
	if len(said.Choices) > 0 {
		res.Approaches = said.Choices
	}
	if len(said.Threads) > 0 {
		res.Threads = said.Threads
	}
	return res, true
}

// goesOnAsking reports whether the run that the reminder is about asked people something and still goes on.
func (c *change) goesOnAsking() bool {
	r := c.t.Run
	return r != nil && r.ID == c.e.Hash && r.State == RunActive && r.Concluded.asks()
}

// askAnyway stops a run that asked and does not end, and posts its question.
func (c *change) askAnyway() {
	said, run, kind := c.t.Run.Concluded, c.t.Run.ID, c.t.Run.Kind
	c.dropRun("it asked a question and did not end")
	c.t.Runs[len(c.t.Runs)-1].Class = "success" // it got as far as it could
	if kind == RunPreliminary || kind == RunPlan {
		c.dropTaken(run)
	}
	c.question(Question{Text: said.Question, Kind: AskAgent, Options: said.Options})
}

// proposal returns the proposal of a number, or nil.
func (t *Task) proposal(n int) *Proposal {
	if n < 1 || n > len(t.Proposed) {
		return nil
	}
	return &t.Proposed[n-1]
}

// createIssue has a proposed issue created, once.
func (c *change) createIssue() {
	p := c.t.proposal(c.o.Choice)
	switch {
	case p == nil:
		c.reply(ReplyNoProposal)
	case p.Issue != 0:
		c.replyCreated(p)
	default:
		p.By = c.e.By
		c.react("eyes")
		j := c.job(JobIssue, LaneTalk, fmt.Sprintf("create-issue-%d", p.N))
		j.Args = map[string]string{"n": fmt.Sprint(p.N)}
		if m := c.e.Comment; m != nil && m.OnPR {
			j.Args["on_pr"] = "true"
		}
		c.add(j)
	}
}

// issueCreated stores where a proposed issue is now, and tells who wanted it.
func (c *change) issueCreated() {
	p := c.t.proposal(c.e.Created.N)
	p.Issue, p.URL = c.e.Created.Issue, c.e.Created.URL
	c.e.By = p.By
	if c.e.Created.OnPR {
		c.e.Comment = &Comment{ID: int64(p.N), OnPR: true}
	}
	c.replyCreated(p)
}

// issueFailed tells who wanted a proposed issue why it could not be created.
func (c *change) issueFailed() {
	f := c.e.Failure
	_, number, _ := strings.Cut(f.Key, "create-issue-")
	n, err := strconv.Atoi(number)
	p := c.t.proposal(n)
	if err != nil || p == nil {
		c.besideFailed()
		return
	}
	post := Post{Kind: PostReply, Reason: ReplyIssueFailed, By: p.By, Items: []string{number}, Text: f.Reason}
	c.post(fmt.Sprintf("issue-failed-%d-%d", n, c.t.Version+1), post)
}

func (c *change) replyCreated(p *Proposal) {
	post := Post{Kind: PostReply, Reason: ReplyIssueCreated, By: c.e.By, Items: []string{fmt.Sprint(p.N)}}
	key := fmt.Sprintf("created-%d", p.N)
	if m := c.e.Comment; m != nil {
		post.OnPR = m.OnPR
		key = fmt.Sprintf("created-%d-%d", p.N, m.ID)
	}
	c.post(key, post)
}

// Created says where a proposed issue is.
type Created struct {
	N     int    `json:"n"` // Proposal.N
	Issue int    `json:"issue"`
	URL   string `json:"url"`
	OnPR  bool   `json:"on_pr,omitempty"` // it was asked for on the pull request
}
