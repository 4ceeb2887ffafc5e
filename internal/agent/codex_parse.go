package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/runlog"
)

// codexParser reads the events of `codex exec --json`.
type codexParser struct {
	session   string
	turns     int  // answers of the model, as far as they are distinguishable
	answer    bool // the newest item came from the model
	open      map[string]bool
	text      string // the agent's text since its newest tool call: at the end, its answer
	cut       string // set if that text was in an overlong line: the reason, for people
	complaint string // the newest error that is not a retry
	failure   *string
	done      bool
	usage     runlog.Usage // of the whole session
	denials   []string     // calls that the rules refused
}

var _ Parser = (*codexParser)(nil)

// codexLine is the union of the fields that errand reads.
type codexLine struct {
	Type     string     `json:"type"`
	ThreadID string     `json:"thread_id"`
	Message  string     `json:"message"`
	Item     codexItem  `json:"item"`
	Usage    codexUsage `json:"usage"`
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
}

// codexItem is one step of a turn.
type codexItem struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Text    string `json:"text"`
	Message string `json:"message"`
	Status  string `json:"status"`

	Command  string          `json:"command"`
	Output   string          `json:"aggregated_output"`
	ExitCode *int            `json:"exit_code"`
	Changes  json.RawMessage `json:"changes"`

	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    struct {
		Content json.RawMessage `json:"content"`
	} `json:"result"`
	Error json.RawMessage `json:"error"`
	Query string          `json:"query"`
}

// codexUsage counts the tokens of the thread, including earlier processes. Input includes both kinds of cache.
type codexUsage struct {
	Input      float64 `json:"input_tokens"`
	Cached     float64 `json:"cached_input_tokens"`
	CacheWrite float64 `json:"cache_write_input_tokens"`
	Output     float64 `json:"output_tokens"`
}

func (u codexUsage) usage() runlog.Usage {
	out := runlog.Usage{CacheRead: tokens(u.Cached), CacheWrite: tokens(u.CacheWrite), Output: tokens(u.Output)}
	out.Input = max(tokens(u.Input)-out.CacheRead-out.CacheWrite, 0)
	return out
}

func (p *codexParser) Line(line []byte) []runlog.Event {
	var l codexLine
	// A field of an unexpected type leaves the others readable, so only the type decides.
	if err := json.Unmarshal(line, &l); err != nil && l.Type == "" {
		return nil
	}
	switch l.Type {
	case "thread.started":
		p.session = l.ThreadID
		return []runlog.Event{{Kind: runlog.KindStarted, Session: cutText(l.ThreadID, maxEventText)}}
	case "item.started":
		p.dropEarlierText(l.Item.Type)
		return p.started(l.Item)
	case "item.updated":
		p.dropEarlierText(l.Item.Type)
		return nil
	case "item.completed":
		return p.completed(l.Item)
	case "error":
		return p.problem(l.Message)
	case "turn.completed":
		return p.finished(l.Usage.usage())
	case "turn.failed":
		said := firstOf(l.Error.Message, p.complaint, "the turn failed")
		p.failure = &said
		return []runlog.Event{{Kind: runlog.KindResult, Text: cutText(said, maxOwnText), Session: cutText(p.session, maxEventText), IsError: true}}
	}
	return nil
}

// Cut reads the beginning of a line. Commands and their output are shown as far as they go; an incomplete message is
// not an answer.
func (p *codexParser) Cut(line []byte, _ int) []runlog.Event {
	whole, at := closeJSON(line)
	var l codexLine
	_ = json.Unmarshal(whole, &l) // an unreadable line has no type
	if cutIn(at, "type") || cutIn(at, "item", "type") || l.Type == "" || l.Type == "item.completed" && l.Item.Type == "" {
		p.text, p.cut = "", cutNoResult // its type is unknown
		return nil
	}
	events := p.Line(whole)
	if l.Item.Type == "agent_message" && (l.Item.Text == "" || cutIn(at, "item", "text")) {
		p.text, p.cut = "", cutTooLong
	}
	return events
}

// spoke counts an item of the model. An item after the end of a tool call belongs to the next answer.
func (p *codexParser) spoke() {
	if !p.answer {
		p.turns++
	}
	p.answer = true
}

