// Package tools defines the tools by which agents call errand: their names, the arguments of each, and the form of a
// call on the wire. The runner offers the tools on a VM; package callback answers the calls and enforces all bounds.
//
// Start here: [Call].
package tools

import "encoding/json"

// Server is the name of the MCP server that offers the tools to agents.
const Server = "errand"

// The names of the tools.
const (
	Ask     = "ask_human"
	Note    = "note"
	Propose = "propose_issue"
	Finish  = "finish"
	Context = "context"
)

// Names returns the names of all tools.
func Names() []string { return []string{Ask, Note, Propose, Finish, Context} }

// MaxCall is the maximum size of a call in bytes.
const MaxCall = 256 << 10

// Call is one call of a tool. It is posted to /callback/TOOL.
type Call struct {
	// ID identifies the call: at most 64 letters, digits and hyphens. A repeated call has the same ID.
	ID        string          `json:"id"`
	Arguments json.RawMessage `json:"arguments"`
}

// Answer is the result of a call, for the agent to read.
type Answer struct {
	Text string `json:"text"`
	// Refused reports that the call was refused; Text is the reason.
	Refused bool `json:"refused,omitempty"`
}

// AskInput are the arguments of Ask.
type AskInput struct {
	Question string   `json:"question" jsonschema:"what people have to answer, in a few sentences that can be understood without the session"`
	Options  []string `json:"options,omitempty" jsonschema:"up to 6 answers to choose from, one line each"`
}

// NoteInput are the arguments of Note.
type NoteInput struct {
	Kind string `json:"kind" jsonschema:"fact (what you found out), decision (what you chose, and why) or step_done (a step of the plan that is finished)"`
	Text string `json:"text" jsonschema:"one to three sentences"`
}

// ProposeInput are the arguments of Propose.
type ProposeInput struct {
	Title string `json:"title" jsonschema:"one line"`
	Body  string `json:"body" jsonschema:"Markdown: what is wrong or missing, where, and how it shows"`
}

// FinishInput are the arguments of Finish. They correspond to the fields of the closing block.
type FinishInput struct {
	Outcome    string   `json:"outcome" jsonschema:"build, revised, answered, unchanged, report, already_fixed, not_reproducible, question, blocked or done, as the rules of this run allow"`
	Question   string   `json:"question,omitempty" jsonschema:"with the outcomes question and blocked: what people have to answer"`
	Title      string   `json:"title,omitempty" jsonschema:"what is done, in one line of at most 70 characters"`
	Summary    string   `json:"summary,omitempty" jsonschema:"the same in one to three sentences"`
	Changes    string   `json:"changes,omitempty" jsonschema:"what differs from the last revision of the plan"`
	Files      []string `json:"files,omitempty" jsonschema:"the paths that are expected to change"`
	Estimate   string   `json:"estimate,omitempty" jsonschema:"size and cost in words"`
	Approaches []string `json:"approaches,omitempty" jsonschema:"the titles of the numbered approaches, at most 3"`
	Threads    []Thread `json:"threads,omitempty" jsonschema:"an answer to each piece of feedback that has an id"`
}

// Thread is the answer to one piece of feedback.
type Thread struct {
	ID     string `json:"id"`
	Answer string `json:"answer"`
	Commit string `json:"commit,omitempty" jsonschema:"the full id of the commit that did it"`
}

// ContextInput are the arguments of Context.
type ContextInput struct {
	Kind   string `json:"kind" jsonschema:"notes (kept so far), checks (the last results of the repository's own) or issue (the text and discussion of another issue of this repository, or of a pull request with its reviews)"`
	Number int    `json:"number,omitempty" jsonschema:"with kind issue: which"`
}
