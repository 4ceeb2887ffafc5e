// Package wire is the interface between the agent loop on a VM and its adapter: the settings file of a run, and the
// lines that the loop prints.
//
// The loop is internal/agentloop, the adapter is `api` in internal/agent. A line is one JSON object with the fields of
// [Line] that its Type requires; the last one is a result. Readers must treat lines as untrusted, because any process
// on the VM may have written them.
//
// Start here: [Settings] and [Line].
package wire

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/errand-bot/errand/internal/runlog"
)

// Settings describes a run of the loop; the settings file contains it. The prompt comes on standard input.
type Settings struct {
	// WorkDir is the checkout, to which the editor is limited; Home contains the sessions.
	WorkDir string `json:"work_dir"`
	Home    string `json:"home"`
	// Attachments is the directory of the files attached to the texts in the prompt; empty if there are none. The editor
	// can view them, and shows images to the model.
	Attachments string `json:"attachments,omitempty"`
	Model       string `json:"model"`
	// System is appended to the loop's own system prompt.
	System string `json:"system,omitempty"`
	// Resume is the session to continue, Session the id of a new one. With Fork, a copy of Resume continues as Session,
	// or under a generated id.
	Resume  string `json:"resume,omitempty"`
	Session string `json:"session,omitempty"`
	Fork    bool   `json:"fork,omitempty"`
	// Tools are the names of the tools to offer; empty means ToolBash and ToolEdit.
	Tools []string `json:"tools,omitempty"`
	// Shell lists the beginnings of allowed shell commands, such as "npm run"; nil allows any.
	Shell []string `json:"shell,omitempty"`
	// Deny lists denied calls: Bash(git push:*), Edit(sub/**), Read(PATTERN), or a kind alone.
	Deny []string `json:"deny,omitempty"`
	// Schema is the JSON schema of the answer, which the model gives through ToolAnswer.
	Schema json.RawMessage `json:"schema,omitempty"`
	// MCP lists servers to start, as {"mcpServers": …}; their tools are named mcp__SERVER__TOOL.
	MCP      json.RawMessage `json:"mcp,omitempty"`
	MaxTurns int             `json:"max_turns"`
	// BaseURL is the model's address, Token the credential for it: the run's token, which is useless elsewhere.
	BaseURL string `json:"base_url"`
	Token   string `json:"token"`
}

// The names of the tools.
const (
	ToolBash = "bash"
	ToolEdit = "str_replace_based_edit_tool"
	// ToolView is the editor's view command alone, for read-only runs.
	ToolView = "view"
	// ToolAnswer accepts the structured answer if a schema is requested.
	ToolAnswer = "StructuredOutput"
)

// Tools returns the tools that Settings may list.
func Tools() []string { return []string{ToolBash, ToolEdit, ToolView} }

// SessionDir is the directory of sessions, below the home directory, with one file NAME.jsonl each.
const SessionDir = ".errand-agent"

// IsSession reports whether id is a valid session id, which must be a UUID in its usual form of 36 characters.
func IsSession(id string) bool { return len(id) == 36 && uuid.Validate(id) == nil }

// Type is the type of a line.
type Type string

// The types of lines.
const (
	TypeStarted    Type = "started"     // Session, Model
	TypeText       Type = "text"        // Text
	TypeThinking   Type = "thinking"    // Text
	TypeToolUse    Type = "tool_use"    // ID, Name, Input
	TypeToolResult Type = "tool_result" // ID, Text, IsError
	TypeUsage      Type = "usage"       // Usage, of one answer
	TypeRetry      Type = "retry"       // Text, HTTP, DelayMS
	TypeNotice     Type = "notice"      // Text
	TypeResult     Type = "result"      // Result
)

// Line is one line of output.
type Line struct {
	Type    Type            `json:"type"`
	Session string          `json:"session,omitempty"`
	Model   string          `json:"model,omitempty"`
	Text    string          `json:"text,omitempty"`
	ID      string          `json:"id,omitempty"`
	Name    string          `json:"name,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
	HTTP    int             `json:"http,omitempty"`
	DelayMS int64           `json:"delay_ms,omitempty"`
	Usage   *runlog.Usage   `json:"usage,omitempty"`
	Result  *Result         `json:"result,omitempty"`
}

// Result is the outcome of the loop. Cause is one of the statuses of internal/agent that a loop can determine.
type Result struct {
	Cause string `json:"cause"`
	// Text is the model's last answer.
	Text       string          `json:"text,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Session    string          `json:"session,omitempty"`
	// Turns counts the answers of the model.
	Turns int `json:"turns"`
	// Denials lists the calls that Shell and Deny refused.
	Denials []string `json:"denials,omitempty"`
	HTTP    int      `json:"http,omitempty"`
	// ResetAt is the end of a rate limit in seconds since 1970, 0 if unknown.
	ResetAt int64 `json:"reset_at,omitempty"`
	// Message is one sentence that explains a cause other than ok.
	Message string `json:"message,omitempty"`
}

// The causes with which a loop ends.
const (
	CauseOK              = "ok"
	CauseMaxTurns        = "max_turns"
	CauseRateLimited     = "rate_limited"
	CauseOverloaded      = "overloaded"
	CauseNetwork         = "network"
	CauseAuth            = "auth"
	CauseBilling         = "billing"
	CauseBudget          = "budget"
	CauseContextOverflow = "context_overflow"
	CauseRefused         = "refused"
	CauseNoSession       = "no_session"
	CauseNoAnswer        = "no_structured_output"
	CauseInterrupted     = "interrupted"
	CauseInvalid         = "invalid"
	CauseCrashed         = "crashed"
)
