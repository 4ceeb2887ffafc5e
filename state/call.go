package state

import (
	"fmt"
	"slices"
	"time"
)

// CallTool is one of errand's tools, which an agent can call during its run. The names are those that the agent sees.
type CallTool string

// The tools that change a task.
const (
	CallAsk     CallTool = "ask_human"
	CallNote    CallTool = "note"
	CallPropose CallTool = "propose_issue"
	CallFinish  CallTool = "finish"
	CallContext CallTool = "context" // changes only the number of its calls
)

// Call is an agent's call of a tool. Its content is the agent's, limited in size and redacted.
type Call struct {
	// ID identifies the call: a repeated call, whose answer was lost, has the same ID and counts once.
	ID       string      `json:"id"`
	Tool     CallTool    `json:"tool"`
	Note     *Note       `json:"note,omitempty"`
	Proposal *Proposal   `json:"proposal,omitempty"`
	Result   *Conclusion `json:"result,omitempty"` // of ask_human and finish
}

// NoteKind is the kind of a note.
type NoteKind string

// The kinds of notes.
const (
	NoteFact     NoteKind = "fact"
	NoteDecision NoteKind = "decision"
	NoteStep     NoteKind = "step_done"
)

// Note is a text that the agent stores with the task: later prompts contain it, decisions are listed in the pull
// request's description, and the newest step in the status comment.
type Note struct {
	ID   string    `json:"id"` // Call.ID
	Run  string    `json:"run"`
	Kind NoteKind  `json:"kind"`
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// Proposal is an issue that the agent proposes. It is created on GitHub only at the request of a person.
type Proposal struct {
	N     int       `json:"n"`  // its number in comments, from 1
	ID    string    `json:"id"` // Call.ID
	Run   string    `json:"run"`
	Title string    `json:"title"`
	Body  string    `json:"body"`
	At    time.Time `json:"at"`
	// By is the person who requested its creation; Issue and URL are set when it exists.
	By    Person `json:"by,omitzero"`
	Issue int    `json:"issue,omitempty"`
	URL   string `json:"url,omitempty"`
}

// Conclusion is the result of a run as the agent reported it with a tool. Its fields override those of the run's final
// message.
type Conclusion struct {
	Outcome  Outcome        `json:"outcome"`
	Question string         `json:"question,omitempty"`
	Options  []string       `json:"options,omitempty"` // proposed answers
	Title    string         `json:"title,omitempty"`
	Summary  string         `json:"summary,omitempty"`
	Changes  string         `json:"changes,omitempty"`
	Estimate string         `json:"estimate,omitempty"`
	Files    []string       `json:"files,omitempty"`
	Choices  []string       `json:"choices,omitempty"` // RunResult.Approaches
	Threads  []ThreadAnswer `json:"threads,omitempty"`
}

// Limits on the use of tools.
const (
	MaxCalls        = 100 // per run, excluding CallContext
	MaxReads        = 50  // per run, of CallContext
	MaxRunNotes     = 40  // per run
	MaxNotes        = 100 // per task; the oldest are dropped, decisions last
	MaxRunProposals = 5   // per run
	MaxProposals    = 20  // per task
)

// IsQuestion reports whether the conclusion is a question to people.
func (r *Conclusion) IsQuestion() bool { return r != nil && r.Outcome == OutcomeQuestion }

// CallRejection returns, as a text for the agent, the reason why a task rejects a call of a run, or "". A call that was
// accepted before is not rejected.
func (t *Task) CallRejection(run string, call Call) string {
	r := t.Run
	switch {
	case r == nil || r.ID != run || r.State != RunActive && r.State != RunLaunching || r.Kind == RunCheck:
		return "this run has ended; its calls are rejected"
	case slices.Contains(r.Calls, call.ID):
		return ""
	case call.Tool == CallContext && r.Reads >= MaxReads:
		return fmt.Sprintf("a run may ask for context at most %d times", MaxReads)
	case call.Tool == CallContext:
		return ""
	case len(r.Calls) >= MaxCalls:
		return fmt.Sprintf("a run may call errand's tools at most %d times", MaxCalls)
	case r.Conclusion.IsQuestion():
		return "you already asked a question: stop now and call no other tool; the next run will have the answer"
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
		return fmt.Sprintf("a run may keep at most %d notes", MaxRunNotes)
	case call.Tool == CallPropose && proposals >= MaxRunProposals:
		return fmt.Sprintf("a run may propose at most %d issues", MaxRunProposals)
	case call.Tool == CallPropose && len(t.Proposed) >= MaxProposals:
		return fmt.Sprintf("a task may propose at most %d issues", MaxProposals)
	}
	return ""
}

// WithConclusion returns a result merged with the conclusion that the run reported with a tool, and whether there is
// one that counts.
func (r *Run) WithConclusion(res RunResult) (RunResult, bool) {
	reported := r.Conclusion
	if reported == nil || r.State == RunStopping || res.Class != RunSucceeded && !reported.IsQuestion() && res.Status != StatusMaxTurns {
		return res, false
	}
	res.Class, res.Outcome = RunSucceeded, reported.Outcome
	for _, f := range []struct {
		to   *string
		said string
	}{
		{&res.Question, reported.Question}, {&res.Title, reported.Title}, {&res.Summary, reported.Summary}, {&res.Changes, reported.Changes}, {&res.Estimate, reported.Estimate},
	} {
		if f.said != "" {
			*f.to = f.said
		}
	}
	if len(reported.Files) > 0 {
		res.Files = reported.Files
	}
	if len(reported.Choices) > 0 {
		res.Approaches = reported.Choices
	}
	if len(reported.Threads) > 0 {
		res.Threads = reported.Threads
	}
	return res, true
}

// Proposal returns the proposal with a number, or nil.
func (t *Task) Proposal(n int) *Proposal {
	if n < 1 || n > len(t.Proposed) {
		return nil
	}
	return &t.Proposed[n-1]
}

// Repair is an agent's answer whose closing block could not be parsed. The run that has it asks only for the block.
type Repair struct {
	Problem string `json:"problem"`         // the error in the block, as a text for the agent
	Block   string `json:"block,omitempty"` // as it was written
	Text    string `json:"text,omitempty"`  // the answer without it
}
