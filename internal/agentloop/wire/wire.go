// Package wire is what the tool loop on a VM and its adapter say to each other: the settings file
// that a run begins with, and the lines that the loop prints while it works.
//
// The loop is internal/agentloop, the adapter is `api` in internal/agent. A line is one JSON object
// with the fields of Line that its Type calls for; the last one is a result. Whoever reads lines has
// to expect anything: what runs on a VM may have written them.
package wire

import (
	"encoding/json"
	"regexp"
)

// Settings is a run of the loop, as its settings file holds it. The prompt comes on standard input.
type Settings struct {
	// WorkDir is the checkout, and the only place where the editor works; Home has the sessions.
	WorkDir string `json:"work_dir"`
	Home    string `json:"home"`
	Model   string `json:"model"`
	// System is put after the loop's own words to the model.
	System string `json:"system,omitempty"`
	// Resume is the session to go on with, Session the id of a new one; with Fork a copy of Resume
	// goes on as Session, or under an id that the loop makes.
	Resume  string `json:"resume,omitempty"`
	Session string `json:"session,omitempty"`
	Fork    bool   `json:"fork,omitempty"`
	// Tools are the names of the tools to offer; empty means ToolBash and ToolEdit.
	Tools []string `json:"tools,omitempty"`
	// Shell lists how the commands begin that may be called in a shell, such as "npm run"; nil is any.
	Shell []string `json:"shell,omitempty"`
	// Deny lists calls to refuse: Bash(git push:*), Edit(sub/**), Read(PATTERN), or a kind alone.
	Deny []string `json:"deny,omitempty"`
	// Schema is what the answer has to fit, given by the tool ToolAnswer.
	Schema json.RawMessage `json:"schema,omitempty"`
	// MCP are servers to start, as {"mcpServers": …}; their tools are known as mcp__SERVER__TOOL.
	MCP      json.RawMessage `json:"mcp,omitempty"`
	MaxTurns int             `json:"max_turns"`
	// BaseURL is where the model is, Token what to show there: the run's token, which is worth
	// nothing anywhere else.
	BaseURL string `json:"base_url"`
	Token   string `json:"token"`
}

// The names of the tools.
const (
	ToolBash = "bash"
	ToolEdit = "str_replace_based_edit_tool"
	// ToolView is the editor's command view alone, for runs that only read.
	ToolView = "view"
	// ToolAnswer takes the structured answer where a schema is asked for.
	ToolAnswer = "StructuredOutput"
)

// Tools returns the tools that Settings may name.
func Tools() []string { return []string{ToolBash, ToolEdit, ToolView} }

// SessionDir is where sessions are, below the home directory: a file NAME.jsonl for each.
const SessionDir = ".errand-agent"

var sessionID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// IsSession reports whether id is fit to name a session: only UUIDs are.
func IsSession(id string) bool { return sessionID.MatchString(id) }

// Type says what a line is about.
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
	Usage   *Usage          `json:"usage,omitempty"`
	Result  *Result         `json:"result,omitempty"`
}

// Usage counts tokens as the Messages API does: Input excludes both kinds of cache.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Result is how the loop ended. Cause is one of the statuses of internal/agent, of those that a loop
// can know.
type Result struct {
	Cause string `json:"cause"`
	// Text is the model's last answer.
	Text       string          `json:"text,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Session    string          `json:"session,omitempty"`
	// Turns counts the answers of the model.
	Turns int `json:"turns"`
	// Denials names the calls that Shell and Deny refused.
	Denials []string `json:"denials,omitempty"`
	HTTP    int      `json:"http,omitempty"`
	// ResetAt is when a limit ends, in seconds since 1970, 0 if nobody said.
	ResetAt int64 `json:"reset_at,omitempty"`
	// Message is one sentence about why the cause is not ok.
	Message string `json:"message,omitempty"`
}

// The causes that a loop ends with.
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