// dropEarlierText drops the text before a tool call, because it is not the answer.
func (p *codexParser) dropEarlierText(kind string) {
	switch kind {
	case "agent_message", "reasoning", "error":
	default:
		p.text, p.cut = "", ""
	}
}

// started reads the start of a tool call.
func (p *codexParser) started(it codexItem) []runlog.Event {
	name, input := it.call()
	if name == "" {
		return nil
	}
	p.spoke()
	const most = 1000 // protects against a run that starts tool calls without ending any
	if p.open == nil {
		p.open = map[string]bool{}
	}
	if len(p.open) < most {
		p.open[it.ID] = true
	}
	return []runlog.Event{{
		Kind: runlog.KindToolUse, ToolID: cutText(it.ID, maxEventText), ToolName: cutText(name, maxEventText), Input: cutText(input, maxEventText),
	}}
}

// call returns the tool of an item and its input as JSON, or "" if the item is not a tool call.
func (it codexItem) call() (name, input string) {
	object := func(field string, value any) string {
		b, err := json.Marshal(map[string]any{field: value})
		if err != nil {
			return "{}"
		}
		return string(b)
	}
	switch it.Type {
	case "command_execution":
		return "shell", object("command", unwrapShell(it.Command))
	case "file_change":
		return "apply_patch", object("changes", it.Changes)
	case "mcp_tool_call":
		return "mcp__" + it.Server + "__" + it.Tool, string(it.Arguments)
	case "web_search":
		return "web_search", object("query", it.Query)
	}
	return "", ""
}

// completed reads a completed item.
func (p *codexParser) completed(it codexItem) []runlog.Event {
	switch it.Type {
	case "agent_message":
		p.spoke()
		p.text, p.cut = it.Text, ""
		return []runlog.Event{{Kind: runlog.KindText, Text: cutText(it.Text, maxOwnText)}}
	case "reasoning":
		p.spoke()
		return []runlog.Event{{Kind: runlog.KindThinking, Text: cutText(it.Text, maxEventText)}}
	case "error":
		return []runlog.Event{notice(it.Message)}
	}
	var events []runlog.Event
	if !p.open[it.ID] {
		events = p.started(it)
		if len(events) == 0 {
			return nil
		}
		p.dropEarlierText(it.Type)
	}
	delete(p.open, it.ID)
	p.answer = false
	text, failed := it.outcome()
	return append(events, runlog.Event{Kind: runlog.KindToolResult, ToolID: cutText(it.ID, maxEventText), IsError: failed, Text: cutText(text, maxEventText)})
}

// outcome returns the result of a tool call.
func (it codexItem) outcome() (text string, failed bool) {
	failed = it.Status == "failed" || it.Status == "declined"
	switch it.Type {
	case "command_execution":
		text = strings.TrimSuffix(it.Output, "\n")
		if it.ExitCode != nil && *it.ExitCode != 0 {
			return fmt.Sprintf("Exit code %d\n%s", *it.ExitCode, text), true
		}
	case "mcp_tool_call":
		var e struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(it.Error, &e) == nil && e.Message != "" {
			return e.Message, true
		}
		text = contentText(it.Result.Content)
	default:
		text = it.Status
	}
	return text, failed
}

// problem reads an error that may be temporary.
func (p *codexParser) problem(message string) []runlog.Event {
	if strings.HasPrefix(message, "Reconnecting...") {
		return []runlog.Event{{Kind: runlog.KindRetry, Text: cutText(message, maxEventText), IsError: true}}
	}
	p.complaint = cutText(message, maxEventText)
	ev := notice(message)
	ev.IsError = true
	return []runlog.Event{ev}
}

// finished reads the end of a turn. It reports the usage as text, because the count covers the whole session.
func (p *codexParser) finished(u runlog.Usage) []runlog.Event {
	p.done, p.failure, p.usage = true, nil, u
	return []runlog.Event{
		notice(fmt.Sprintf("the session has used %d tokens, %d from the cache, and made %d", u.Input+u.CacheRead+u.CacheWrite, u.CacheRead, u.Output)),
		{Kind: runlog.KindResult, Text: cutText(p.text, maxOwnText), Session: cutText(p.session, maxEventText)},
	}
}
