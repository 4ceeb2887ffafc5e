package state

import (
	"fmt"
	"slices"
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

// Asks reports whether it is a question to people.
func (r *Conclusion) Asks() bool { return r != nil && r.Outcome == "question" }

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
	case r.Concluded.Asks():
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

// WithConclusion returns a result with what the run said through its tools, and whether that counts.
func (r *Run) WithConclusion(res RunResult) (RunResult, bool) {
	said := r.Concluded
	if said == nil || r.State == RunStopping || res.Class != "success" && !said.Asks() && res.Status != StatusMaxTurns {
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

// Proposal returns the proposal of a number, or nil.
func (t *Task) Proposal(n int) *Proposal {
	if n < 1 || n > len(t.Proposed) {
		return nil
	}
	return &t.Proposed[n-1]
}

// Created says where a proposed issue is.
type Created struct {
	N     int    `json:"n"` // Proposal.N
	Issue int    `json:"issue"`
	URL   string `json:"url"`
	OnPR  bool   `json:"on_pr,omitempty"` // it was asked for on the pull request
}

// Repair is an answer of an agent whose closing block could not be read, so that the run that has it only asks for
// the block once more.
type Repair struct {
	Problem string `json:"problem"`         // what is wrong with the block, in words for the agent
	Block   string `json:"block,omitempty"` // as it was written
	Text    string `json:"text,omitempty"`  // the answer without it
}
